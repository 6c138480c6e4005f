//! Looking at jobs without touching them.

use bytes::Bytes;
use queue_core::{
    Error, JobId, JobState, JobView, Operation, Page, PageCursor, PeekRequest,
    StateDetail, Timestamp,
};
use queue_redis::{Reply, command, entry::Entry};

use crate::{lease::Lease, scripts::Store};

/// Jobs of one page at most, whatever is asked for: their payloads are read too.
const MAX_PAGE: usize = 1000;

/// One place where jobs of a state are, in the order in which they are served.
#[derive(Debug, Clone, Copy)]
enum Section {
    Urgent,
    Handed,
    Ready,
    Patient,
    Later,
    Leased,
    Dead,
}

/// The rank from which on jobs come after those of normal priority: `moves.lua`.
const NORMAL_RANKS: u64 = 4 << 44;

fn sections(state: JobState) -> &'static [Section] {
    match state {
        JobState::Ready => {
            &[Section::Urgent, Section::Handed, Section::Ready, Section::Patient]
        }
        JobState::Scheduled => &[Section::Later],
        JobState::Leased => &[Section::Leased],
        JobState::Dead => &[Section::Dead],
    }
}

/// One page of a state's jobs. The cursor is the section and how many of it were
/// shown.
pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let sections = sections(ask.state);
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let (mut section, mut offset) = read_cursor(ask.after.as_ref());
    let mut jobs = Vec::new();
    while let Some(place) = sections.get(section) {
        let room = limit - jobs.len();
        let found = look(store, *place, offset, room).await?;
        if found.len() < room {
            (section, offset) = (section + 1, 0);
        } else {
            offset += room;
        }
        jobs.extend(found);
        if jobs.len() == limit {
            let next = PageCursor(format!("{section}:{offset}").into());
            return Ok(Page { jobs, next: Some(next) });
        }
    }
    Ok(Page { jobs, next: None })
}

fn read_cursor(cursor: Option<&PageCursor>) -> (usize, usize) {
    let text = cursor.and_then(|cursor| std::str::from_utf8(&cursor.0).ok());
    let parts = text.and_then(|text| text.split_once(':'));
    let number = |text: &str| text.parse().unwrap_or(0);
    parts.map_or((0, 0), |(section, offset)| (number(section), number(offset)))
}

async fn look(
    store: &Store,
    section: Section,
    offset: usize,
    count: usize,
) -> Result<Vec<JobView>, Error> {
    let keys = &store.keys;
    match section {
        Section::Handed => look_at_list(store, &keys.handed, offset, count).await,
        Section::Ready => look_at_list(store, &keys.ready, offset, count).await,
        Section::Urgent => {
            let range = ["-inf".to_owned(), format!("({NORMAL_RANKS}")];
            look_at_set(store, &keys.ranked, range, offset, count, ready).await
        }
        Section::Patient => {
            let range = [NORMAL_RANKS.to_string(), "+inf".to_owned()];
            look_at_set(store, &keys.ranked, range, offset, count, ready).await
        }
        Section::Later => {
            look_at_set(store, &keys.later, everything(), offset, count, scheduled)
                .await
        }
        Section::Leased => {
            look_at_set(store, &keys.leased, everything(), offset, count, leased).await
        }
        Section::Dead => {
            look_at_set(store, &keys.dead, everything(), offset, count, dead).await
        }
    }
}

fn everything() -> [String; 2] {
    ["-inf".to_owned(), "+inf".to_owned()]
}

async fn look_at_list(
    store: &Store,
    list: &str,
    offset: usize,
    count: usize,
) -> Result<Vec<JobView>, Error> {
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut cmd = command("LRANGE");
    cmd.arg(list).arg(-signed(offset + count)).arg(-signed(offset + 1));
    let elements = store.conn.call(Operation::Peek, &cmd).await?.list()?;
    let mut jobs = Vec::with_capacity(elements.len());
    for element in elements.into_iter().rev() {
        let element = element.bytes()?;
        jobs.push(match Entry::decode(&element) {
            Ok(entry) => view(entry, StateDetail::Ready),
            Err(_) => JobView::new(None, element, StateDetail::Ready),
        });
    }
    with_errors(store, jobs).await
}

/// What a member of a sorted set stands for: the id of its job, and its state.
type Detail = fn(&Bytes, Timestamp, Option<&str>) -> Option<(Bytes, StateDetail)>;

