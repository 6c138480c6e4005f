//! `relq recover`: recovers jobs and promotes due jobs, as workers do by themselves.

use std::{fmt, num::NonZeroU32};

use serde::Serialize;

use crate::{failure::CommandResult, format::Format, target::Target};

/// How many jobs one call recovers: few enough that no call blocks the store for long.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// Make jobs of dead workers and due jobs ready
///
/// Every worker does this by itself. The command is useful when no worker runs.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let mut report = Report::default();
        loop {
            let page = queue.recover(PAGE).await?;
            report.requeued += u64::from(page.requeued);
            report.buried += u64::from(page.buried);
            report.promoted += u64::from(page.promoted);
            if !page.more {
                return self.format.show(&report);
            }
        }
    }
}

#[derive(Serialize, Default)]
struct Report {
    requeued: u64,
    buried: u64,
    promoted: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requeued  {}", self.requeued)?;
        writeln!(f, "buried    {}", self.buried)?;
        writeln!(f, "promoted  {}", self.promoted)
    }
}
