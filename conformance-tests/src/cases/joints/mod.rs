//! Calls that take several steps: nothing may be lost, repeated or reordered at a
//! joint, which is the boundary between two steps.
//!
//! The actors take steps of at most [`STEP`] jobs. Each call is made with one job less
//! than a step, with exactly one step, with one job more, and with one job more than
//! two steps. A job with a special property (a lost lease, a held key) is put at each
//! position beside a joint. A backend that handles each call in one step passes as
//! well.

mod large;
mod numbers;
mod operating;
mod pages;
mod pieces;
mod restoring;
mod working;

use bytes::Bytes;
use relq_core::{Delivery, capabilities::Order};

use crate::harness::{actor::Actor, checks::expect_exactly, store::STEP};

const PAGE: usize = STEP.get() as usize;

/// How many jobs the cases pass to a call: one less than a step handles, exactly one
/// step, one more, and one more than two steps.
const COUNTS: [usize; 4] = [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 1];

/// Returns the positions directly before and after each step boundary in a call of
/// `count` jobs. They are sorted, and each is returned once.
fn beside_joints(count: usize) -> Vec<usize> {
    let joints = [0, PAGE, 2 * PAGE, count];
    let beside = joints.iter().flat_map(|joint| [joint.wrapping_sub(1), *joint]);
    let mut positions: Vec<_> = beside.filter(|position| *position < count).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// Returns the payloads of `all` without those at the given positions.
fn without(all: &[Bytes], positions: &[usize]) -> Vec<Bytes> {
    let others = all.iter().enumerate().filter(|(at, _)| !positions.contains(at));
    others.map(|(_, payload)| payload.clone()).collect()
}

/// Claims `count` jobs without waiting, and asserts that it gets all of them.
async fn take_all(actor: &Actor, count: usize) -> Vec<Delivery> {
    let taken = actor.take(u32::try_from(count).expect("a small number")).await;
    assert_eq!(taken.len(), count, "R1: all jobs are claimed");
    taken
}

/// Asserts that `got` has exactly the wanted payloads, in this order if the backend
/// promises one.
fn assert_in_order(actor: &Actor, got: Vec<Bytes>, wanted: &[Bytes]) {
    if actor.capabilities().order == Order::Fifo {
        assert_eq!(got, wanted, "R13: the order of the jobs");
    } else {
        expect_exactly(got, wanted.to_vec());
    }
}
