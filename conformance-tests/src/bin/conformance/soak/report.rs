//! The report of a soak.

use std::{
    io::{self, Write},
    num::NonZeroU64,
};

use serde::Serialize;

use super::judge::Judgement;
use crate::{SuiteResult, backend::Backend};

/// The result of a soak.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    backend: &'static str,
    seconds: NonZeroU64,
    #[serde(flatten)]
    judgement: Judgement,
}

impl Report {
    pub(super) fn new(
        backend: Backend,
        seconds: NonZeroU64,
        judgement: Judgement,
    ) -> Self {
        Self { backend: backend.name(), seconds, judgement }
    }

    /// Whether no job is lost or invented, and there is no other problem.
    pub(super) fn is_clean(&self) -> bool {
        let Judgement { lost, invented, problems, .. } = &self.judgement;
        *lost == 0 && *invented == 0 && problems.is_empty()
    }

    pub(super) fn print(&self, as_json: bool) -> SuiteResult<()> {
        let mut out = io::stdout().lock();
        if as_json {
            writeln!(out, "{}", serde_json::to_string_pretty(self)?)?;
        } else {
            self.print_table(&mut out)?;
        }
        Ok(())
    }

    fn print_table(&self, out: &mut impl Write) -> io::Result<()> {
        let it = &self.judgement;
        writeln!(out, "{} under kill -9 for {} s", self.backend, self.seconds)?;
        for (what, count) in [
            ("jobs accepted", it.accepted),
            ("refused by a unique key", it.refused),
            ("finished", it.finished),
            ("dead, as planned", it.dead),
            ("lost", it.lost),
            ("invented", it.invented),
            ("runs repeated", it.repeats),
            ("repeats that kills allow", it.repeats_allowed),
            ("workers killed", it.kills.workers),
            ("producers killed", it.kills.producers),
            ("servers killed", it.kills.servers),
        ] {
            writeln!(out, "{what:<26} {count:>8}")?;
        }
        it.problems.iter().try_for_each(|problem| writeln!(out, "problem: {problem}"))
    }
}
