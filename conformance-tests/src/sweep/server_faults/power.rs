//! DURABLE: tests a power cut after each write of a server that syncs every write to
//! the disk before it replies.

use std::collections::{BTreeMap, BTreeSet};

use relq_core::{
    Queue,
    batch::{BatchState, BatchStatus},
    operator::JobState,
};

use super::{
    append_only_file::{Recorded, ends},
    calls,
    fixture::{FaultFixture, JobPlace, Places, recover_all},
    tape::{Mark, Tape, look, told_elsewhere},
};
use crate::server::Server;

/// R1, R5: starts a server on each prefix of the writes that a power cut can leave.
/// Every call whose writes are complete in the prefix is done. A call that was in
/// progress is done completely or not at all for each job.
pub(super) async fn every_aof_prefix(fixture: &FaultFixture) {
    let mut tape = Tape::start(fixture).await;
    calls::play(&mut tape).await;
    let writes = tape.recorded.writes();

    let cuts = ends(&writes);
    assert!(cuts.len() > 50, "only {} writes were recorded", cuts.len());
    for cut in cuts {
        let after = tape.recorded.after_cut(&writes[..cut]);
        let queue = fixture.connect(&after.server).await;
        let found = look(fixture, &after.server, &*queue).await;
        judge(&tape.marks, cut, &found, &after);
        if !found.batches.is_empty() {
            each_completion_is_told(fixture, &after.server, &*queue).await;
        }
    }
}

fn judge(marks: &[Mark], cut: usize, found: &Places, after: &Recorded) {
    let next = marks.partition_point(|mark| mark.end <= cut);
    let before = marks[..next].last().expect("the first mark is where the file begins");
    let during = marks.get(next).unwrap_or(before);
    let context =
        format!("cut at byte {cut}, in {} after {}", during.call, before.call);
    if during.call.starts_with("push") {
        let is_whole = [&before.places, &during.places].contains(&found);
        assert!(is_whole, "R5, all or nothing: {context}: {found:?}");
    }
    let (old, new) = (&before.places, &during.places);
    for name in names(&found.jobs, &old.jobs, &new.jobs) {
        let is = found.jobs.get(name);
        let ends = [old.jobs.get(name), new.jobs.get(name)];
        let is_legal = ends.contains(&is) || is_promoted(is, ends);
        assert!(is_legal, "{context}: {name} is {is:?}, not {ends:?}");
    }
    let legal = [&old.schedules, &new.schedules];
    assert!(
        legal.contains(&&found.schedules),
        "R28: {context}: {found:?}, not {legal:?}"
    );
    for id in names(&found.results, &old.results, &new.results) {
        let is = found.results.get(id);
        let legal = [old.results.get(id), new.results.get(id)];
        assert!(legal.contains(&is), "R29: {context}: {id} is told as {is:?}");
    }
    for id in names(&found.batches, &old.batches, &new.batches) {
        let is = found.batches.get(id);
        let between = (old.batches.get(id), new.batches.get(id));
        assert!(
            is_between(is, between),
            "{context}: {is:?} is not between {between:?}"
        );
    }
    if before.end == cut {
        let digest = after.server.command(&[b"DEBUG", b"DIGEST"]);
        assert_eq!(digest, before.digest, "{context}");
    }
}

/// Whether a job is as a claim leaves it that has made the job ready, because it was due,
/// and has not leased it yet. `ends` is how the job was before the call and after it.
fn is_promoted(is: Option<&JobPlace>, ends: [Option<&JobPlace>; 2]) -> bool {
    let [Some((JobState::Scheduled, attempt)), Some((JobState::Leased, _))] = ends
    else {
        return false;
    };
    is == Some(&(JobState::Ready, *attempt))
}

fn names<'a, N: Ord, T>(
    found: &'a BTreeMap<N, T>,
    old: &'a BTreeMap<N, T>,
    new: &'a BTreeMap<N, T>,
) -> BTreeSet<&'a N> {
    found.keys().chain(old.keys()).chain(new.keys()).collect()
}

/// B1, B2, B3: whether the status of a batch is valid after a power cut in the middle
/// of a call. A call may settle jobs one after the other and then claim others, so each
/// count must lie between its values before and after the call. The batch must have
/// completed in the step that ended its last piece.
fn is_between(
    is: Option<&BatchStatus>,
    (old, new): (Option<&BatchStatus>, Option<&BatchStatus>),
) -> bool {
    let (Some(is), Some(old), Some(new)) = (is, old, new) else {
        return is == old || is == new;
    };
    let counts = |status: &BatchStatus| {
        [status.total, status.done, status.failed, status.dropped]
    };
    let mut counted =
        counts(is).into_iter().zip(counts(old).into_iter().zip(counts(new)));
    let live = is.leased + is.waiting;
    counted.all(|(is, (old, new))| (old..=new).contains(&is))
        && is.total == is.ended() + live
        && is.limit.is_none_or(|most| is.leased <= u64::from(most.get()))
        && (live > 0 || is.state == BatchState::Open || is.state.is_completed())
        && [old.state, new.state].contains(&is.state)
}

/// B5: asserts that after a recovery each completed batch has pushed its completion
/// job, and that no other batch has.
async fn each_completion_is_told(
    fixture: &FaultFixture,
    server: &Server,
    queue: &dyn Queue,
) {
    recover_all(queue).await;
    let places = look(fixture, server, queue).await;
    for status in places.batches.values() {
        let completion = told_elsewhere(status.id.as_str());
        let is_told = places.jobs.contains_key(&completion);
        assert_eq!(is_told, status.outcome().is_some(), "{status:?}: {places:?}");
    }
}
