//! Mutants of how jobs that follow others are pushed and shown.

use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a follower is pushed as a job of its own",
        promise: "followers::sqlite::each_line_of_a_file_follows_the_job: left: 0",
        file: "cli/src/push.rs",
        old: "        job.after.clone_from(&self.after);\n",
        new: "",
    },
    Mutant {
        name: "a held job is shown without its leader",
        promise: "followers::sqlite::a_held_job_is_shown_without_a_due_time: left: \"\"",
        file: "cli/src/view.rs",
        old: "            Some(printable(&format!(\"after {leader}\")))",
        new: "            let _leader = leader;\n            None",
    },
    Mutant {
        name: "the JSON of a held job has no leader",
        promise: "followers::sqlite::a_held_job_is_shown_without_a_due_time: left: String(\"\")",
        file: "cli/src/view.rs",
        old: "                after: leader.as_str(),",
        new: "                after: &leader.as_str()[..0],",
    },
    Mutant {
        name: "a cancelled follower hides its leader",
        promise: "followers::sqlite::the_result_of_a_cancelled_follower_names_its_leader: left: [(",
        file: "cli/src/result/report.rs",
        old: "leader.as_ref().map(JobId::as_str),",
        new: "leader.as_ref().map(JobId::as_str).filter(|_| false),",
    },
    Mutant {
        name: "the line of a cancelled follower hides its leader",
        promise: "followers::sqlite::the_result_of_a_cancelled_follower_names_its_leader: left: \"b cancelled",
        file: "cli/src/result/report.rs",
        old: "                Some(printable(&format!(\"it followed {leader}\")))",
        new: "                Some(format!(\"it followed {leader}\")).filter(|_| false)",
    },
    Mutant {
        name: "an unknown leader is refused without advice",
        promise: "followers::sqlite::a_job_that_cannot_follow_is_refused: no job with this id is remembered",
        file: "terminal/src/failure.rs",
        old: "            Some(\"push the job that is followed with --id or --keep-result\")",
        new: "            None",
    },
];
