//! Followers are pushed, and their leaders end, at the same moment as calls of others
//! (R30, R5).

use relq_core::{Disposition, Error, NewJob, Settlement, outcome::Settled};

use super::fixture::{following, named};
use crate::{
    cases::{case, company::at_once},
    harness::{
        checks::{expect_exactly, id, numbered, payloads},
        store::Store,
    },
};

case!(a_refused_follower_refuses_no_other_caller: R30 R5 => Followers ClientIds);
/// Callers push on one connection at once. The pushes that follow an unknown job are
/// refused, and no others.
async fn a_refused_follower_refuses_no_other_caller(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(named("leader")).await;
    let held = actor.take_one().await;
    let calls = (0..12).map(|caller: usize| {
        let actor = actor.clone();
        let own = NewJob::new(format!("job {caller}"));
        let jobs = match caller % 3 {
            0 => vec![own],
            1 => vec![own.after(id("leader"))],
            _ => vec![own.after(id("never")), NewJob::new("with it")],
        };
        async move { actor.push(&jobs, None).await }
    });

    let answers = at_once(calls).await;

    for (caller, answer) in answers.iter().enumerate() {
        let is_right = match caller % 3 {
            2 => matches!(answer, Err(Error::CannotFollow { .. })),
            _ => answer.is_ok(),
        };
        assert!(is_right, "R5: caller {caller}: {answer:?}");
    }
    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.scheduled), (4, 4), "R5 R30");
    actor.finish(&held).await;
    let wanted = numbered(12).into_iter().enumerate();
    let wanted = wanted.filter(|(caller, _)| caller % 3 < 2).map(|(_, job)| job);
    expect_exactly(payloads(&actor.take(12).await), wanted);
}

case!(leaders_that_end_at_once_release_their_own: R30 R7 => Followers ClientIds);
/// Leaders of one worker end by calls at once, each in its own way. Each releases or
/// cancels its own followers.
async fn leaders_that_end_at_once_release_their_own(store: &Store) {
    let actor = store.actor("worker").await;
    let leaders = ["0", "1", "2", "3", "4", "5", "6", "7"];
    actor.store(leaders.map(named)).await;
    let held = actor.take(8).await;
    actor
        .store(leaders.map(|leader| following(leader, format!("after {leader}"))))
        .await;
    let calls = held.into_iter().map(|one| {
        let actor = actor.clone();
        let end = match one.payload[0] % 4 {
            0 => Disposition::Done,
            1 => Disposition::Discard,
            2 => Disposition::GiveBack,
            _ => Disposition::Dead { error: "no".to_owned() },
        };
        let settlement = Settlement::new(one.receipt, end);
        async move { actor.settle(&[settlement]).await }
    });

    for answer in at_once(calls).await {
        assert_eq!(answer.expect("answered"), [Settled::Applied], "R7");
    }

    actor.recover_all().await;
    let given_back = ["2", "6"];
    let served = given_back.into_iter().chain(["after 0", "after 4"]);
    let taken = payloads(&actor.take(8).await);
    expect_exactly(taken, served.map(Into::into));
    let held = [("2", "after 2"), ("3", "after 3"), ("6", "after 6"), ("7", "after 7")];
    actor.assert_held(held).await;
    assert_eq!(actor.figures().await.cancelled, 2, "R30");
}

case!(a_push_beside_the_end_of_its_leader_is_not_stranded: R30 => Followers ClientIds);
/// A follower is pushed at the same moment at which its leader is done. It is delivered
/// whichever comes first.
async fn a_push_beside_the_end_of_its_leader_is_not_stranded(store: &Store) {
    let (producer, worker) =
        (store.actor("producer").await, store.actor("worker").await);
    for round in 0..20 {
        let leader = format!("leader {round}");
        worker.store_one(NewJob::new("leader").id(id(&leader))).await;
        let held = worker.take_one().await;
        let (producer, ending) = (producer.clone(), worker.clone());
        let pushing = tokio::spawn(async move {
            producer.store_one(following(&leader, "follower")).await;
        });
        let ending = tokio::spawn(async move { ending.finish(&held).await });
        pushing.await.expect("the push ends");
        ending.await.expect("the settlement ends");

        let follower = worker.take_one().await;

        assert_eq!(follower.payload, "follower", "R30: round {round}");
        worker.finish(&follower).await;
    }
}

case!(a_push_beside_the_cancellation_of_its_leader_never_runs: R30
    => Followers ClientIds);
/// A follower is pushed at the same moment at which its leader is cancelled. It is refused,
/// or cancelled with it.
async fn a_push_beside_the_cancellation_of_its_leader_never_runs(store: &Store) {
    let (producer, operator) =
        (store.actor("producer").await, store.actor("operator").await);
    for round in 0..20 {
        let leader = format!("leader {round}");
        operator.store_one(NewJob::new("leader").id(id(&leader))).await;
        let (producer, cancelling) = (producer.clone(), operator.clone());
        let named = id(&leader);
        let pushing = tokio::spawn(async move {
            producer.push(&[following(&leader, "follower")], None).await
        });
        let cancelling = tokio::spawn(async move { cancelling.cancel(&named).await });
        let pushed = pushing.await.expect("the push ends");
        cancelling.await.expect("the cancel ends").expect("answered");

        let is_right = match &pushed {
            Ok(_) => true,
            Err(error) => matches!(error, Error::CannotFollow { .. }),
        };
        assert!(is_right, "R30: round {round}: {pushed:?}");
        operator.assert_none_ready("its leader was cancelled").await;
        assert_eq!(operator.figures().await.unfinished(), 0, "R30: round {round}");
    }
}
