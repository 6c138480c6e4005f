//! Generates random scenarios.

use proptest::{collection::vec, option, prelude::*, sample::select};
use relq_core::error::Operation;

use crate::scenario::{
    Abandoned, AttemptPlan, CallEffect, CallFault, End, Fault, FaultKind,
    HandlerResult, JobPlan, OnCancellation, Outage, Scenario, Settings, Suspend,
};

pub(crate) fn scenarios() -> impl Strategy<Value = Scenario> {
    prop_oneof![7 => any_scenario().boxed(), 1 => busy_scenario().boxed()]
}

/// Generates a scenario in which one call settles several jobs and two calls are
/// pending at the same time. Many short jobs start at once, and one or two settlements
/// fail.
fn busy_scenario() -> impl Strategy<Value = Scenario> {
    let fault = || {
        let kind = prop_oneof![
            select(vec![FaultKind::Invalid, FaultKind::Unsupported, FaultKind::Full]),
            effect().prop_map(FaultKind::LostReply),
        ];
        (0..6_u32, 1..60_u64, 1..60_u64, kind).prop_map(|(nth, before, after, kind)| {
            let operation = Operation::Settle;
            CallFault { operation, nth, fault: Fault { before, after, kind } }
        })
    };
    let jobs = vec((job(false), 0..80_u64), 20..40);
    (any::<u16>(), settings(), 16..24_u32, jobs, vec(fault(), 1..3)).prop_map(
        |(seed, settings, concurrency, jobs, faults)| {
            let of_job = |(job, runs): (JobPlan, u64)| {
                let runs = runs.max(20);
                let attempts = job.attempts.into_iter();
                let attempts = attempts.map(|attempt| AttemptPlan { runs, ..attempt });
                let attempts = attempts.collect();
                JobPlan { push_at: 0, lease: None, cancel_at: None, attempts, ..job }
            };
            Scenario {
                seed: u64::from(seed),
                settings: Settings { concurrency, max_jobs_per_call: 1000, ..settings },
                jobs: jobs.into_iter().map(of_job).collect(),
                abandoned: Abandoned { jobs: 0, lease: 100 },
                faults,
                outages: Vec::new(),
                suspends: Vec::new(),
                end: End::WhenFinished,
                other_queue: None,
            }
        },
    )
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    settings().prop_flat_map(|settings| {
        let lease = settings.lease;
        // A worker with 16 slots or more has two calls pending at once. It gets more
        // jobs, so that many of them end together.
        let most = if settings.concurrency < 16 { 14 } else { 40 };
        let faults = prop_oneof![
            2 => Just(Vec::new()).boxed(),
            3 => vec(call_fault(lease), 1..10).boxed(),
        ];
        (
            any::<u16>(),
            vec(job(settings.leases_are_shared), 0..most),
            abandoned(),
            faults,
            prop_oneof![3 => Just(Vec::new()).boxed(), 2 => vec(outage(), 1..3).boxed()],
            prop_oneof![8 => Just(Vec::new()).boxed(), 1 => vec(suspend(), 1..3).boxed()],
            end(),
            Just(settings),
        )
            .prop_map(|(seed, mut jobs, abandoned, faults, outages, suspends, end, settings)| {
                    if matches!(end, End::UntilEmpty) {
                        // Push all jobs at the start: otherwise the queue could be
                        // empty before the last push.
                        jobs.iter_mut().for_each(|job| job.push_at = 0);
                    }

                let seed = u64::from(seed);
                Scenario {
                    seed,
                    settings,
                    jobs,
                    abandoned,
                    faults,
                    outages,
                    suspends,
                    end,
                    other_queue: None,
                }
            })
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    (
        prop_oneof![3 => 1..6_u32, 1 => 16..24_u32],
        select(vec![1500, 3000, 9000, 30_000_u64]),
        select(vec![0, 500, 4000, 12_000_u64]),
        option::weighted(0.2, 500..8000_u64),
        select(vec![0, 2000, 20_000_u64]),
        option::weighted(0.3, 200..5000_u64),
        select(vec![1, 2, 5, 1000_u32]),
        1..4_u32,
        prop::bool::weighted(0.15),
    )
        .prop_map(|of| Settings {
            concurrency: of.0,
            prefetch: 0,
            lease: of.1,
            grace: of.2,
            timeout: of.3,
            give_up_after: of.4,
            reap_every: of.5,
            max_jobs_per_call: of.6,
            recover_page: of.7,
            leases_are_shared: of.8,
        })
}

fn job(leases_are_shared: bool) -> impl Strategy<Value = JobPlan> {
    (
        prop_oneof![Just(0), 0..6000_u64],
        option::weighted(0.3, select(vec![400, 1500, 12_000_u64])),
        1..4_u16,
        vec(attempt(), 0..3),
        option::weighted(0.15, 100..9000_u64),
    )
        .prop_map(move |(push_at, lease, max_attempts, attempts, cancel_at)| {
            JobPlan {
                push_at,
                // If the backend has one lease for all jobs, no job has its own.
                lease: lease.filter(|_| !leases_are_shared),
                max_attempts,
                attempts,
                cancel_at,
            }
        })
}

fn attempt() -> impl Strategy<Value = AttemptPlan> {
    let result = prop_oneof![
        4 => Just(HandlerResult::Done),
        2 => Just(HandlerResult::Retry),
        1 => (0..3000_u64).prop_map(HandlerResult::RetryAfter),
        1 => Just(HandlerResult::Dead),
        1 => Just(HandlerResult::Discard),
        1 => (0..3000_u64).prop_map(HandlerResult::Postpone),
        1 => Just(HandlerResult::Panic),
    ];
    // The value 20 is frequent, so that jobs often end together and one call settles
    // them.
    let runs = prop_oneof![Just(20_u64), 0..50_u64, 50..3000_u64, 3000..25_000_u64];
    let on_cancellation = select(vec![
        OnCancellation::Continue,
        OnCancellation::End,
        OnCancellation::End,
    ]);
    (runs, result, on_cancellation).prop_map(|(runs, result, on_cancellation)| {
        AttemptPlan { runs, result, on_cancellation }
    })
}

fn abandoned() -> impl Strategy<Value = Abandoned> {
    (prop_oneof![2 => Just(0), 1 => 1..8_u32], 100..6000_u64)
        .prop_map(|(jobs, lease)| Abandoned { jobs, lease })
}

/// Generates one of the operations that a worker calls.
fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Settle),
        3 => Just(Operation::Claim),
        3 => Just(Operation::Extend),
        1 => Just(Operation::Recover),
        1 => Just(Operation::ReleaseWorker),
        1 => Just(Operation::Connect),
        1 => Just(Operation::Stats),
    ]
}

