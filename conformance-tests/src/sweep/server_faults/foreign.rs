//! Tests of keys that another program has overwritten, with a value of another type or
//! with an entry that relq cannot read.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use relq_core::{Disposition, Error, NewJob, Queue, Settlement, outcome::Settled};

use super::{
    calls,
    fixture::{
        FaultFixture, ask, eventually, fill, is_sound, many, push_plain, take, token,
        with_options, worker_id,
    },
    monitor::{ScriptCall, State},
    tape::Tape,
};
use crate::{harness::room::strings, server::Server};

/// R19, R21: if another program has put a key of another type in place of a key of the
/// queue, calls return an error that says so and change nothing. After that key is
/// removed, every job is delivered.
pub(super) async fn a_foreign_key_in_the_way_is_an_error_and_loses_nothing(
    fixture: &FaultFixture,
) {
    let keys = keys_in_use(fixture).await;
    assert!(keys.len() >= 5, "only {keys:?}");
    let mut judged = 0;
    for key in keys {
        judged += usize::from(is_told(fixture, &key).await);
    }
    assert!(judged >= 5, "only {judged} keys could be judged");
}

/// R21, R23: a script that meets a key of another type either fails before its first
/// write or works. Each script that any call sends is tried on each key that it
/// declares and on each key of the queue before and after the call, in the state in which
/// the script ran.
pub(super) async fn every_script_fails_whole_on_a_key_of_another_type(
    fixture: &FaultFixture,
) {
    fails_whole(fixture, put_another_type).await;
}

/// R3, R23: a script that meets a malformed entry either fails before its first write
/// or works. An element, field or member is malformed if it begins with relq's reserved
/// bytes but cannot be read. A count is malformed if it is not a number. The test tries
/// each position of each key.
pub(super) async fn every_script_fails_whole_on_a_malformed_entry(
    fixture: &FaultFixture,
) {
    fails_whole(fixture, put_malformed).await;
}

/// R19, R23: jobs still end when another client has overwritten a count with text. A
/// call that reads the count returns an error.
pub(super) async fn a_count_that_is_text_keeps_no_job(fixture: &FaultFixture) {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    push_plain(&*queue, &["counted", "uncounted", "counted again"]).await;
    let held = take(&*queue, 3).await;
    let finish = async |number: usize| {
        let done = Settlement::new(held[number].receipt.clone(), Disposition::Done);
        queue.settle(&[done]).await.expect("settled")
    };
    assert_eq!(finish(0).await, [Settled::Applied]);
    let counts = keys(&server).into_iter().filter(|key| key.ends_with(":totals"));
    let counts: Vec<_> = counts.collect();
    if counts.is_empty() {
        // This backend has no hash with its counts, so the test cannot overwrite them.
        return;
    }
    for key in &counts {
        server.command(&[b"HSET", key.as_bytes(), b"finished", b"text"]);
    }

    assert_eq!(finish(1).await, [Settled::Applied]);

    let error = queue.stats().await.expect_err("a count is no number");
    assert!(names_it(&error), "{}", error.full_message());
    for key in &counts {
        server.command(&[b"HDEL", key.as_bytes(), b"finished"]);
    }
    assert_eq!(finish(2).await, [Settled::Applied]);
    assert_eq!(queue.stats().await.expect("stats").finished, 1);
    is_sound(&*queue).await;
}

/// In how many states of the store each script is tried in a topic at most.
const OFTEN_ENOUGH: usize = 6;

/// Corrupts a key. `way` is the number of the way to corrupt it, from 0. Returns
/// `false` if the key cannot be corrupted in that way. Then it cannot be corrupted in
/// any way with a higher number either.
type Spoil = fn(&Server, key: &[u8], way: usize) -> bool;

/// In how many ways each key is corrupted at most.
const WAYS: usize = 16;

