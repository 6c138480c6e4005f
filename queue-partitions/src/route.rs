//! Which part a push goes to.
//!
//! ```text
//!  a job with an id, a unique key or both   the part of that text
//!  else a call with a token                 the part of the token
//!  else                                     the parts in turn, one call to one part
//! ```
//!
//! Only the part that stored a job knows its id and its unique key. So jobs with the same
//! id (R4) or the same unique key (R16) must go to the same part, and both take precedence
//! over the token. A repeated call has the same jobs, so it goes to the same part.

use relq_core::{NewJob, PushToken, batch::BatchId};

/// Assigns a text to one of several parts.
///
/// The part of a text is a hash of it modulo the number of parts. All clients of a queue
/// must use the same hash.
#[derive(Debug, Clone, Copy)]
pub struct PartOf {
    hash: fn(&str) -> u64,
    parts: usize,
}

/// The result of routing one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// The call goes to this part.
    To(usize),
    /// Any part will do.
    Any,
    /// The call must be refused, for this reason.
    Apart(String),
}

impl PartOf {
    pub(crate) fn new(hash: fn(&str) -> u64, parts: usize) -> Self {
        Self { hash, parts: parts.max(1) }
    }

    /// Returns the part to which `text`, an id or a key, belongs.
    pub fn text(&self, text: &str) -> usize {
        let part = (self.hash)(text) % self.parts as u64;
        usize::try_from(part).unwrap_or(0)
    }

    pub(crate) fn batch(&self, batch: &BatchId) -> usize {
        self.text(batch.as_str())
    }

    pub(crate) fn push(&self, jobs: &[NewJob], token: Option<&PushToken>) -> Route {
        let mut names = jobs.iter().flat_map(names);
        let Some(first) = names.next() else {
            let by_token = token.map(|token| Route::To(self.text(token.as_str())));
            return by_token.unwrap_or(Route::Any);
        };
        let part = self.text(first);
        match names.find(|name| self.text(name) != part) {
            None => Route::To(part),
            Some(other) => Route::Apart(format!(
                "the ids and unique keys of one call must belong to one part of the \
                 queue, but {first:?} belongs to part {part} and {other:?} to part {}: \
                 push such jobs by calls of their own, and give a job its id or its \
                 unique key, or the same text for both",
                self.text(other)
            )),
        }
    }
}

/// The texts of a job that must always lead to the same part.
fn names(job: &NewJob) -> impl Iterator<Item = &str> {
    let id = job.id.as_ref().map(relq_core::JobId::as_str);
    let key = job.unique.as_ref().map(|unique| unique.key.as_str());
    id.into_iter().chain(key)
}

#[cfg(test)]
mod tests {
    use relq_core::{JobId, unique::UniqueKey};

    use super::*;

    fn by_length(text: &str) -> u64 {
        text.len() as u64
    }

    fn with_id(id: &str) -> NewJob {
        NewJob::new("job").id(JobId::new(id).unwrap())
    }

    fn with_key(key: &str) -> NewJob {
        NewJob::new("job").unique(UniqueKey::new(key).unwrap())
    }

    #[test]
    fn ids_and_keys_decide_before_the_token() {
        let parts = PartOf::new(by_length, 3);
        let token = PushToken::new("four").unwrap();

        assert_eq!(parts.push(&[with_id("1"), with_key("four")], None), Route::To(1));
        assert_eq!(parts.push(&[with_id("12")], Some(&token)), Route::To(2));
        assert_eq!(parts.push(&["job".into()], Some(&token)), Route::To(1));
        assert_eq!(parts.push(&["job".into()], None), Route::Any);
    }

    #[test]
    fn names_that_lead_apart_are_named() {
        let parts = PartOf::new(by_length, 3);

        for jobs in
            [vec![with_id("1"), with_id("22")], vec![with_id("1"), with_key("22")]]
        {
            let Route::Apart(why) = parts.push(&jobs, None) else {
                panic!("let through")
            };
            assert!(why.contains("\"1\" belongs to part 1"), "{why}");
            assert!(why.contains("\"22\" to part 2"), "{why}");
        }
    }
}
