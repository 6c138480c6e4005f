//! Mutants of the demo and its judge.

use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the judge counts no lost job",
        promise: "unit demo::judge::tests::lost_and_repeated_jobs_are_told_by_the_records_alone: lost: 0",
        file: "cli/src/demo/judge.rs",
        old: "count(|runs| runs.ends == 0)",
        new: "count(|runs| runs.starts > 0 && runs.ends == 0 && runs.starts < runs.ends)",
    },
    Mutant {
        name: "the judge takes a started job as finished",
        promise: "unit demo::judge::tests::lost_and_repeated_jobs_are_told_by_the_records_alone: finished: 3",
        file: "cli/src/demo/judge.rs",
        old: "count(|runs| runs.ends > 0)",
        new: "count(|runs| runs.starts > 0)",
    },
    Mutant {
        name: "the judge counts no repeated job",
        promise: "unit demo::judge::tests::lost_and_repeated_jobs_are_told_by_the_records_alone: repeated: 0",
        file: "cli/src/demo/judge.rs",
        old: "count(|runs| runs.starts > 1)",
        new: "count(|runs| runs.ends > 1)",
    },
    Mutant {
        name: "the judge passes over jobs that were never pushed",
        promise: "unit demo::judge::tests::lost_and_repeated_jobs_are_told_by_the_records_alone: problems: []",
        file: "cli/src/demo/judge.rs",
        old: "                self.problems.push(format!(\"job {job} was worked and never pushed\"));\n",
        new: "",
    },
    Mutant {
        name: "half a record is passed over",
        promise: "unit demo::record::tests::half_a_record_is_not_passed_over: called `Result::unwrap_err()` on an `Ok` value",
        file: "cli/src/demo/record.rs",
        old: "let lines = bytes.chunks(SIZE).map(parse);",
        new: "let lines = bytes.chunks_exact(SIZE).map(parse);",
    },
    Mutant {
        name: "the demo kills no worker",
        promise: "demo::sqlite::the_demo_loses_nothing_and_leaves_nothing: kills",
        file: "cli/src/demo.rs",
        old: "if now >= kill_at && stats.ready > 0 {",
        new: "if now >= kill_at && stats.ready == u64::MAX {",
    },
    Mutant {
        name: "the demo leaves its queue",
        promise: "demo::the_demo_leaves_no_key_on_the_server: left: ",
        file: "cli/src/demo.rs",
        old: "        self.queues.remove(&self.url).await?;\n",
        new: "",
    },
];
