//! The names of the mutants, each with the scene in which the search finds it. The
//! tables of `MUTANTS.md` have them too.

pub(crate) const RACES: [(&str, &str); 19] = [
    ("a settlement that looks before it acts", "settle_against_recover"),
    ("an extension that looks before it acts", "extend_against_recover"),
    ("a redrive that reports what it saw", "redrive_against_purge_of_the_dead"),
    ("a purge that reports what it saw", "redrive_against_purge_of_the_dead"),
    ("stats counted in two commands", "stats_against_claim"),
    ("a cancel of what an earlier command saw", "cancel_against_claim"),
    ("a claim that looks for the pause before", "pause_against_claim"),
    ("a cancel against the promotion of a delayed job", "cancel_against_promotion"),
    ("stats of the workers that an earlier command saw", "stats_against_claim"),
    ("a reaper with a stale read across pages", "release_against_recover"),
    ("a unique key freed by the old holder", "a_freed_key_against_two_pushes"),
    ("a push token written after the push", "a_push_by_two_at_once"),
    ("batch slots counted against leases", "the_last_two_jobs_of_a_batch"),
    ("a claim that counts only what it has drawn", "two_workers_share_two_jobs"),
    ("a recovery that drops a moved job", "waiting_claim_against_anothers_release"),
    (
        "a recovery that counts an attempt for a moved job",
        "waiting_claim_against_release",
    ),
    ("a waiter served after it was given up", "waiting_claim_against_release"),
    ("peek, then move", "two_workers_share_two_jobs"),
    ("an ack that looks before it acts", "cancel_against_recover"),
];
