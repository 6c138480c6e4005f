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

/// How far bytes may differ from the table: the numbers in the server's INFO have
/// different lengths.
const TOLERANCE: f64 = 0.1;

/// The round trips of `redis-cli LPUSH` on a server without a password: its command.
const OF_LPUSH: usize = 1;

/// The columns of the table.
const COLUMNS: [&str; 6] = [
    "`relq push x`: commands",
    "round trips",
    "bytes",
    "first push: round trips",
    "`relq push x --delay 1h`: round trips",
    "its script not loaded: round trips",
];

/// What crossed the forwarder since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Traffic {
    commands: usize,
    round_trips: usize,
    bytes: usize,
    open: usize,
}

/// A forwarder to a server, which counts.
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
        // The thread ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&address).unwrap();
                forward(&client.unwrap(), &server, &counted);
            }
        });
        Self { url, traffic }
    }

    /// The traffic of one call of the program.
    fn of(&self, store: &Store, line: &str) -> Traffic {
        *self.traffic.lock().unwrap() = Traffic::default();
        store.relq(line).env("RELQ_URL", &self.url).ok();
        wait_until("its connections end", || self.traffic.lock().unwrap().open == 0);
        *self.traffic.lock().unwrap()
    }
}

/// Forwards one connection by two threads, which end with it.
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
        // The reply is noted before the client can read it and send more.
        pipe(from_server, to_client, |bytes| {
            counted.lock().unwrap().bytes += bytes.len();
            *has_heard.lock().unwrap() = true;
        });
        // The server's side ends last: it closes when the client has closed its side.
        counted.lock().unwrap().open -= 1;
    });
}

fn pipe(mut from: TcpStream, mut to: TcpStream, mut note: impl FnMut(&[u8])) {
    let mut chunk = [0; 65536];
    // An end that is reset or closed ends the connection.
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        note(&chunk[..length]);
        if to.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}

/// Finds the ends of requests, which are arrays of bulk strings.
#[derive(Default)]
struct Requests {
    unread: Vec<u8>,
}

impl Requests {
    /// The number of requests that end in these bytes.
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

/// The length of the first request, if it is complete.
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

/// The figures of a backend, in the order of the columns.
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

/// A process that pushes one job sends few commands, in few round trips, whether or not
/// the server has the scripts. The page says how many.
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

/// A push costs at most two round trips more than the LPUSH of a client that does
/// nothing else: one for the handshake, one for the checks. The first push of a queue
/// writes the marker, which is a third one.
#[test]
fn a_push_needs_two_round_trips_more_than_its_command() {
    let store = Store::on_tcp("zset");
    let counter = Counter::before(&store);

    let first = counter.of(&store, "push x");
    let next = counter.of(&store, "push x");

    assert!(next.round_trips <= OF_LPUSH + 2, "{next:?}");
    assert!(first.round_trips <= OF_LPUSH + 3, "{first:?}");
}