fn effect() -> impl Strategy<Value = CallEffect> {
    select(vec![CallEffect::Applied, CallEffect::NotApplied])
}

fn call_fault(lease: u64) -> impl Strategy<Value = CallFault> {
    let late = prop_oneof![3 => Just(1_u64), 1 => 1..200_u64, 2 => 1..2 * lease];
    let kind = prop_oneof![
        3 => Just(FaultKind::None),
        4 => effect().prop_map(FaultKind::LostReply),
        1 => effect().prop_map(FaultKind::Silence),
        1 => Just(FaultKind::Unreadable),
        2 => Just(FaultKind::Unavailable),
        1 => Just(FaultKind::Full),
        1 => select(vec![FaultKind::ReadOnly, FaultKind::Denied, FaultKind::Unusable]),
        1 => select(vec![FaultKind::Invalid, FaultKind::Unsupported]),
    ];
    let nth = prop_oneof![0..4_u32, 0..30_u32];
    (operation(), nth, late.clone(), late, kind).prop_map(
        |(operation, nth, before, after, kind)| {
            let is_bounded = matches!(operation, Operation::Claim | Operation::Settle);
            let kind = match kind {
                // Only a claim or a settlement may get no reply, because the worker
                // limits their time. All other calls end, because a backend limits the
                // time of every call itself.
                FaultKind::Silence(effect) if !is_bounded => {
                    FaultKind::LostReply(effect)
                }
                FaultKind::None if operation == Operation::Extend && nth % 2 == 0 => {
                    let is_applied = nth % 4 == 0;
                    FaultKind::InPart(match is_applied {
                        true => CallEffect::Applied,
                        false => CallEffect::NotApplied,
                    })
                }
                kind => kind,
            };
            CallFault { operation, nth, fault: Fault { before, after, kind } }
        },
    )
}

/// A time in which one of two stores does not answer heartbeats.
fn outage_in_part() -> impl Strategy<Value = Outage> {
    let length = prop_oneof![10..2000_u64, 2000..40_000_u64];
    (0..12_000_u64, length, effect()).prop_map(|(from, length, effect)| Outage {
        operation: Some(Operation::Extend),
        from,
        length,
        kind: FaultKind::InPart(effect),
    })
}

fn outage() -> impl Strategy<Value = Outage> {
    prop_oneof![4 => outage_of_all(), 1 => outage_in_part()]
}

fn outage_of_all() -> impl Strategy<Value = Outage> {
    let kind = prop_oneof![
        4 => Just(FaultKind::Unavailable),
        2 => effect().prop_map(FaultKind::LostReply),
        1 => Just(FaultKind::Full),
        2 => select(vec![FaultKind::ReadOnly, FaultKind::Denied, FaultKind::Unusable]),
        1 => Just(FaultKind::WrongServer),
    ];
    let length = prop_oneof![10..2000_u64, 2000..40_000_u64];
    (option::weighted(0.5, operation()), 0..12_000_u64, length, kind).prop_map(
        |(operation, from, length, kind)| Outage { operation, from, length, kind },
    )
}

fn suspend() -> impl Strategy<Value = Suspend> {
    (0..10_000_u64, prop_oneof![50..3000_u64, 3000..60_000_u64])
        .prop_map(|(at, length)| Suspend { at, length })
}

fn end() -> impl Strategy<Value = End> {
    let halt = option::weighted(0.3, 0..10_000_u64);
    prop_oneof![
        3 => (0..20_000_u64, halt).prop_map(|(at, halt_after)| End::Stop { at, halt_after }),
        3 => Just(End::WhenFinished),
        1 => Just(End::UntilEmpty),
    ]
}
