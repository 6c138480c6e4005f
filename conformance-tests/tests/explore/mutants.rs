//! The mutants, and the words that their failures contain.

use std::{io, sync::Arc};

use relq_conformance::{
    Subject, async_trait,
    explore::Faults,
    overrides::{OverriddenQueue, Override, Right},
    own::{Keyspace, ProcessingList, Stream, Zset},
    proxy::FaultProxy,
};
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::{
    commands::{FreesTheKeyAgain, LooksForTheToken, OwnConnection, TRUSTS_THE_LOOK},
    looks::{
        AcksByALook, CancelsAPromotedJob, CancelsByALook, CountsSlotsApart,
        CountsTwice, ExtendsByALook, LooksForThePause, PeeksThenMoves, PurgesByALook,
        RecoversByALook, RedrivesByALook, SettlesByALook, TAKES_WHAT_WAS_SEEN,
    },
    races::RACES,
};

/// A healthy backend in which some calls, or some lines of scripts, are replaced.
#[derive(Clone, Copy)]
pub(crate) struct Mutant {
    /// Its name in [`RACES`].
    pub(crate) name: &'static str,
    right: &'static dyn Subject,
    overrides: fn(OwnConnection) -> Arc<dyn Override>,
    /// For each patch the name of a script, the text in it to replace, and the new text.
    patches: &'static [[&'static str; 3]],
    /// Words that the failure must contain: the call, or the check.
    pub(crate) words: &'static str,
    /// The faults of a run in which the search finds it, and how many random answers of
    /// the server must differ from the sorted ones.
    pub(crate) faults: Faults,
}

impl Mutant {
    /// The scene in which the search finds the mutant.
    pub(crate) fn scene(&self) -> &'static str {
        RACES.iter().find(|(name, _)| *name == self.name).unwrap().1
    }
}

#[async_trait]
impl Subject for Mutant {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        for [script, old, new] in self.patches {
            proxy.patch_script(script, old, new);
        }
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let own = OwnConnection::new(endpoint, queue);
        let queue = self.right.connect(endpoint, queue, environment).await?;
        let right = Right { queue, environment: environment.clone() };
        Ok(Arc::new(OverriddenQueue::new(right, (self.overrides)(own))))
    }
}

/// The keyspace backend, as a constant.
struct KeyspaceQueues;

#[async_trait]
impl Subject for KeyspaceQueues {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        Keyspace::default().connect(endpoint, queue, environment).await
    }
}

/// Overrides no call.
struct Nothing;

impl Override for Nothing {}

const NARROW: Mutant = Mutant {
    name: "",
    right: &Zset,
    overrides: |_| Arc::new(Nothing),
    patches: &[],
    words: "",
    faults: NONE,
};

const NONE: Faults = Faults { deaths: 0, late: 0, cuts: 0, draws: 0 };

pub(crate) const MUTANTS: [Mutant; 19] = [
    Mutant {
        name: "a settlement that looks before it acts",
        overrides: |_| Arc::new(SettlesByALook),
        words: "a settle 0D",
        ..NARROW
    },
    Mutant {
        name: "an extension that looks before it acts",
        overrides: |_| Arc::new(ExtendsByALook),
        words: "a extend 0 l0",
        ..NARROW
    },
    Mutant {
        name: "a redrive that reports what it saw",
        overrides: |_| Arc::new(RedrivesByALook),
        words: "o redrive",
        ..NARROW
    },
    Mutant {
        name: "a purge that reports what it saw",
        overrides: |_| Arc::new(PurgesByALook),
        words: "r purge-dead",
        ..NARROW
    },
    Mutant {
        name: "stats counted in two commands",
        overrides: |_| Arc::new(CountsTwice),
        words: "o stats",
        ..NARROW
    },
    Mutant {
        name: "a cancel of what an earlier command saw",
        overrides: |_| Arc::new(CancelsByALook),
        words: "CANCEL: NotFound",
        ..NARROW
    },
    Mutant {
        name: "a claim that looks for the pause before",
        overrides: |_| Arc::new(LooksForThePause),
        patches: &[[
            "claim",
            "if redis.call('EXISTS', paused) == 1 then return {now_us, 1, -1} end",
            "",
        ]],
        words: "a claim 1 l0",
        ..NARROW
    },
    Mutant {
        name: "a cancel against the promotion of a delayed job",
        overrides: |_| Arc::new(CancelsAPromotedJob),
        ..NARROW
    },
    Mutant {
        name: "stats of the workers that an earlier command saw",
        right: &ProcessingList,
        patches: &[[
            "stats",
            "if not are_sessions_known(keys.workers, keys.retired, 2) then return false end",
            "",
        ]],
        words: "o stats",
        ..NARROW
    },
    Mutant {
        name: "a reaper with a stale read across pages",
        overrides: |_| Arc::new(RecoversByALook),
        patches: &TAKES_WHAT_WAS_SEEN,
        words: "b settle 0D",
        ..NARROW
    },
    Mutant {
        name: "a unique key freed by the old holder",
        overrides: |own| Arc::new(FreesTheKeyAgain(own)),
        ..NARROW
    },
    Mutant {
        name: "a push token written after the push",
        overrides: |own| Arc::new(LooksForTheToken(own)),
        patches: &[TRUSTS_THE_LOOK],
        ..NARROW
    },
    Mutant {
        name: "batch slots counted against leases",
        right: &Stream,
        overrides: |_| Arc::new(CountsSlotsApart),
        words: "o batch 0",
        ..NARROW
    },
    Mutant {
        name: "a claim that counts only what it has drawn",
        right: &KeyspaceQueues,
        patches: &[[
            "pick",
            "if name then is_seen[name] = true end",
            "if name then is_seen[name] = true end answer[4] = #answer - 4",
        ]],
        words: "claim 1 l0",
        faults: Faults { draws: 1, ..NONE },
        ..NARROW
    },
    Mutant {
        name: "a recovery that drops a moved job",
        right: &ProcessingList,
        patches: &[[
            "take_back",
            "redis.call('RPUSH', keys.ready, element:sub(entry_at))",
            "if how == 'left' then \
             redis.call('RPUSH', keys.ready, element:sub(entry_at)) end",
        ]],
        words: "LOST, R1",
        faults: Faults { deaths: 1, ..NONE },
        ..NARROW
    },
    Mutant {
        name: "a recovery that counts an attempt for a moved job",
        right: &ProcessingList,
        patches: &[[
            "take_back",
            "redis.call('RPUSH', keys.ready, element:sub(entry_at))",
            "local job = read_entry(element) \
             redis.call('RPUSH', keys.ready, how == 'left' and element \
               or start_with_attempt(element, job.attempt + 1) .. element:sub(9))",
        ]],
        words: "R11: not this attempt",
        faults: Faults { deaths: 1, ..NONE },
        ..NARROW
    },
    Mutant {
        name: "a waiter served after it was given up",
        right: &ProcessingList,
        patches: &[[
            "take_back",
            "redis.call('ZADD', keys.retired, now_ms + watch_ms, session)",
            "",
        ]],
        words: "jobs in the stats: 0",
        faults: Faults { deaths: 1, ..NONE },
        ..NARROW
    },
    Mutant {
        name: "peek, then move",
        overrides: |_| Arc::new(PeeksThenMoves),
        words: "claim 1 l0",
        ..NARROW
    },
    Mutant {
        name: "an ack that looks before it acts",
        overrides: |_| Arc::new(AcksByALook),
        words: "b settle 0D",
        ..NARROW
    },
];