async fn look_at_set(
    store: &Store,
    set: &str,
    [from, to]: [String; 2],
    offset: usize,
    count: usize,
    detail: Detail,
) -> Result<Vec<JobView>, Error> {
    let mut cmd = command("ZRANGE");
    cmd.arg(set).arg(from).arg(to).arg("BYSCORE");
    cmd.arg("LIMIT").arg(offset).arg(count).arg("WITHSCORES");
    let mut members = Vec::new();
    for pair in store.conn.call(Operation::Peek, &cmd).await?.list()? {
        let mut pair = pair.list()?.into_iter();
        if let (Some(member), Some(score)) = (pair.next(), pair.next()) {
            members.push((member.bytes()?, Timestamp::from_unix_ms(score.number()?)));
        }
    }
    let id = |(member, score): &(Bytes, Timestamp)| {
        detail(member, *score, None).map_or_else(|| member.clone(), |(id, _)| id)
    };
    let ids: Vec<_> = members.iter().map(id).collect();
    let entries = if set == store.keys.leased {
        let leases: Vec<_> = members.iter().map(|(lease, _)| lease.clone()).collect();
        fields(store, &store.keys.held, &leases).await?
    } else {
        fields(store, &store.keys.jobs, &ids).await?
    };
    let errors = fields(store, &store.keys.errors, &ids).await?;
    let mut jobs = Vec::with_capacity(members.len());
    for (((member, score), entry), error) in members.iter().zip(entries).zip(errors) {
        let error = error.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if let Some((id, detail)) = detail(member, *score, error.as_deref()) {
            jobs.push(view_of(&id, entry, error.as_deref(), detail));
        }
    }
    Ok(jobs)
}

fn ready(id: &Bytes, _: Timestamp, _: Option<&str>) -> Option<(Bytes, StateDetail)> {
    Some((id.clone(), StateDetail::Ready))
}

fn scheduled(
    id: &Bytes,
    due: Timestamp,
    _: Option<&str>,
) -> Option<(Bytes, StateDetail)> {
    Some((id.clone(), StateDetail::Scheduled { due }))
}

fn leased(
    member: &Bytes,
    until: Timestamp,
    _: Option<&str>,
) -> Option<(Bytes, StateDetail)> {
    let Lease { worker, since, id, .. } = Lease::parse(member)?;
    Some((id, StateDetail::Leased { worker, since, until }))
}

fn dead(
    id: &Bytes,
    since: Timestamp,
    error: Option<&str>,
) -> Option<(Bytes, StateDetail)> {
    let reason = reason(error.unwrap_or_default());
    Some((id.clone(), StateDetail::Dead { reason, since }))
}

/// The letter that the scripts put before an error, in words.
fn reason(error: &str) -> String {
    let (why, text) = split_letter(error);
    match why {
        Some('a') => format!("it failed on its last attempt: {text}"),
        Some('c') => {
            "its last attempt ended with its lease: the worker died, froze or \
                      was cut off"
                .to_owned()
        }
        Some('f') => format!("it failed for good: {text}"),
        Some('m') => format!("it cannot be read: {text}"),
        Some('x') => "it expired before it was delivered".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn last_error(error: &str) -> Option<String> {
    match split_letter(error) {
        (Some('a' | 'c' | 'e' | 'f' | 'x'), text) if !text.is_empty() => {
            Some(text.to_owned())
        }
        _ => None,
    }
}

fn split_letter(error: &str) -> (Option<char>, &str) {
    let mut symbols = error.chars();
    (symbols.next(), symbols.as_str())
}

fn view_of(
    id: &Bytes,
    entry: Option<Bytes>,
    error: Option<&str>,
    detail: StateDetail,
) -> JobView {
    let entry = entry.unwrap_or_default();
    let mut job = match Entry::decode(&entry) {
        Ok(entry) => view(entry, detail),
        Err(_) => {
            let id = std::str::from_utf8(id).ok().and_then(|id| JobId::new(id).ok());
            JobView::new(id, entry, detail)
        }
    };
    job.last_error = error.and_then(last_error);
    job
}

fn view(entry: Entry, detail: StateDetail) -> JobView {
    let mut job = JobView::new(Some(entry.id), entry.payload, detail);
    job.attempt = u32::from(entry.attempt);
    job.max_attempts = u32::from(entry.max_attempts.get());
    job.priority = entry.priority;
    job.unique = entry.unique;
    job.expires_at = entry.expires_at;
    job.headers = entry.headers;
    job
}

async fn with_errors(
    store: &Store,
    mut jobs: Vec<JobView>,
) -> Result<Vec<JobView>, Error> {
    let id = |job: &JobView| {
        job.id.as_ref().map_or_else(Bytes::new, |id| {
            Bytes::copy_from_slice(id.as_str().as_bytes())
        })
    };
    let ids: Vec<_> = jobs.iter().map(id).collect();
    let errors = fields(store, &store.keys.errors, &ids).await?;
    for (job, error) in jobs.iter_mut().zip(errors) {
        let error = error.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        job.last_error = error.as_deref().and_then(last_error);
    }
    Ok(jobs)
}

async fn fields(
    store: &Store,
    hash: &str,
    ids: &[Bytes],
) -> Result<Vec<Option<Bytes>>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut cmd = command("HMGET");
    cmd.arg(hash);
    ids.iter().for_each(|id| {
        cmd.arg(&id[..]);
    });
    let reply = store.conn.call(Operation::Peek, &cmd).await?;
    reply.list()?.into_iter().map(Reply::optional_bytes).collect()
}
