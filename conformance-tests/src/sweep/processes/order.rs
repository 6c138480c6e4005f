//! The order: a file that says what a child has to do.

use std::{fs, io, path::Path, str::FromStr, time::Duration};

use relq_core::{Delivery, JobId, Receipt};

use super::Side;
use crate::sweep::LEASE;

const FILE: &str = "order";

/// Where a fault hits a victim: the index of the step, from 0, and the side of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) step: usize,
    pub(super) side: Side,
}

impl Spot {
    pub(super) const FIRST: Self = Self { step: 0, side: Side::Before };
}

/// The act that a child has to run, and its circumstances.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) scenario: usize,
    /// How far the store's clock was advanced.
    pub(super) elapsed: Duration,
    /// The deliveries that the victim holds.
    pub(super) held: Vec<Delivery>,
    /// Where to stop; `None` to run the act to its end and count its steps.
    pub(super) spot: Option<Spot>,
}

impl Order {
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let elapsed = self.elapsed.as_millis();
        let mut text = format!("scenario {}\nelapsed {elapsed}\n", self.scenario);
        for one in &self.held {
            let receipt = &one.receipt;
            let (job, token) = (receipt.job().as_str(), hex(receipt.token()));
            text += &format!("held {} {token} {job}\n", receipt.attempt());
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
                (_, receipt) => order.held.push(delivery(receipt)),
            }
        }
        order
    }
}

fn spot(step: &str, side: Side) -> Spot {
    Spot { step: number(step), side }
}

/// The part of a delivery that a victim needs: its receipt.
fn delivery(text: &str) -> Delivery {
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().expect("three words");
    let (attempt, token, job) = (number(next()), bytes(next()), next());
    let job = JobId::new(job).expect("the parent had it from the backend");
    Delivery::new(Receipt::new(job, attempt, token), "", LEASE)
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
        let receipt =
            Receipt::new(JobId::new("a job").expect("valid"), 3, vec![0, 171, 255]);
        let order = Order {
            scenario: 7,
            elapsed: Duration::from_secs(41),
            held: vec![Delivery::new(receipt.clone(), "", LEASE)],
            spot: Some(Spot { step: 12, side: Side::After }),
        };

        order.write(folder.path()).expect("the folder can be written to");
        let read = Order::read(folder.path());

        assert_eq!(read.scenario, 7);
        assert_eq!(read.elapsed, order.elapsed);
        assert_eq!(read.held[0].receipt, receipt);
        assert_eq!(read.spot, order.spot);
    }
}
