//! Several callers push at the same moment, and each gets the result of its own push.

use std::collections::BTreeMap;

use bytes::Bytes;
use relq_core::{
    Error, JobId, NewJob,
    error::Effect,
    limits::MAX_JOBS_PER_CALL,
    outcome::{DuplicateOf, Pushed},
};

use super::{at_once, survivable_faults};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{drain, duplicate, expect_exactly, id, key, token},
        store::Store,
        times::{BRIEF, PAST_BRIEF},
    },
};

type Answer = Result<Vec<Pushed>, Error>;

/// Returns the jobs that each of `callers` callers pushes. The first caller has one
/// job, the second two, the third three, and then the counts repeat.
fn jobs_of(callers: usize) -> Vec<Vec<NewJob>> {
    let job = |caller, number| NewJob::new(format!("job {number} of caller {caller}"));
    let of_one = |caller| (0..=caller % 3).map(|number| job(caller, number)).collect();
    (0..callers).map(of_one).collect()
}

/// Pushes the jobs of all callers at once, on one connection.
async fn push_at_once(actor: &Actor, of_callers: Vec<Vec<NewJob>>) -> Vec<Answer> {
    at_once(of_callers.into_iter().map(|jobs| {
        let actor = actor.clone();
        async move { actor.push(&jobs, None).await }
    }))
    .await
}

/// Drains the queue. Returns the payload of each delivered job by the job's id.
async fn drained(actor: &Actor) -> BTreeMap<JobId, Bytes> {
    let all = drain(actor).await;
    let count = all.len();
    let by_id: BTreeMap<_, _> =
        all.into_iter().map(|one| (one.job().clone(), one.payload)).collect();
    assert_eq!(by_id.len(), count, "each job has an id of its own");
    by_id
}

fn payload(stored: &BTreeMap<JobId, Bytes>, pushed: &Pushed) -> Option<Bytes> {
    stored.get(pushed.job()).cloned()
}

case!(pushes_at_once_answer_for_their_own_jobs: R1 R4);
/// When callers push at once, each gets the ids of its own jobs, and every job is
/// stored once.
async fn pushes_at_once_answer_for_their_own_jobs(store: &Store) {
    let actor = store.actor("producer").await;
    for callers in [2, 3, 12] {
        let of_callers = jobs_of(callers);

        let answers = push_at_once(&actor, of_callers.clone()).await;

        let mut stored = drained(&actor).await;
        for (jobs, answer) in of_callers.iter().zip(answers) {
            let answer = answer.expect("the push is taken");
            let ids = answer.iter().map(|one| payload(&stored, one));
            let wanted: Vec<_> =
                jobs.iter().map(|job| Some(job.payload.clone())).collect();
            assert_eq!(ids.collect::<Vec<_>>(), wanted, "{callers} callers");
            answer.iter().for_each(|one| drop(stored.remove(one.job())));
        }
        assert!(stored.is_empty(), "nobody pushed these: {stored:?}");
    }
}

case!(pushes_at_once_of_an_id_store_one: R4 => ClientIds);
/// Several callers push at once, each a job of its own and a job with an id that all
/// share. One caller stores the shared id; the others get a duplicate.
async fn pushes_at_once_of_an_id_store_one(store: &Store) {
    let actor = store.actor("producer").await;
    for callers in [2, 3, 12] {
        let shared = id(&format!("shared by {callers}"));
        let jobs = |caller: usize| {
            let own = id(&format!("own {caller} of {callers}"));
            [("own", own), ("shared", shared.clone())]
                .map(|(payload, id)| NewJob::new(payload).id(id))
                .to_vec()
        };

        let answers = push_at_once(&actor, (0..callers).map(jobs).collect()).await;

        let answers: Vec<_> =
            answers.into_iter().map(Result::unwrap_or_default).collect();
        for (caller, answer) in answers.iter().enumerate() {
            let own = id(&format!("own {caller} of {callers}"));
            assert_eq!(answer[0], Pushed::Stored(own), "caller {caller}");
        }
        let of_shared: Vec<_> =
            answers.iter().map(|answer| answer[1].clone()).collect();
        assert_one_stored(&of_shared, DuplicateOf::Id);
        assert_eq!(drain(&actor).await.len(), callers + 1);
    }
}

case!(pushes_at_once_of_a_key_store_one: R16 => Unique);
/// Several callers push at once, each a job of its own and a job with a unique key that
/// all share. One caller stores its job; the others get a duplicate with that job's id.
async fn pushes_at_once_of_a_key_store_one(store: &Store) {
    let actor = store.actor("producer").await;
    for callers in [2, 3, 12] {
        let jobs = |_| vec![NewJob::new("own"), NewJob::new("shared").unique(key("k"))];

        let answers = push_at_once(&actor, (0..callers).map(jobs).collect()).await;

        let answers: Vec<_> =
            answers.into_iter().map(Result::unwrap_or_default).collect();
        assert!(answers.iter().all(|answer| matches!(answer[0], Pushed::Stored(_))));
        let of_shared: Vec<_> =
            answers.iter().map(|answer| answer[1].clone()).collect();
        assert_one_stored(&of_shared, DuplicateOf::UniqueKey);
        assert_eq!(drain(&actor).await.len(), callers + 1);
    }
}

