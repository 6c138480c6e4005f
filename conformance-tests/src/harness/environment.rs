//! Gives a backend a clock and random bytes that are the same in every run, so that a
//! run can be repeated exactly.

use std::sync::{Arc, Mutex, PoisonError};

use relq_core::environment::{Environment, Randomness};

use crate::proxy::VirtualClock;

/// Returns an environment that takes times from `clock`, and derives ids and nonces
/// from `seed`.
pub(crate) fn seeded(clock: &VirtualClock, seed: u64) -> Environment {
    let random = Arc::new(SeededRandomness::new(seed));
    Environment::new(Arc::new(clock.clone()), random)
}

/// A source of pseudo-random bytes, which are the same for the same seed (SplitMix64).
#[derive(Debug)]
struct SeededRandomness(Mutex<u64>);

impl SeededRandomness {
    fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl Randomness for SeededRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            let word = Self::next(&mut state).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
