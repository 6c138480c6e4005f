//! Mutants of the view in a terminal.

use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the view deletes for any key",
        promise: "top::sqlite::a_dead_job_is_deleted_after_a_question: nothing was changed",
        file: "cli/src/top/keys.rs",
        old: "KeyCode::Char('y' | 'Y') => {",
        new: "KeyCode::Char('y' | 'Y') | KeyCode::Enter => {",
    },
    Mutant {
        name: "the view retries without a question",
        promise: "top::sqlite::a_dead_job_is_retried_after_a_question: y/N",
        file: "cli/src/top/keys.rs",
        old: "if change.question().is_some() {",
        new: "if change.question().is_some_and(|it| !it.starts_with(\"retry\")) {",
    },
    Mutant {
        name: "the view changes queues although it is read-only",
        promise: "top::sqlite::a_view_that_is_read_only_changes_nothing: --read-only",
        file: "cli/src/top/keys.rs",
        old: "if self.settings.is_read_only {",
        new: "if self.settings.is_read_only && self.queue.is_none() {",
    },
    Mutant {
        name: "the view retries all dead jobs for one",
        promise: "top::sqlite::a_dead_job_is_retried_after_a_question: 1 ready again",
        file: "cli/src/top/changes.rs",
        old: "Self::Retry(id) => retried(queue.redrive(&only(id)).await?),",
        new: "Self::Retry(_) => retried(queue.redrive(&Selection::All).await?),",
    },
    Mutant {
        name: "the view shows payloads as they are",
        promise: "top::sqlite::a_hostile_payload_stays_text: on the screen: true",
        file: "cli/src/top/draw/lists.rs",
        old: "Cell::plain(payload(&job.payload, MOST_OF_TEXT))",
        new: "Cell::plain(String::from_utf8_lossy(&job.payload))",
    },
    Mutant {
        name: "the terminal stays raw after a panic",
        promise: "unit top::screen::tests::a_panic_sets_the_terminal_back_before_its_message: assertion failed: !screen.alternate_screen()",
        file: "cli/src/top/screen.rs",
        old: "    panic::set_hook(Box::new(move |panic| {\n        restore();\n",
        new: "    panic::set_hook(Box::new(move |panic| {\n",
    },
    Mutant {
        name: "the terminal stays raw after an end",
        promise: "top_terminal::sqlite::every_end_sets_the_terminal_back: left: ",
        file: "cli/src/top/screen.rs",
        old: "        let _ = disable_raw_mode();\n",
        new: "",
    },
    Mutant {
        name: "an outage ends the view",
        promise: "top_terminal::an_outage_is_shown_and_ends_by_itself: the store cannot be read for",
        file: "cli/src/top/answers.rs",
        old: "self.outage = Some((since, why));",
        new: "self.outage = Some((since, why)).filter(|_| self.overview.all.is_none());",
    },
    Mutant {
        name: "a page of jobs is shown again in place of the next",
        promise: "top::sqlite::many_jobs_are_shown_page_by_page: job-069",
        file: "cli/src/top/reading.rs",
        old: "    ask.after.clone_from(&at.after);\n",
        new: "",
    },
    Mutant {
        name: "NO_COLOR is not obeyed",
        promise: "top_terminal::no_color_turns_the_colours_off: NO_COLOR=1",
        file: "cli/src/top.rs",
        old: "has_colours: !is_set(\"NO_COLOR\"),",
        new: "has_colours: !is_set(\"NO_COLOR\") || is_set(\"TERM\"),",
    },
    Mutant {
        name: "the selection stays on its row and not on its queue",
        promise: "unit top::overview::tests::the_selection_follows_its_queue: left: \"a\"",
        file: "cli/src/top/listing.rs",
        old: "let found = self.key.as_ref().and_then(same);",
        new: "let found = self.key.as_ref().and_then(same).filter(|_| keys.is_empty());",
    },
];
