//! Draws random sequences.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{
    operation::{
        Act, BatchDraft, BatchWord, DispositionKind, Draft, DraftSettlement, How,
        InjectedFault, Operation, RestoreDraft, RestoredAs, STATES, TickTime, Who,
    },
    sequence::{Sequence, Steps},
};

/// The largest number of operations of a sequence. Short sequences find fewer bugs.
const LONGEST: usize = 60;

/// The share of operations with a fault, in sequences with faults.
const FAULT_SHARE: f64 = 0.15;

/// Whether faults can be injected into a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    Some,
}

/// Whether a backend has batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batches {
    None,
    Some,
}

/// Whether a backend has schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedules {
    None,
    Some,
}

/// Whether a backend keeps results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    None,
    Some,
}

/// Whether the jobs of a sequence follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followers {
    None,
    Some,
}

/// Whether a sequence finds jobs by their ids, runs them now and lists workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookUps {
    None,
    Some,
}

/// Whether a sequence restores jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restores {
    None,
    Some,
}

/// The options of a backend that have operations of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) batches: Batches,
    pub(crate) schedules: Schedules,
    pub(crate) results: Results,
    pub(crate) followers: Followers,
    pub(crate) look_ups: LookUps,
    pub(crate) restores: Restores,
}

/// Draws sequences without faults and, if the backend supports faults, also with
/// faults.
pub(crate) fn sequences(faults: Faults, options: Options) -> BoxedStrategy<Sequence> {
    let steps = prop_oneof![Just(Steps::Usual), Just(Steps::OfOneJob)];
    let sequence = |(steps, operations)| Sequence { steps, operations };
    (steps, operations(faults, options)).prop_map(sequence).boxed()
}

fn operations(faults: Faults, options: Options) -> BoxedStrategy<Vec<Operation>> {
    let calm = vec(operation(options, Just(None).boxed()), 1..=LONGEST).boxed();
    match faults {
        Faults::None => calm,
        Faults::Some => {
            let faulty =
                operation(options, option::weighted(FAULT_SHARE, fault()).boxed());
            prop_oneof![1 => calm, 3 => vec(faulty, 1..=LONGEST)].boxed()
        }
    }
}

fn operation(
    options: Options,
    fault: BoxedStrategy<Option<InjectedFault>>,
) -> BoxedStrategy<Operation> {
    let act = match options.batches {
        Batches::None => act().boxed(),
        Batches::Some => prop_oneof![3 => act(), 2 => on_batch()].boxed(),
    };
    let act = match options.schedules {
        Schedules::None => act,
        Schedules::Some => prop_oneof![7 => act, 1 => on_schedule()].boxed(),
    };
    let act = match options.results {
        Results::None => act,
        Results::Some => prop_oneof![12 => act, 1 => on_result()].boxed(),
    };
    let act = match options.followers {
        Followers::None => act,
        Followers::Some => prop_oneof![3 => act, 1 => of_followers()].boxed(),
    };
    let act = match options.look_ups {
        LookUps::None => act,
        LookUps::Some => prop_oneof![5 => act, 1 => of_look_ups()].boxed(),
    };
    let act = match options.restores {
        Restores::None => act,
        Restores::Some => prop_oneof![7 => act, 1 => restore()].boxed(),
    };
    (act, fault)
        .prop_map(|((who, act), fault)| {
            let fault = fault.filter(|_| who != Who::Nobody);
            Operation { who, act, fault }
        })
        .boxed()
}

fn fault() -> impl Strategy<Value = InjectedFault> {
    let how = select(vec![
        How::Before,
        How::After,
        How::Ghost,
        How::CutBefore,
        How::CutAfter,
        How::Loading,
        How::OutOfMemory,
    ]);
    let step = prop_oneof![5 => Just(1), 2 => Just(2), 1 => Just(3)];
    (how, step).prop_map(|(how, step)| InjectedFault { how, step })
}

