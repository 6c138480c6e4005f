//! Mutants of `relq cron` and of the schedulers of `relq work --schedules`.

use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a schedule ignores its policy for missed ticks",
        promise: "cron::sqlite::the_list_has_the_times_and_the_ticks_of_each_schedule: poll",
        file: "cli/src/cron/add.rs",
        old: "Ok(spec.missed(self.missed))",
        new: "Ok(spec)",
    },
    Mutant {
        name: "a schedule ignores its zone",
        promise: "cron::sqlite::a_schedule_is_stored_once_and_replaced: nightly created",
        file: "cli/src/cron/add.rs",
        old: "let zone = self.zone.as_deref().unwrap_or(\"UTC\");",
        new: "let zone = self.zone.as_deref().map_or(\"UTC\", |_| \"UTC\");",
    },
    Mutant {
        name: "a schedule ignores the options of its job",
        promise: "cron::sqlite::the_list_has_the_times_and_the_ticks_of_each_schedule: left: ",
        file: "cli/src/cron/add.rs",
        old: "self.options.job(Bytes::from(payload.clone().into_vec()))",
        new: "relq::NewJob::new(Bytes::from(payload.clone().into_vec()))",
    },
    Mutant {
        name: "the removal of an unknown schedule succeeds",
        promise: "cron::sqlite::a_removed_schedule_is_gone: left: Some(0)",
        file: "cli/src/cron/remove.rs",
        old: "if !schedules_of(&*queue)?.remove_schedule(&self.name).await? {",
        new: "if !schedules_of(&*queue)?.remove_schedule(&self.name).await? && self.format.is_json() {",
    },
    Mutant {
        name: "the first of the next ticks is missing",
        promise: "cron::sqlite::the_next_ticks_are_printed: left: ",
        file: "cli/src/cron/next.rs",
        old: "successors(first, next).take(self.limit.get() as usize)",
        new: "successors(first, next).take(self.limit.get() as usize).skip(1)",
    },
    Mutant {
        name: "the next tick is the one after the last, also when it was missed",
        promise: "unit cron::stored::tests::the_next_tick_is_the_one_that_a_scheduler_pushes: left: 6",
        file: "cli/src/cron/stored.rs",
        old: "due.ticks.first().copied().or(due.next)",
        new: "spec.next_after(schedule.last_tick).or(due.next)",
    },
    Mutant {
        name: "what is not a schedule is not named",
        promise: "cron::what_is_not_a_schedule_is_named_and_stops_no_command: left: 0",
        file: "cli/src/cron/list.rs",
        old: "for entry in &found.unreadable {",
        new: "for entry in found.unreadable.iter().take(0) {",
    },
    Mutant {
        name: "a worker without schedulers runs on",
        promise: "unit work::schedules::tests::a_scheduler_that_panics_is_told: Elapsed",
        file: "cli/src/work/schedules.rs",
        old: "                ended.cancel();\n",
        new: "",
    },
    Mutant {
        name: "a worker starts no scheduler",
        promise: "cron::sqlite::a_worker_pushes_the_jobs_of_schedules_and_runs_them: two ticks have run",
        file: "cli/src/work.rs",
        old: "        if self.schedules {\n",
        new: "        if self.schedules && self.strict {\n",
    },
];
