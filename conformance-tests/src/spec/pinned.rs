//! Sequences that once broke a rule. Every backend runs them first, so that a fixed bug
//! is found if it returns.

/// A replay line, and a description of the bug that it found.
pub(crate) struct Pinned {
    pub(crate) line: &'static str,
    pub(crate) found: &'static str,
}

/// All pinned sequences, the newest last. Where no faults can be injected they run
/// without faults, and on each backend without the options that it does not support.
pub(crate) const PINNED: &[Pinned] = &[
    Pinned {
        line: "p push je1; - advance 3; a claim 1 l1; o redrive !loading4",
        found: "a redrive that was refused after its first page said that nothing \
                was done",
    },
    Pinned {
        line: "p push jo1; p push je1; p push j; p push j; p push j; p push j; \
               p push j; a claim 2 l2; - advance 3; r recover 1; \
               a claim 1 l1 !loading2",
        found: "a claim that could not bury what had expired lost what it had leased \
                beside it",
    },
    Pinned {
        line: "p push je1r1; - advance 3; a claim 1 l1; o redrive; p push jr1",
        found: "a redriven job lost its unique key to the next push (a mutant)",
    },
    Pinned {
        line: "p push jp2; p push jp2; a claim 1 l1; a release-worker",
        found: "a job of another priority was given back behind its equals (a mutant)",
    },
    Pinned {
        line: "p push ji1; p push j,ji1 !after1; o cancel 0",
        found: "the model took a cancellation for wrong, because a push of the same id \
                whose answer was lost might have been meant",
    },
    Pinned {
        line: "p push j,j,j; a claim 3 l1; a settle 0D,1D !after1",
        found: "many jobs were settled one by one (a mutant)",
    },
    Pinned {
        line: "steps of one job; p push je1 t1; b claim 1 l2; p push j; - advance 3; \
               r recover 1; b settle-and-claim 0D 1 l1",
        found: "a claim that came with a settlement found nothing, because it buried as \
                many expired jobs as a step has (relq, before 0.1)",
    },
    Pinned {
        line: "steps of one job; p create 1 p0s0; p push j; p add 1 j; \
               a claim 2 l1 !cut-after2",
        found: "the model took a piece for waiting that a later step of a claim had \
                leased, whose answer was lost",
    },
    Pinned {
        line: "steps of one job; p create 3 p0s0; p create 1 p0s0; p add 1 j; p add 3 j",
        found: "a settlement ended the last pieces of more batches than a step has jobs, \
                and completed one of them (relq, before 0.1)",
    },
    Pinned {
        line: "p create 1 p0s0; p add 1 j,j; a claim 2 l1; a settle 1D; a settle 1D; \
               p seal 1; a settle 0R0",
        found: "an acknowledgement of a piece was counted although it was refused (a \
                mutant)",
    },
    Pinned {
        line: "p create 1 p1s1; p add 1 j,j; a claim 2 l1; - advance 4; \
               r recover 100; b claim 2 l1; b settle 0G; b claim 2 l1",
        found: "a lease that ended did not free its slot (a mutant)",
    },
    Pinned {
        line: "p create 1 p0s2; p add 1 j,j,j; p create 2 p1s0; p add 2 j; p seal 1; \
               a claim 3 l1; o cancel-batch 1; a settle 1G; a extend 0 l1",
        found: "a cancelled batch was still worked on (a mutant)",
    },
    Pinned {
        line: "steps of one job; p push jm1; p push jm1; a claim 3 l1",
        found: "a recovery of several steps dropped the element of a buried job, skipped \
                the next expired lease, and said that nothing was left (relq, before 0.1)",
    },
    Pinned {
        line: "p create 1 p0s0; p add 1 jm1; a claim 1 l1; a settle 0B; p batch 1",
        found: "a piece that died was not counted as failed (a mutant)",
    },
    Pinned {
        line: "p push j,j; a claim 2 l1; o cancel 1; a extend 1 l1; a extend 1 l1",
        found: "a second heartbeat for a cancelled job, as one is sent when the answer \
                to the first is lost, was told that the lease was lost (relq-memory, \
                before 0.1)",
    },
    Pinned {
        line: "p push ji1,jf1; a claim 1 l1; a settle 0X !after1; r recover 100",
        found: "a recovery that found no orphan, although there may be one, had the model \
                look for orphans for ever (this model, before 0.1)",
    },
    Pinned {
        line: "p push jr1; a claim 1 l1; a settle 0R1; o restore ready0:jr1; a claim 1 l1",
        found: "the model took a restore for a push that moves the due time of the job \
                that holds its key (this model, before 0.1)",
    },
];