fn act() -> impl Strategy<Value = (Who, Act)> {
    prop_oneof![
        5 => vec(draft(), 1..=3).prop_map(|jobs| (Who::Producer, push(jobs, 0))),
        2 => (vec(draft(), 1..=3), 1..=3u8)
            .prop_map(|(jobs, token)| (Who::Producer, push(jobs, token))),
        2 => (1..=3u8).prop_map(|token| (Who::Producer, Act::Repeat { token })),
        18 => by_worker(),
        3 => recover(),
        5 => (1..=5u8).prop_map(|step| (Who::Nobody, Act::Advance(step))),
        5 => by_operator(),
        1 => Just((Who::Nobody, Act::Release)),
    ]
}

fn on_batch() -> impl Strategy<Value = (Who, Act)> {
    let options = || {
        (0..=2u8, 0..=2u8).prop_map(|(priority, slots)| BatchDraft {
            priority,
            slots,
            is_told_elsewhere: false,
        })
    };
    let word = prop_oneof![
        4 => Just(BatchWord::Seal),
        2 => options().prop_map(BatchWord::Alter),
        1 => Just(BatchWord::Cancel),
        1 => Just(BatchWord::Read),
    ];
    prop_oneof![
        4 => (1..=3u8, options())
            .prop_map(|(batch, options)| Act::CreateBatch { batch, options }),
        6 => (1..=3u8, vec(draft(), 1..=3), 0..=1u8)
            .prop_map(|(batch, jobs, token)| Act::Add { batch, jobs, token }),
        4 => (1..=3u8, word).prop_map(|(batch, word)| Act::Batch { batch, word }),
    ]
    .prop_map(|act| (Who::Producer, act))
}

/// Draws calls on schedules. Most name the same schedule and definition, so that ticks are
/// often pushed.
fn on_schedule() -> impl Strategy<Value = (Who, Act)> {
    let schedule = || prop_oneof![4 => Just(1u8), 1 => Just(2u8)];
    let definition = || prop_oneof![4 => Just(1u8), 1 => Just(2u8)];
    let at = (-1..=1i8).prop_map(TickTime::Now);
    prop_oneof![
        3 => (schedule(), definition())
            .prop_map(|(schedule, definition)| Act::PutSchedule { schedule, definition }),
        1 => schedule().prop_map(|schedule| Act::RemoveSchedule { schedule }),
        8 => (schedule(), definition(), at, draft()).prop_map(
            |(schedule, definition, at, job)| Act::Tick { schedule, definition, at, job }
        ),
        1 => Just(Act::ListSchedules),
    ]
    .prop_map(|act| (Who::Producer, act))
}

/// Draws calls on results. The results of jobs are read after each operation, too.
fn on_result() -> impl Strategy<Value = (Who, Act)> {
    let worker = select(vec![Who::WorkerA, Who::WorkerB]);
    let report =
        (0..=3u8, 1..=3u8).prop_map(|(receipt, value)| Act::Report { receipt, value });
    prop_oneof![
        4 => (worker, report),
        1 => (0..=5u8).prop_map(|job| (Who::Producer, Act::Result { job })),
    ]
}

/// Draws pushes of jobs that follow each other, and ends of the jobs that were claimed. The
/// jobs have few ids, so that some follow others, and chains come about.
fn of_followers() -> impl Strategy<Value = (Who, Act)> {
    let number = || prop_oneof![1 => Just(0), 3 => 1..=3u8];
    let link = (draft(), number(), number()).prop_map(|(mut draft, id, leader)| {
        draft.set('i', id);
        draft.set('f', leader);
        draft
    });
    let jobs = (vec(link, 1..=4), prop_oneof![3 => Just(0), 1 => 1..=3u8]);
    let ends = select(vec![
        DispositionKind::Done,
        DispositionKind::Done,
        DispositionKind::Discard,
        DispositionKind::Bury,
    ]);
    let end = (0..=4u8, ends).prop_map(|(receipt, disposition)| {
        Act::Settle(vec![DraftSettlement { receipt, disposition }])
    });
    let worker = || select(vec![Who::WorkerA, Who::WorkerB]);
    prop_oneof![
        6 => jobs.prop_map(|(jobs, token)| (Who::Producer, push(jobs, token))),
        4 => (worker(), end),
        2 => (0..=8u8).prop_map(|job| (Who::Operator, Act::Cancel { job })),
    ]
}

