//! Mutants of how results of jobs reach their producers.

use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the output of a command is no result",
        promise: "result::sqlite::a_push_waits_for_the_output_of_the_command: left: []",
        file: "cli/src/work/command.rs",
        old: "Ok(result) => Ok(job.set_result(result)?),",
        new: "Ok(_) => Ok(()),",
    },
    Mutant {
        name: "a command that writes directly has no result",
        promise: "result::sqlite::the_output_is_printed_and_is_the_result_without_a_tag: left: \"\"",
        file: "cli/src/work/command.rs",
        old: "OutputLines::Unchanged if !job.keeps_result() => Stdio::inherit(),",
        new: "OutputLines::Unchanged => Stdio::inherit(),",
    },
    Mutant {
        name: "an output that is too long is an empty result",
        promise: "unit work::result_bytes::tests::an_output_that_is_too_long_is_none: one byte more",
        file: "cli/src/work/result_bytes.rs",
        old: "Written { bytes: Vec::new(), is_too_long: true }",
        new: "Written { bytes: Vec::new(), is_too_long: false }",
    },
    Mutant {
        name: "the time for which a result is kept is ignored",
        promise: "result::sqlite::results_are_read_by_the_ids: done",
        file: "cli/src/job_options.rs",
        old: "        job.keep_result = self.keep_result;\n",
        new: "",
    },
    Mutant {
        name: "a dead job hides the jobs that are left",
        promise: "unit result::outcome::tests::the_gravest_outcome_decides_the_exit_code: one has not ended",
        file: "cli/src/result/outcome.rs",
        old: "[UNKNOWN, LEFT, DIED, NO_RESULT]",
        new: "[UNKNOWN, DIED, LEFT, NO_RESULT]",
    },
    Mutant {
        name: "a wait has no end",
        promise: "result::sqlite::a_push_says_what_became_of_a_job_that_is_not_done: the program ends",
        file: "cli/src/result/waiting.rs",
        old: "if has_ended || left.is_some_and(|left| left.is_zero()) {",
        new: "if has_ended {",
    },
];
