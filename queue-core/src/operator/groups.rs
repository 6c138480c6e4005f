//! The dead letters of a queue, grouped by their errors.

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
};

use super::{JobState, JobView, PageCursor, PeekRequest, StateDetail};
use crate::{Error, JobId, Queue, capabilities::Capability, environment::Timestamp};

/// How many dead letters one page of a listing has.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// The longest name of a group, in characters.
const MAX_NAME: usize = 200;

/// The fewest hexadecimal digits that are taken for a number.
const MIN_HEX: usize = 8;

/// Reads dead letters page by page and groups them by their errors.
///
/// Two errors are in one group if only numbers and ids differ: each run of digits, each
/// run of eight hexadecimal digits or more and each UUID stands as `#` in the name of the
/// group. Only the first line counts, and at most 200 characters of it. A job without an
/// error is grouped by the reason why it is dead.
///
/// The newest dead letters are read first. Without [`Capability::Inspect`] the oldest
/// are.
///
/// ```
/// use std::num::NonZeroU32;
/// use relq_core::{Error, Queue, operator::DeadGroups};
///
/// async fn show_reasons(queue: &dyn Queue) -> Result<(), Error> {
///     let limit = NonZeroU32::new(10_000).expect("not zero");
///     let mut dead = DeadGroups::new(limit);
///     while dead.read_page(queue).await? {}
///     for group in dead.groups() {
///         println!("{} jobs: {}", group.jobs.len(), group.error);
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct DeadGroups {
    limit: NonZeroU32,
    is_exact: bool,
    next: NextPage,
    seen: HashSet<JobId>,
    groups: HashMap<String, DeadGroup>,
}

/// Where the listing of the dead letters is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NextPage {
    First,
    After(PageCursor),
    /// All dead letters were read.
    End,
    /// The limit was reached, and more dead letters follow.
    Cut,
}

/// Dead letters with the same error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadGroup {
    /// The error that all jobs of the group have, with `#` for numbers and ids.
    pub error: String,
    /// The whole error of the newest job.
    pub example: String,
    /// The jobs that are in the group.
    pub jobs: Vec<JobId>,
    /// When the first of the jobs was buried.
    pub first: Timestamp,
    /// When the last of the jobs was buried.
    pub last: Timestamp,
}

impl DeadGroups {
    /// Groups at most `limit` dead letters. This makes no call.
    pub fn new(limit: NonZeroU32) -> Self {
        Self {
            limit,
            is_exact: false,
            next: NextPage::First,
            seen: HashSet::new(),
            groups: HashMap::new(),
        }
    }

    /// Puts only jobs with the very same error in one group.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// Reads one page. Returns whether more dead letters are left to read.
    ///
    /// If the future is dropped or fails, the next call reads the same page.
    ///
    /// # Errors
    /// The errors of [`Operator::peek`](crate::Operator::peek).
    pub async fn read_page(&mut self, queue: &dyn Queue) -> Result<bool, Error> {
        let mut ask = PeekRequest::new(JobState::Dead, PAGE).outline();
        if queue.capabilities().supports(Capability::Inspect) {
            ask = ask.newest_first();
        }
        match &self.next {
            NextPage::First => {}
            NextPage::After(at) => ask = ask.after(at.clone()),
            NextPage::End | NextPage::Cut => return Ok(false),
        }
        let page = queue.peek(&ask).await?;
        let mut is_cut = false;
        for job in page.jobs {
            is_cut |= self.is_full();
            if !is_cut {
                self.add(job);
            }
        }
        self.next = match page.next {
            _ if is_cut => NextPage::Cut,
            Some(_) if self.is_full() => NextPage::Cut,
            Some(next) => NextPage::After(next),
            None => NextPage::End,
        };
        Ok(matches!(self.next, NextPage::After(_)))
    }

    /// The groups that were read so far: those with the most jobs first, and of equally
    /// many the one with the newest job.
    pub fn groups(&self) -> Vec<DeadGroup> {
        let mut groups: Vec<_> = self.groups.values().cloned().collect();
        groups.sort_by(|a, b| {
            let (a_key, b_key) = ((a.jobs.len(), a.last), (b.jobs.len(), b.last));
            b_key.cmp(&a_key).then_with(|| a.error.cmp(&b.error))
        });
        groups
    }