/// Draws calls that run jobs now, find jobs, and report and list workers.
fn of_look_ups() -> impl Strategy<Value = (Who, Act)> {
    let worker = select(vec![Who::WorkerA, Who::WorkerB]);
    let operator = prop_oneof![
        4 => (0..=8u8).prop_map(|job| Act::RunNow { job }),
        4 => (0..=8u8).prop_map(|job| Act::Show { job }),
        1 => Just(Act::Workers),
        1 => select(STATES.to_vec()).prop_map(Act::Newest),
    ];
    prop_oneof![
        5 => operator.prop_map(|act| (Who::Operator, act)),
        1 => worker.prop_map(|who| (who, Act::ReportWorker)),
    ]
}

/// Draws calls that restore jobs.
fn restore() -> impl Strategy<Value = (Who, Act)> {
    let state =
        select(vec![RestoredAs::Ready, RestoredAs::Scheduled, RestoredAs::Dead]);
    let job = (state, 0..=2u8, draft())
        .prop_map(|(state, attempt, job)| RestoreDraft { state, attempt, job });
    vec(job, 1..=3).prop_map(|jobs| (Who::Operator, Act::Restore { jobs }))
}

fn push(jobs: Vec<Draft>, token: u8) -> Act {
    Act::Push { jobs, token }
}

fn draft() -> impl Strategy<Value = Draft> {
    let rarely = |most: u8| prop_oneof![5 => Just(0), 1 => 1..=most];
    let most = [2, 2, 2, 2, 2, 2, 2, 1, 1, 2];
    most.map(rarely).prop_map(|options: [u8; 10]| {
        let mut draft = Draft::default();
        draft.0.iter_mut().zip(options).for_each(|(to, it)| *to = it);
        draft
    })
}

fn by_worker() -> impl Strategy<Value = (Who, Act)> {
    let claim =
        (1..=4u8, 1..=2u8).prop_map(|(max, lease)| Act::Claim { max, lease, wait: 0 });
    let position = (words(), 1..=3u8, 1..=2u8)
        .prop_map(|(words, max, lease)| Act::SettleAndClaim { words, max, lease });
    let extend = (vec(0..=4u8, 1..=3), 1..=2u8)
        .prop_map(|(receipts, lease)| Act::Extend { receipts, lease });
    let act = prop_oneof![
        7 => claim,
        6 => words().prop_map(Act::Settle),
        3 => position,
        2 => extend,
        1 => Just(Act::ReleaseWorker),
    ];
    (select(vec![Who::WorkerA, Who::WorkerB]), act)
}

fn words() -> impl Strategy<Value = Vec<DraftSettlement>> {
    let disposition = prop_oneof![
        3 => Just(DispositionKind::Done),
        1 => (1..=3u8).prop_map(DispositionKind::DoneWith),
        2 => (0..=2u8).prop_map(DispositionKind::Retry),
        1 => Just(DispositionKind::Bury),
        1 => Just(DispositionKind::GiveBack),
        1 => Just(DispositionKind::Discard),
        1 => (0..=2u8).prop_map(DispositionKind::Postpone),
    ];
    vec(
        (0..=4u8, disposition).prop_map(|(receipt, disposition)| DraftSettlement {
            receipt,
            disposition,
        }),
        1..=3,
    )
}

fn recover() -> impl Strategy<Value = (Who, Act)> {
    let page = prop_oneof![2 => 1..=2u8, 3 => Just(100)];
    (select(vec![Who::Reaper, Who::WorkerA, Who::WorkerB]), page)
        .prop_map(|(who, page)| (who, Act::Recover { page }))
}

fn by_operator() -> impl Strategy<Value = (Who, Act)> {
    let act = prop_oneof![
        6 => (0..=8u8).prop_map(|job| Act::Cancel { job }),
        1 => Just(Act::CancelUnknown),
        1 => Just(Act::Pause),
        3 => Just(Act::Resume),
        3 => Just(Act::Redrive),
        2 => (0..=8u8).prop_map(|job| Act::RedriveOne { job }),
        2 => Just(Act::PurgeDead),
        1 => Just(Act::Purge),
        2 => select(STATES.to_vec()).prop_map(Act::Peek),
    ];
    act.prop_map(|act| (Who::Operator, act))
}