/// Asserts that one push stored its job, and all others are duplicates of that job.
fn assert_one_stored(all: &[Pushed], by: DuplicateOf) {
    let is_stored = |one: &&Pushed| matches!(one, Pushed::Stored(_));
    let stored: Vec<_> = all.iter().filter(is_stored).collect();
    assert_eq!(stored.len(), 1, "{all:?}");
    let others = all.iter().filter(|one| !is_stored(one));
    let duplicate = duplicate(stored[0].job(), by);
    assert!(others.into_iter().all(|one| *one == duplicate), "{all:?}");
}

case!(pushes_at_once_of_tokens_are_calls_of_their_own: R4 => PushTokens);
/// Several callers push at once with tokens. Those with the same token store their jobs
/// once and get the same result. A caller with another token stores its own jobs.
async fn pushes_at_once_of_tokens_are_calls_of_their_own(store: &Store) {
    let actor = store.actor("producer").await;
    let calls = (0..6).map(|caller| {
        let actor = actor.clone();
        let (token, jobs) = (token(&format!("token-{}", caller % 2)), caller % 2 + 1);
        async move { actor.push(&vec!["job".into(); jobs], Some(&token)).await }
    });

    let answers = at_once(calls).await;

    let answers: Vec<_> = answers.into_iter().map(Result::unwrap_or_default).collect();
    for caller in 0..6 {
        assert_eq!(answers[caller].len(), caller % 2 + 1, "caller {caller}");
        assert_eq!(answers[caller], answers[caller % 2], "caller {caller}");
    }
    assert_eq!(drain(&actor).await.len(), 1 + 2);
}

case!(an_invalid_push_at_once_with_others_spoils_none: R5 R21);
/// Several callers push at once, and one push is invalid. That push is refused and
/// stores nothing; the valid pushes are stored.
async fn an_invalid_push_at_once_with_others_spoils_none(store: &Store) {
    let actor = store.actor("producer").await;
    let too_many = MAX_JOBS_PER_CALL.get() as usize + 1;
    let of_callers = vec![
        vec!["first".into()],
        vec!["refused".into(); too_many],
        vec!["last".into()],
    ];

    let answers = push_at_once(&actor, of_callers).await;

    let is_taken: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(is_taken, [true, false, true]);
    let stored = drained(&actor).await;
    expect_exactly(stored.into_values(), ["first".into(), "last".into()]);
}

case!(each_push_at_once_knows_what_became_of_its_jobs: R5 R21 @ redis);
/// Callers push at once, and a fault hits a command of their pushes. The jobs of each
/// caller are stored together or not at all. The caller's result says correctly whether
/// they were stored, were not stored, or may have been stored.
async fn each_push_at_once_knows_what_became_of_its_jobs(store: &Store) {
    for fault in survivable_faults() {
        for command in 1..=3 {
            for is_plain in [true, false] {
                let actor = store.actor("producer").await;
                let mut of_callers = jobs_of(4);
                if !is_plain {
                    let class = actor.class();
                    let late =
                        |job: NewJob| class.fit(job.delay(BRIEF).header("a", "b"));
                    of_callers = of_callers
                        .into_iter()
                        .map(|jobs| jobs.into_iter().map(late).collect())
                        .collect();
                }
                store.inject("producer", command, fault.clone());

                let answers = push_at_once(&actor, of_callers.clone()).await;

                store.heal().await;
                store.advance(PAST_BRIEF).await;
                actor.recover_all().await;
                let mut stored: Vec<_> = drained(&actor).await.into_values().collect();
                for (jobs, answer) in of_callers.iter().zip(&answers) {
                    let what = format!("{fault:?} at command {command}: {answer:?}");
                    let is_own =
                        |one: &Bytes| jobs.iter().any(|job| job.payload == *one);
                    let own = stored.extract_if(.., |one| is_own(one)).count();
                    assert!(
                        is_true_of(answer, own, jobs.len()),
                        "{own} stored: {what}"
                    );
                }
                assert!(stored.is_empty(), "nobody pushed these: {stored:?}");
            }
        }
    }
}

/// Returns whether the answer to a push is true: the caller pushed `pushed` jobs, and
/// `stored` of them are in the store.
fn is_true_of(answer: &Answer, stored: usize, pushed: usize) -> bool {
    let effect = answer.as_ref().map_or_else(Error::effect, |_| Effect::Yes);
    match effect {
        Effect::Yes => stored == pushed,
        Effect::No => stored == 0,
        Effect::Maybe => stored == 0 || stored == pushed,
    }
}
