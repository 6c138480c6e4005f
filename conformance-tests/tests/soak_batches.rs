//! Two batches of unequal size and priority, worked on by eight processes that are
//! killed. The program `conformance` judges B1 to B5.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

fn soak(backend: &str) {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_conformance"));
    let ended = soak.args(["soak-batches", "--backend", backend]).output().unwrap();

    let said = String::from_utf8_lossy(&ended.stdout);
    let complained = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}{complained}");
}

/// B1, B2, B3, B4, B5, B10: killed workers lose no piece and hold no slot, and each
/// batch completes once, although no client waits for it.
#[test]
fn each_batch_completes_once_on_sqlite() {
    soak("sqlite");
}

/// B1, B2, B3, B4, B5, B10: killed workers lose no piece of a batch in a Redis stream
/// and hold no slot, and each batch completes once.
#[test]
fn each_batch_completes_once_on_stream() {
    soak("stream");
}