    /// Whether the limit was reached, so that there are dead letters that no group holds.
    pub fn is_cut(&self) -> bool {
        self.next == NextPage::Cut
    }

    fn is_full(&self) -> bool {
        self.seen.len() >= self.limit.get() as usize
    }

    /// Adds a job that was not added before.
    fn add(&mut self, job: JobView) {
        let StateDetail::Dead { reason, since } = job.detail else { return };
        let Some(id) = job.id.filter(|id| self.seen.insert(id.clone())) else { return };
        let example = job.last_error.unwrap_or(reason);
        let error = if self.is_exact { example.clone() } else { name_of(&example) };
        let group = self.groups.entry(error.clone()).or_insert_with(|| DeadGroup {
            error,
            example: example.clone(),
            jobs: Vec::new(),
            first: since,
            last: since,
        });
        group.first = group.first.min(since);
        if since > group.last {
            (group.last, group.example) = (since, example);
        }
        group.jobs.push(id);
    }
}

/// The error of a group: the first line, with `#` for numbers and ids, and with one note
/// for all attempts in a row whose lease expired (R11).
fn name_of(error: &str) -> String {
    let first = error.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let hidden = without_numbers(first);
    let mut notes: Vec<_> = hidden.split("; ").collect();
    notes.dedup();
    notes.join("; ").chars().take(MAX_NAME).collect()
}

/// `text` with `#` for each number and id.
fn without_numbers(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut shown = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let length = number_length(before, &bytes[at..]);
        shown.push(if length == 0 { bytes[at] } else { b'#' });
        at += length.max(1);
    }
    String::from_utf8(shown).expect("only whole ASCII characters were replaced")
}

