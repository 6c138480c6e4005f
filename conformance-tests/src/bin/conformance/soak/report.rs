//! The report of a soak, as text or JSON.

use std::{
    io::{self, Write},
    num::{NonZeroU16, NonZeroU64},
};

use serde::Serialize;

use super::{Args, deployment::Kind, judge::Judgement};
use crate::SuiteResult;

/// The result of a soak, with the backend and the seconds for which jobs flowed.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    backend: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<Kind>,
    partitions: NonZeroU16,
    seconds: NonZeroU64,
    #[serde(flatten)]
    judgement: Judgement,
}

impl Report {
    pub(super) fn new(args: &Args, judgement: Judgement) -> Self {
        let (backend, servers) = (args.backend.name(), args.servers());
        Self {
            backend,
            servers,
            partitions: args.partitions,
            seconds: args.seconds,
            judgement,
        }
    }

    /// Whether no job was invented, none was lost that the replicas promise to keep, and
    /// no other problem was found.
    pub(super) fn is_clean(&self) -> bool {
        let Judgement { invented, problems, .. } = &self.judgement;
        *invented == 0 && problems.is_empty() && !self.judgement.has_broken_loss()
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
        let on = match self.servers {
            Some(Kind::Cluster) => " on a cluster",
            Some(Kind::Sentinel) => " behind sentinels",
            None => "",
        };
        let parts = match self.partitions.get() {
            1 => String::new(),
            parts => format!(" in {parts} parts"),
        };
        writeln!(
            out,
            "{}{parts}{on} under kill -9 for {} s",
            self.backend, self.seconds
        )?;
        let mut rows = vec![
            ("jobs accepted", it.accepted),
            ("refused by a unique key", it.refused),
            ("finished", it.finished),
            ("dead, as planned", it.dead),
            ("lost", it.lost),
            ("invented", it.invented),
            ("runs repeated", it.repeats),
            ("workers killed", it.kills.workers),
            ("producers killed", it.kills.producers),
        ];
        if let Some(allowed) = it.repeats_allowed {
            rows.push(("repeats that are allowed", allowed));
        }
        rows.extend(it.random_orders.map(|runs| ("random orders played", runs)));
        match &it.exposure {
            Some(exposure) => rows.extend(exposure.rows(it.undone)),
            None => rows.push(("servers killed", it.kills.servers)),
        }
        for (what, count) in rows {
            writeln!(out, "{what:<26} {count:>8}")?;
        }
        it.problems.iter().try_for_each(|problem| writeln!(out, "problem: {problem}"))
    }
}
