//! The file that tells a child process which scenario to run, and where to stop.

use std::{fs, io, path::Path, str::FromStr, time::Duration};

use relq_core::{JobId, Receipt};

use super::Side;

const FILE: &str = "order";

/// The point at which a fault hits a victim: before or after the step with this index,
/// which counts from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) step: usize,
    pub(super) side: Side,
}

impl Spot {
    pub(super) const FIRST: Self = Self { step: 0, side: Side::Before };
}

/// The scenario that a child process has to run, and the state in which its calls
/// begin.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) scenario: usize,
    /// By how much the store's clock was advanced when the store was prepared.
    pub(super) elapsed: Duration,
    /// The receipts of the victim, the newest last.
    pub(super) receipts: Vec<Receipt>,
    /// The ids of the jobs that the setup pushed.
    pub(super) jobs: Vec<JobId>,
    /// Where the child must stop. `None` lets it run to its end and count its steps.
    pub(super) spot: Option<Spot>,
}

impl Order {
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let elapsed = self.elapsed.as_millis();
        let mut text = format!("scenario {}\nelapsed {elapsed}\n", self.scenario);
        for job in &self.jobs {
            text += &format!("job {}\n", job.as_str());
        }
        for receipt in &self.receipts {
            let (job, token) = (receipt.job().as_str(), hex(receipt.token()));
            text += &format!("receipt {} {token} {job}\n", receipt.attempt());
        }
        if let Some(Spot { step, side }) = self.spot {
            let side = if side == Side::Before { "before" } else { "after" };
            text += &format!("{side} {step}");
        }
        fs::write(folder.join(FILE), text)
    }

    pub(super) fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(FILE)).expect("the parent wrote it");
        let mut order = Self::default();
        for line in text.lines() {
            match line.split_once(' ').expect("a word and its value") {
                ("scenario", index) => order.scenario = number(index),
                ("elapsed", ms) => order.elapsed = Duration::from_millis(number(ms)),
                ("before", step) => order.spot = Some(spot(step, Side::Before)),
                ("after", step) => order.spot = Some(spot(step, Side::After)),
                ("job", id) => order.jobs.push(job(id)),
                (_, text) => order.receipts.push(receipt(text)),
            }
        }
        order
    }
}

fn spot(step: &str, side: Side) -> Spot {
    Spot { step: number(step), side }
}

fn receipt(text: &str) -> Receipt {
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().expect("three words");
    let (attempt, token) = (number(next()), bytes(next()));
    Receipt::new(job(next()), attempt, token)
}

fn job(id: &str) -> JobId {
    JobId::new(id).expect("the parent had it from the backend")
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse().ok().expect("the parent wrote a number")
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reads_what_its_parent_wrote() {
        let folder = tempfile::tempdir().expect("the system gives a folder");
        let receipt = Receipt::new(job("a job"), 3, vec![0, 171, 255]);
        let order = Order {
            scenario: 7,
            elapsed: Duration::from_secs(41),
            receipts: vec![receipt],
            jobs: vec![job("a job"), job("another")],
            spot: Some(Spot { step: 12, side: Side::After }),
        };

        order.write(folder.path()).expect("the folder can be written to");
        let read = Order::read(folder.path());

        assert_eq!(read.scenario, 7);
        assert_eq!(read.elapsed, order.elapsed);
        assert_eq!(read.receipts, order.receipts);
        assert_eq!(read.jobs, order.jobs);
        assert_eq!(read.spot, order.spot);
    }
}
