//! The cost of a call of the program on each Redis backend: what one `relq push` sends,
//! from its connection to its end.
//!
//! A forwarder between the program and the server counts. A command is a request, also
//! one inside a pipeline. A round trip is counted each time the program sends something
//! after it received something, and for the first request of a connection. So commands
//! that are sent together count as one round trip, however the system splits their
//! bytes.
//!
//! `COSTS=write cargo test -p relq-cli --test program start` writes the table in
//! `docs/patterns.md` again.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use relq_conformance::figures::{Figures, FiguresTable};

use crate::relq::{Store, wait_until};

const PAGE: &str = "../docs/patterns.md";

/// How far the measured number of bytes may differ from the table, as a fraction. It
/// varies because the numbers in the server's INFO reply vary in length.
const TOLERANCE: f64 = 0.1;

/// How many round trips `redis-cli LPUSH` makes on a server without a password: one,
/// for the command itself.
const OF_LPUSH: usize = 1;

/// The column heads of the table in `docs/patterns.md`.
const COLUMNS: [&str; 6] = [
    "`relq push x`: commands",
    "round trips",
    "bytes",
    "first push: round trips",
    "`relq push x --delay 1h`: round trips",
    "its script not loaded: round trips",
];

/// The commands, round trips and bytes that passed the forwarder since it was last
/// reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffic {
    commands: usize,
    round_trips: usize,
    bytes: usize,
    open: usize,
}

/// A forwarder between the program and a server, which counts what passes.
struct Counter {
    url: String,
    traffic: Arc<Mutex<Traffic>>,
}

impl Counter {
    fn before(store: &Store) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (scheme, address) = store.url.split_once("://").unwrap();
        let address = address.split('/').next().unwrap().to_owned();
        let url = format!("{scheme}://{}/0", listener.local_addr().unwrap());
        let traffic = Arc::new(Mutex::default());
        let counted = Arc::clone(&traffic);
        // This thread accepts connections until the test process ends.
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&address).unwrap();
                forward(&client.unwrap(), &server, &counted);
            }
        });
        Self { url, traffic }
    }

    /// Runs the program once, and returns the traffic of all its connections.
    fn of(&self, store: &Store, line: &str) -> Traffic {
        *self.traffic.lock().unwrap() = Traffic::default();
        store.relq(line).env("RELQ_URL", &self.url).ok();
        wait_until("its connections end", || self.traffic.lock().unwrap().open == 0);
        *self.traffic.lock().unwrap()
    }
}

/// Forwards one connection with two threads, which end when the connection does.
fn forward(client: &TcpStream, server: &TcpStream, traffic: &Arc<Mutex<Traffic>>) {
    traffic.lock().unwrap().open += 1;
    let copies = || (client.try_clone().unwrap(), server.try_clone().unwrap());
    let ((from_client, to_server), (to_client, from_server)) = (copies(), copies());
    let has_heard = Arc::new(Mutex::new(true));
    let (counted, had_heard) = (Arc::clone(traffic), Arc::clone(&has_heard));
    let mut requests = Requests::default();
    thread::spawn(move || {
        pipe(from_client, to_server, |bytes| {
            let mut counted = counted.lock().unwrap();
            counted.bytes += bytes.len();
            counted.commands += requests.end_in(bytes);
            let is_turn = std::mem::take(&mut *had_heard.lock().unwrap());
            counted.round_trips += usize::from(is_turn);
        });
    });
    let counted = Arc::clone(traffic);
    thread::spawn(move || {
        // Record the reply before it is forwarded: the client may answer at once.
        pipe(from_server, to_client, |bytes| {
            counted.lock().unwrap().bytes += bytes.len();
            *has_heard.lock().unwrap() = true;
        });
        // This thread ends after the other: the server closes its side when the client
        // has closed its own.
        counted.lock().unwrap().open -= 1;
    });
}

fn pipe(mut from: TcpStream, mut to: TcpStream, mut note: impl FnMut(&[u8])) {
    let mut chunk = [0; 65536];
    // A read that fails or returns no bytes means that the connection has ended.
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        note(&chunk[..length]);
        if to.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}

/// Finds where requests end. In the Redis protocol, a request is an array of bulk
/// strings.
#[derive(Default)]
struct Requests {
    unread: Vec<u8>,
}

impl Requests {
    /// Adds bytes. Returns the number of requests that end in them.
    fn end_in(&mut self, bytes: &[u8]) -> usize {
        self.unread.extend(bytes);
        let mut ended = 0;
        while let Some(length) = length_of_first(&self.unread) {
            self.unread.drain(..length);
            ended += 1;
        }
        ended
    }
}

/// The length in bytes of the first request. `None` if it is not complete.
fn length_of_first(bytes: &[u8]) -> Option<usize> {
    let line = |from: usize| {
        let end = bytes[from..].windows(2).position(|two| two == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[from + 1..from + end]).unwrap();
        Some((number.parse::<usize>().unwrap(), from + end + 2))
    };
    if bytes.is_empty() {
        return None;
    }
    let (words, mut at) = line(0)?;
    for _ in 0..words {
        let (length, start) = line(at).filter(|_| at < bytes.len())?;
        at = start + length + 2;
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

/// Measures one row of the table, for one backend, in the order of the table's columns.
fn measure(backend: &str) -> Vec<f64> {
    let store = Store::on_tcp(backend);
    let counter = Counter::before(&store);
    let first = counter.of(&store, "push x");
    let next = counter.of(&store, "push x");
    let option = "push x --delay 1h";
    let unknown = counter.of(&store, option);
    let known = counter.of(&store, option);
    let figures = [
        next.commands,
        next.round_trips,
        next.bytes,
        first.round_trips,
        known.round_trips,
        unknown.round_trips,
    ];
    figures.map(|figure| figure as f64).into()
}

/// One `relq push` sends as many commands, in as many round trips, as the table in
/// `docs/patterns.md` says, whether or not the server has the scripts.
#[test]
fn a_push_sends_no_more_than_is_written() {
    let backends = relq::backends().filter(|backend| *backend != "sqlite");
    let measured: Figures =
        backends.map(|backend| (backend.to_owned(), measure(backend))).collect();
    let table = FiguresTable {
        page: Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE),
        name: "start",
        columns: &COLUMNS,
        tolerance: |column| if column == "bytes" { TOLERANCE } else { 0.0 },
        command: "cargo test -p relq-cli --test program start",
    };
    table.check(&measured);
}

/// A push costs at most two round trips more than the single LPUSH of another client:
/// one for the handshake, and one for the checks. The first push of a queue costs a
/// third, in which it writes the marker.
#[test]
fn a_push_needs_two_round_trips_more_than_its_command() {
    for backend in relq::backends().filter(|backend| *backend != "sqlite") {
        let store = Store::on_tcp(backend);
        let counter = Counter::before(&store);

        let first = counter.of(&store, "push x");
        let next = counter.of(&store, "push x");

        assert!(next.round_trips <= OF_LPUSH + 2, "{backend}: {next:?}");
        assert!(first.round_trips <= OF_LPUSH + 3, "{backend}: {first:?}");
    }
}
