//! Mutants of what is printed: the output of commands, and text for a terminal.

use crate::mutant::Mutant;

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a last line without a newline is dropped",
        promise: "work_output::sqlite::a_last_line_without_its_newline_gets_one: left: ",
        file: "cli/src/work/whole_lines.rs",
        old: "        if !self.unfinished.is_empty() {\n            self.end_line(&mut lines);\n        }\n        lines\n",
        new: "        self.unfinished.clear();\n        lines.append(&mut self.unfinished);\n        lines\n",
    },
    Mutant {
        name: "outputs of several commands mix in a line",
        promise: "work_output::sqlite::lines_of_commands_that_run_at_once_stay_whole: left: ",
        file: "cli/src/work/command.rs",
        old: "OutputLines::Whole => Format::Lines(WholeLines::new(Vec::new())),",
        new: "OutputLines::Whole => Format::Unchanged,",
    },
    Mutant {
        name: "one command at a time gets no tag",
        promise: "work_output::sqlite::one_command_at_a_time_may_have_a_tag: left: \"payload\"",
        file: "cli/src/work.rs",
        old: "            (true, _) => OutputLines::Tagged,\n            (false, 1) => OutputLines::Unchanged,\n            (false, _) => OutputLines::Whole,\n",
        new: "            (_, 1) => OutputLines::Unchanged,\n            (true, _) => OutputLines::Tagged,\n            (false, _) => OutputLines::Whole,\n",
    },
    Mutant {
        name: "the tag becomes part of the last error",
        promise: "work_output::sqlite::the_error_of_a_job_has_no_tag: left: ",
        file: "cli/src/work/forward.rs",
        old: "        if let Some(copy) = &self.copy {\n            copy.keep(output);\n        }\n        let bytes = match &mut self.format {\n            Format::Unchanged => output.to_vec(),\n            Format::Lines(lines) => lines.add(output),\n        };\n",
        new: "        let bytes = match &mut self.format {\n            Format::Unchanged => output.to_vec(),\n            Format::Lines(lines) => lines.add(output),\n        };\n        if let Some(copy) = &self.copy {\n            copy.keep(&bytes);\n        }\n",
    },
    Mutant {
        name: "a long line loses what is beyond 64 KiB",
        promise: "work_output::sqlite::a_line_longer_than_64_kib_is_cut_into_pieces: left: ",
        file: "cli/src/work/whole_lines.rs",
        old: "            text = rest;\n",
        new: "            text = &rest[rest.len()..];\n",
    },
    Mutant {
        name: "a command runs on when the output of relq is closed",
        promise: "work_output::a_command_ends_when_the_output_of_relq_is_closed: the program ends",
        file: "cli/src/work/forward.rs",
        old: "            Source::Closed\n        }\n    }\n}\n",
        new: "            Source::Open\n        }\n    }\n}\n",
    },
    Mutant {
        name: "a job waits for processes that its command left",
        promise: "work::sqlite::a_command_that_leaves_a_process_behind_ends_all_the_same: it does not come true: the program ends",
        file: "cli/src/work/forward.rs",
        old: "            source = self.forward_until_silent().await;\n",
        new: "            source = self.forward_until(pending::<()>()).await;\n",
    },
    Mutant {
        name: "a payload steers the terminal",
        promise: "operate::sqlite::a_payload_is_shown_without_steering_the_terminal: \\u{1b}[2J",
        file: "terminal/src/printable.rs",
        old: "        Ok(text) => beginning(text, columns),",
        new: "        Ok(text) => text.to_owned(),",
    },
    Mutant {
        name: "a hidden character is shown in a name",
        promise: "shown::sqlite::names_are_shown_with_escapes: in ",
        file: "terminal/src/printable.rs",
        old: "        if is_shown(c) && marks <= MOST_MARKS {",
        new: "        if !c.is_control() && marks <= MOST_MARKS {",
    },
    Mutant {
        name: "the last error of a job steers the terminal",
        promise: "shown::sqlite::an_error_is_shown_with_escapes: exit status: 1",
        file: "cli/src/view.rs",
        old: "            Some(printable(&why))\n",
        new: "            Some(why)\n",
    },
    Mutant {
        name: "a payload that is not UTF-8 loses bytes in JSON",
        promise: "push::sqlite::each_line_is_a_job: left: ",
        file: "cli/src/view.rs",
        old: "payload_base64: text.is_none().then(|| STANDARD.encode(&job.payload)),",
        new: "payload_base64: text\n                .is_none()\n                .then(|| STANDARD.encode(String::from_utf8_lossy(&job.payload).as_bytes())),",
    },
];