/// The length of the number or id with which `bytes` begin; 0 if they begin with none.
fn number_length(before: Option<u8>, bytes: &[u8]) -> usize {
    let is_in_word =
        before.is_some_and(|byte| byte.is_ascii_alphabetic() && byte != b'x');
    if !is_in_word {
        if is_uuid(bytes) {
            return UUID_LENGTH;
        }
        let hex = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let has_digit = bytes[..hex].iter().any(u8::is_ascii_digit);
        if hex >= MIN_HEX && has_digit {
            return hex;
        }
    }
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The length of a UUID: 32 hexadecimal digits and four hyphens.
const UUID_LENGTH: usize = 36;

fn is_uuid(bytes: &[u8]) -> bool {
    let is_right = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.get(..UUID_LENGTH).is_some_and(|id| id.iter().enumerate().all(is_right))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use super::super::JobLookup;
    use super::super::listed::{Listed, at_once, job};
    use super::*;

    #[test]
    fn errors_that_differ_in_numbers_have_one_name() {
        let note =
            |attempt: &str| format!("attempt {attempt}: lease ended, no heartbeat");
        let cases = [
            ("timed out after 1500 ms", "timed out after # ms"),
            ("\n\nfirst line 1\nsecond line", "first line #"),
            ("user 5f0c1d2e not found", "user # not found"),
            ("at 0x7ffe12345678", "at #x#"),
            ("id 123e4567-e89b-12d3-a456-426614174000!", "id #!"),
            ("defaced facade interface2 added", "defaced facade interface# added"),
            ("größe 7 zu groß", "größe # zu groß"),
            ("", ""),
        ];
        for (error, name) in cases {
            assert_eq!(name_of(error), name);
        }
        let notes = format!("it failed; {}; {}", note("2"), note("3"));
        assert_eq!(name_of(&notes), format!("it failed; {}", note("#")));
        assert_eq!(name_of(&"x".repeat(300)).len(), MAX_NAME);
    }

    fn dead(jobs: &[(&str, i64, &str)]) -> Listed {
        let view = |(id, ms, error): &(&str, i64, &str)| {
            let since = Timestamp::from_unix_ms(*ms);
            let reason = format!("reason of {id}");
            let mut view = job(id, StateDetail::Dead { reason, since });
            view.last_error = (!error.is_empty()).then(|| (*error).to_owned());
            view
        };
        Listed::new(jobs.iter().map(view).collect())
            .finding(JobLookup::MaybeReady { followers: vec![] })
    }

    fn read_all(mut groups: DeadGroups, queue: &Listed) -> DeadGroups {
        while at_once(groups.read_page(queue)).unwrap() {}
        groups
    }

    fn limit(most: u32) -> NonZeroU32 {
        NonZeroU32::new(most).unwrap()
    }

    #[test]
    fn dead_letters_are_grouped_over_pages() {
        let queue =
            dead(&[("1", 10, "no user 5"), ("2", 30, "pipe"), ("3", 20, "no user 77")]);

        let groups = read_all(DeadGroups::new(limit(10)), &queue);

        assert!(!groups.is_cut());
        let [users, pipe] = &groups.groups()[..] else { panic!("{groups:?}") };
        assert_eq!(
            (users.error.as_str(), users.example.as_str()),
            ("no user #", "no user 77")
        );
        assert_eq!((users.first.unix_ms(), users.last.unix_ms()), (10, 20));
        assert_eq!((users.jobs.len(), pipe.jobs.len()), (2, 1));
        let exact = read_all(DeadGroups::new(limit(10)).exact(), &queue);
        assert_eq!(exact.groups().len(), 3);
    }

    /// A backend without an index lists the oldest first. The groups are the same.
    #[test]
    fn the_order_of_the_listing_does_not_change_the_groups() {
        let jobs = [
            ("1", 10, "no user 5"),
            ("2", 20, "pipe 1"),
            ("3", 30, "no user 7"),
            ("4", 40, "pipe 2"),
            ("5", 50, "once"),
        ];
        let newest_first = dead(&jobs);
        let oldest_first = Listed::new(newest_first.jobs.clone());

        for queue in [newest_first, oldest_first] {
            let groups = read_all(DeadGroups::new(limit(10)), &queue).groups();
            let found: Vec<_> = groups
                .iter()
                .map(|it| (&*it.example, it.first.unix_ms(), it.last.unix_ms()))
                .collect();
            let expected =
                [("pipe 2", 20, 40), ("no user 7", 10, 30), ("once", 50, 50)];
            assert_eq!(found, expected, "the newest example, and its group first");
        }
    }

    /// A page that could not be read is read again, and no dead letter is missing.
    #[test]
    fn dead_letters_of_a_page_that_failed_are_read_again() {
        let queue = dead(&[("1", 1, "no"), ("2", 2, "no"), ("3", 3, "no")]);
        for page in 0..2 {
            let mut groups = DeadGroups::new(limit(10));
            for _ in 0..page {
                assert!(at_once(groups.read_page(&queue)).unwrap());
            }
            queue.is_down.store(true, SeqCst);
            at_once(groups.read_page(&queue)).unwrap_err();

            let groups = read_all(groups, &queue).groups();

            assert_eq!(groups[0].jobs.len(), 3, "after a failure of page {page}");
        }
    }

    #[test]
    fn a_job_without_an_error_is_grouped_by_its_reason() {
        let groups = read_all(DeadGroups::new(limit(10)), &dead(&[("x", 1, "")]));

        assert_eq!(groups.groups()[0].error, "reason of x");
    }

    #[test]
    fn the_limit_cuts_the_oldest() {
        let jobs = [("1", 1, "old"), ("2", 2, "old"), ("3", 3, "new"), ("4", 4, "new")];
        for (most, counts, is_cut) in
            [(4, vec![2, 2], false), (3, vec![2, 1], true), (2, vec![2], true)]
        {
            let groups = read_all(DeadGroups::new(limit(most)), &dead(&jobs));
            let found: Vec<_> =
                groups.groups().iter().map(|group| group.jobs.len()).collect();
            assert_eq!((found, groups.is_cut()), (counts, is_cut), "{most}");
        }
    }

    #[test]
    fn a_job_that_is_listed_twice_counts_once() {
        let jobs = [("1", 1, "no"), ("1", 1, "no"), ("2", 2, "no")];

        let groups = read_all(DeadGroups::new(limit(10)), &dead(&jobs));

        assert_eq!(groups.groups()[0].jobs.len(), 2);
    }
}
