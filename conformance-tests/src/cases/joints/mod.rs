//! Calls that take several steps: what happens at the joints between two steps.
//!
//! The actors go in steps of [`STEP`] jobs. Each call is made with one job less than a
//! step, with exactly one step, with one more, and with one more than two steps; what is
//! special about a job is so once for each place beside a joint. A backend that handles
//! each call in one step passes as well.

mod large;
mod operating;
mod pieces;
mod working;

use bytes::Bytes;
use relq_core::{Delivery, capabilities::Order};

use crate::harness::{actor::Actor, checks::expect_exactly, store::STEP};

const PAGE: usize = STEP.get() as usize;

/// The numbers of jobs of a call.
const COUNTS: [usize; 4] = [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 1];

/// The positions beside the joints of a call about `count` jobs, each once.
fn beside_joints(count: usize) -> Vec<usize> {
    let joints = [0, PAGE, 2 * PAGE, count];
    let beside = joints.iter().flat_map(|joint| [joint.wrapping_sub(1), *joint]);
    let mut positions: Vec<_> = beside.filter(|position| *position < count).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// The payloads without those at these positions.
fn without(all: &[Bytes], positions: &[usize]) -> Vec<Bytes> {
    let others = all.iter().enumerate().filter(|(at, _)| !positions.contains(at));
    others.map(|(_, payload)| payload.clone()).collect()
}

/// Claims `count` jobs in one call where the backend promises to find them.
async fn take_all(actor: &Actor, count: usize) -> Vec<Delivery> {
    let taken = actor.take(u32::try_from(count).expect("a small number")).await;
    assert_eq!(taken.len(), count, "all jobs are claimed");
    taken
}

/// Asserts that these are the wanted payloads, in their order if the backend promises
/// one.
fn assert_in_order(actor: &Actor, got: Vec<Bytes>, wanted: &[Bytes]) {
    if actor.capabilities().order == Order::Fifo {
        assert_eq!(got, wanted);
    } else {
        expect_exactly(got, wanted.to_vec());
    }
}
