//! The cost of parsing the commands and replies that pass the proxy, without a server.
//!
//! ```sh
//! cargo bench -p relq-conformance
//! ```

use divan::{Bencher, black_box, counter::BytesCount};

/// Commands in one read.
const COMMANDS: usize = 100;

fn main() {
    divan::main();
}

fn requests() -> Vec<u8> {
    let payload = "x".repeat(256);
    let push = format!("*3\r\n$5\r\nLPUSH\r\n$5\r\nqueue\r\n$256\r\n{payload}\r\n");
    push.repeat(COMMANDS).into_bytes()
}

/// The reply to a claim: numbers, and entries.
fn replies() -> Vec<u8> {
    let entry = format!("$285\r\n{}\r\n", "x".repeat(285));
    format!("*4\r\n$16\r\n1795176978840519\r\n:0\r\n:-1\r\n{entry}")
        .repeat(COMMANDS)
        .into_bytes()
}

#[divan::bench(items_count = COMMANDS)]
fn read_requests(bencher: Bencher) {
    let sent = requests();
    bencher
        .counter(BytesCount::of_slice(&sent))
        .bench(|| relq_fault_proxy::proxy::requests_in(black_box(&sent)));
}

#[divan::bench(items_count = COMMANDS)]
fn read_replies(bencher: Bencher) {
    let sent = replies();
    bencher
        .counter(BytesCount::of_slice(&sent))
        .bench(|| relq_fault_proxy::proxy::replies_in(black_box(&sent)));
}