async fn fails_whole(fixture: &FaultFixture, spoil: Spoil) {
    let mut tape = Tape::start(fixture).await;
    calls::play(&mut tape).await;
    let scratch = Scratch::of(&tape);
    let (mut tried, mut spoilt) = (BTreeMap::<_, usize>::new(), 0);
    let mut wrong = BTreeSet::new();
    for pair in tape.marks.windows(2) {
        for call in &pair[1].scripts.calls {
            let times = tried.entry((call.digest(), pair[1].topic)).or_default();
            *times += 1;
            if *times > OFTEN_ENOUGH {
                continue;
            }
            let met = &pair[0].state;
            // A script may create a key that it does not declare.
            let keys = call.keys().iter().chain(met.keys()).chain(pair[1].state.keys());
            for key in keys.collect::<BTreeSet<_>>() {
                for way in 0..WAYS {
                    met.put_on(&scratch.server);
                    if !spoil(&scratch.server, key, way) {
                        break;
                    }
                    spoilt += 1;
                    wrong.extend(scratch.fails_in_parts(call, key));
                }
            }
        }
    }
    let scripts: BTreeSet<_> = tried.keys().map(|(digest, _)| digest).collect();
    assert!(scripts.len() >= 12, "only {} scripts were sent", scripts.len());
    assert!(spoilt > 200, "only {spoilt} states were spoilt");
    let wrong: Vec<_> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A server on which script calls are repeated, and the text of each script by its digest.
struct Scratch {
    server: Server,
    sources: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Scratch {
    fn of(tape: &Tape<'_>) -> Self {
        let (server, mut sources) = (Server::start(), BTreeMap::new());
        for source in tape.marks.iter().flat_map(|mark| &mark.scripts.sources) {
            let reply = server.command(&[b"SCRIPT", b"LOAD", source]);
            let digest = reply.split(|byte| *byte == b'\n').nth(1).expect("a digest");
            sources.insert(digest.trim_ascii_end().to_owned(), source.clone());
        }
        Self { server, sources }
    }

    /// Repeats a script call after `key` was corrupted. If the call fails, but has changed
    /// the store before, returns a description of the failure; otherwise `None`.
    fn fails_in_parts(&self, call: &ScriptCall, key: &[u8]) -> Option<String> {
        // The dump of a hash may change when the hash is read, because Redis may then move
        // its fields. The digest does not.
        let digest = || self.server.command(&[b"DEBUG", b"DIGEST"]);
        let (state, before) = (State::of(&self.server), digest());
        let answer = call.send(&self.server);
        let is_known = !answer.starts_with(b"-NOSCRIPT");
        assert!(is_known, "a script was called and never loaded");
        if !answer.starts_with(b"-") || digest() == before {
            return None;
        }
        let changed = state.differences(&State::of(&self.server));
        let error = String::from_utf8_lossy(&answer).trim_end().to_owned();
        let place = place_of(&error, &self.sources[call.digest()]);
        let key = key.escape_ascii();
        Some(format!(
            "{place} fails because of {key}: {error}; before, the script changed \
             {changed:?}"
        ))
    }
}

/// The name of a script, which is a comment in its second line, with the number and the
/// text of the line at which it failed.
fn place_of(error: &str, source: &[u8]) -> String {
    let source = String::from_utf8_lossy(source);
    let line = |number: usize| source.lines().nth(number - 1).unwrap_or("?").trim();
    let number = error.rsplit_once("@user_script:").and_then(|(_, behind)| {
        let digits = behind.split(|one: char| !one.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    });
    let failed = number.map_or("?", |number| line(number.max(1)));
    format!("{}, line {}, `{failed}`,", line(2), number.unwrap_or(0))
}

/// Puts a string in place of another type, and a list in place of a string. If the key
/// does not exist, the first way creates a string and the second a list.
fn put_another_type(scratch: &Server, key: &[u8], way: usize) -> bool {
    let kind = scratch.command(&[b"TYPE", key]);
    let is_new = kind.starts_with(b"+none");
    let is_string = kind.starts_with(b"+string");
    if way > usize::from(is_new) {
        return false;
    }
    scratch.command(&[b"DEL", key]);
    let command = if is_string || way == 1 { b"RPUSH".as_slice() } else { b"SET" };
    scratch.command(&[command, key, b"foreign"]);
    true
}

/// A script that replaces one element of a key, or one field of a hash, by bytes that
/// begin like a relq entry, cannot be read, and are not a number. In the record of a
/// batch each field is replaced in turn; in any other key, the first four elements.
const SPOIL_AN_ELEMENT: &[u8] =
    b"local key, at, broken = KEYS[1], tonumber(ARGV[1]), ARGV[2] \
    local kind = redis.call('TYPE', key).ok \
    if at > 3 and not key:find(':record:', 1, true) then return 0 end \
    if kind == 'string' and at == 0 then redis.call('SET', key, broken) return 1 end \
    if kind == 'list' and at < redis.call('LLEN', key) then \
      redis.call('LSET', key, at, broken) return 1 end \
    if kind == 'hash' then \
      local field = redis.call('HKEYS', key)[at + 1] \
      if field then redis.call('HSET', key, field, broken) return 1 end end \
    if kind == 'zset' then \
      local found = redis.call('ZRANGE', key, at, at, 'WITHSCORES') \
      if found[1] then redis.call('ZREM', key, found[1]) \
        redis.call('ZADD', key, found[2], broken) return 1 end end \
    if kind == 'stream' and at == 0 then \
      redis.call('XADD', key, '*', 'job', broken) return 1 end \
    return 0";

fn put_malformed(scratch: &Server, key: &[u8], way: usize) -> bool {
    let at = way.to_string();
    let words: [&[u8]; 6] =
        [b"EVAL", SPOIL_AN_ELEMENT, b"1", key, at.as_bytes(), b"\xf5RQ\x01broken"];
    scratch.command(&words) == b":1\r\n"
}

/// Returns the names of the queue's keys, except keys that belong to a single job.
async fn keys_in_use(fixture: &FaultFixture) -> Vec<String> {
    let server = Server::start();
    fill(&*fixture.connect(&server).await).await;
    let part = format!("{{{}}}:", fixture.queue);
    let keys = keys(&server).into_iter();
    keys.filter(|key| key.starts_with(&part)).collect()
}

/// Puts a key of another type in place of `key`, and checks the errors of all calls. If
/// the queue already uses the key, returns `false` and checks nothing, because
/// overwriting the key would remove jobs. The key that wakes a worker is tested all the
/// same, because it holds no job.
async fn is_told(fixture: &FaultFixture, key: &str) -> bool {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    push_plain(&*queue, &["x"]).await;
    if keys(&server).iter().any(|used| used == key) && !key.ends_with(":wake") {
        return false;
    }
    server.command(&[b"SET", key.as_bytes(), b"foreign"]);

    let errors = errors(&*queue).await;

    for error in &errors {
        assert!(names_it(error), "{key}: {}", error.full_message());
    }
    assert!(!errors.is_empty(), "no call fails because of {key}");
    server.command(&[b"DEL", key.as_bytes()]);
    queue.release_worker(&worker_id()).await.expect("answered");
    eventually(&format!("the job behind {key}"), async || {
        let found = queue.claim(&ask(9)).await.expect("claimed");
        found.iter().any(|one| one.payload == "x")
    })
    .await;
    is_sound(&*queue).await;
    true
}

/// Makes one call of each kind, and returns the errors of those that fail.
async fn errors(queue: &dyn Queue) -> Vec<Error> {
    let token = token(queue, "token");
    let pushed = queue.push(&with_options(queue), token.as_ref()).await;
    let plain = queue.push(&[NewJob::new("y")], None).await;
    let claimed = queue.claim(&ask(1)).await;
    let again = || Disposition::Retry { after: Duration::ZERO, error: "again".into() };
    let held = claimed.iter().flatten().map(|one| one.receipt.clone());
    let back: Vec<_> = held.map(|held| Settlement::new(held, again())).collect();
    let settled = queue.settle(&back).await;
    let recovered = queue.recover(many(10)).await;
    let stats = queue.stats().await;
    let errors = [pushed.err(), plain.err(), claimed.err(), settled.err()];
    errors.into_iter().chain([recovered.err(), stats.err()]).flatten().collect()
}

/// Whether the error says that the store cannot be used. If only a part of the call
/// failed, the cause of the error says so instead.
fn names_it(error: &Error) -> bool {
    let part = std::error::Error::source(error);
    let part = part.and_then(|part| part.downcast_ref::<Error>());
    [Some(error), part]
        .into_iter()
        .flatten()
        .any(|error| matches!(error, Error::Unusable { .. }))
}

fn keys(server: &Server) -> Vec<String> {
    let keys = strings(&server.command(&[b"KEYS", b"*"]));
    keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}
