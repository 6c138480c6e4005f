//! Translates each request for the server, and decides what happens to its reply.
//! A request passes unchanged unless it asks for the time or names a script.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use bytes::Bytes;
use relq_core::environment::Clock as _;

use super::{
    chance::{AS_SCRIPT, DrawsFrom},
    command::Kind,
    request::{Request, bulk, encode},
    script::Scripts,
    shared::Shared,
    wire::Reply,
};

/// A valid digest that belongs to no script.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000";

/// The proxy's knowledge about one connection, from the client's requests.
#[derive(Debug)]
pub(crate) struct Session {
    /// The id that the server gave to the connection.
    id: String,
    /// `None` outside of a transaction.
    transaction: Option<Transaction>,
    /// The names that the connection is subscribed to, by the kind of subscription.
    subscriptions: BTreeMap<String, BTreeSet<Bytes>>,
}

/// The commands that a connection has queued since `MULTI`.
#[derive(Debug, Default)]
struct Transaction {
    labels: Vec<String>,
    /// A digest of all commands with their arguments.
    arguments: u64,
}

impl Session {
    pub(crate) fn new(id: String) -> Self {
        Self { id, transaction: None, subscriptions: BTreeMap::new() }
    }

    pub(crate) fn is_queueing(&self) -> bool {
        self.transaction.is_some()
    }

    pub(crate) fn contents(&self) -> &[String] {
        self.transaction.as_ref().map_or(&[], |it| &it.labels)
    }

    /// A digest of the commands in the transaction.
    pub(crate) fn arguments(&self) -> u64 {
        self.transaction.as_ref().map_or(0, |it| it.arguments)
    }

    pub(crate) fn end_transaction(&mut self) {
        self.transaction = None;
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Updates what is known about the connection. Returns what to do with the reply.
    fn follow(&mut self, kind: Kind, request: &Request) -> Reply {
        match kind {
            Kind::Multi => self.transaction = Some(Transaction::default()),
            Kind::Exec | Kind::Discard => self.transaction = None,
            _ => {}
        }
        match (kind, request.arg(1)) {
            (Kind::Free, _) => Reply::Unlisted,
            (Kind::Hello, Some(b"3")) => Reply::Hello(3),
            (Kind::Hello, Some(_)) => Reply::Hello(2),
            (Kind::Discard, _) if request.word(0) == "RESET" => Reply::Hello(2),
            (Kind::Subscription, _) => Reply::Confirmations(self.subscribe(request)),
            _ => Reply::Pass,
        }
    }

    /// Updates the subscriptions. Returns how many confirmations the server will send.
    fn subscribe(&mut self, request: &Request) -> usize {
        let word = request.word(0);
        let named = request.args().skip(1).map(Bytes::copy_from_slice);
        let Some((kind, _)) = word.split_once("UNSUBSCRIBE") else {
            let kind = word.trim_end_matches("SUBSCRIBE").to_owned();
            self.subscriptions.entry(kind).or_default().extend(named);
            return (request.len() - 1).max(1);
        };
        let held = self.subscriptions.entry(kind.to_owned()).or_default();
        if request.len() == 1 {
            return std::mem::take(held).len().max(1);
        }
        for name in named {
            held.remove(&name);
        }
        request.len() - 1
    }
}

/// The bytes to send to the server for a request, and what to do with the reply. `None`
/// if the server sends no reply.
pub(crate) fn for_server(
    shared: &Shared,
    session: &mut Session,
    kind: Kind,
    request: &Request,
) -> (Vec<Bytes>, Option<Reply>) {
    if session.is_queueing() && !matches!(kind, Kind::Exec | Kind::Discard) {
        return (queued(shared, session, kind, request), Some(Reply::Pass));
    }
    match kind {
        Kind::Nothing => (vec![request.bytes().clone()], None),
        // `TIME` goes to the server too, which decides whether the user may run it.
        Kind::Time => {
            (vec![request.bytes().clone()], Some(Reply::Replace(time(shared))))
        }
        Kind::ScriptLoad => {
            let (digest, shimmed) =
                shared.scripts().learn(request.arg(2).unwrap_or_default());
            let answer = bulk(digest.as_bytes());
            (request.with_arg(2, &shimmed), Some(Reply::Replace(answer)))
        }
        _ => (timed(shared, kind, request), Some(session.follow(kind, request))),
    }
}

/// The bytes to send for a command in a transaction. Its time is that of the moment
/// when it is queued.
fn queued(
    shared: &Shared,
    session: &mut Session,
    kind: Kind,
    request: &Request,
) -> Vec<Bytes> {
    let label = script_label(&shared.scripts(), kind, request);
    if let Some(Transaction { labels, arguments }) = &mut session.transaction {
        labels.push(label.unwrap_or_else(|| request.word(0)));
        let mut hasher = DefaultHasher::new();
        (*arguments, request.digest()).hash(&mut hasher);
        *arguments = hasher.finish();
    }
    match kind {
        Kind::Time => {
            let [seconds, micros] = shared.clock.time();
            let words = ["EVAL", "return ARGV", "0", &seconds, &micros];
            vec![encode(words.iter().map(|word| word.as_bytes()))]
        }
        _ => timed(shared, kind, request),
    }
}

/// The lists that the answer of a request is drawn from.
pub(super) fn draws_from(shared: &Shared, kind: Kind, request: &Request) -> DrawsFrom {
    let mut scripts = shared.scripts();
    let script = request.arg(1).unwrap_or_default();
    match kind {
        Kind::Plain => DrawsFrom::command(&request.word(0)),
        Kind::Eval if is_well_formed(request) => {
            let (digest, _) = scripts.learn(script);
            scripts.draws_from(digest.as_bytes())
        }
        Kind::EvalSha if is_well_formed(request) => scripts.draws_from(script),
        _ => DrawsFrom::default(),
    }
}

/// Whether the reply depends on the server's chance or its clock: XPENDING returns for how
/// long an entry was idle.
fn varies(request: &Request) -> bool {
    let name = request.word(0);
    DrawsFrom::command(&name).is_random() || name == "XPENDING"
}

/// The bytes to send to the server in place of `request`. If it runs a script, the
/// proxy's time is added to its arguments, and the draws that were set. A command
/// whose reply varies becomes a script.
pub(super) fn timed(shared: &Shared, kind: Kind, request: &Request) -> Vec<Bytes> {
    let mut scripts = shared.scripts();
    match kind {
        Kind::Eval => {
            let time = scripts.for_shim(shared.clock.time_of_next_script());
            let (_, shimmed) = scripts.learn(request.arg(1).unwrap_or_default());
            if is_well_formed(request) {
                return request.with_arg_and(1, &shimmed, &time);
            }
        }
        Kind::EvalSha if is_well_formed(request) => {
            let shimmed = scripts.shimmed(request.arg(1).unwrap_or_default());
            if let Some(shimmed) = shimmed.map(str::to_owned) {
                let time = scripts.for_shim(shared.clock.time_of_next_script());
                return request.with_arg_and(1, shimmed.as_bytes(), &time);
            }
        }
        Kind::ScriptExists => return script_exists(&scripts, request),
        Kind::Plain if scripts.names_entries() && request.word(0) == "XADD" => {
            return with_named_entry(shared, request);
        }
        Kind::Plain if scripts.names_entries() && varies(request) => {
            let time = scripts.for_shim(shared.clock.time_of_next_script());
            let (_, shimmed) = scripts.learn(AS_SCRIPT.as_bytes());
            let words = [b"EVAL".as_slice(), &shimmed, b"0"].into_iter();
            let words = words.chain(request.args());
            let words = words.chain(time.iter().map(String::as_bytes));
            return vec![encode(words.collect::<Vec<_>>().into_iter())];
        }
        _ => {}
    }
    vec![request.bytes().clone()]
}

/// A request that adds an entry to a stream. If the client left the choice of the id to
/// the server, the proxy writes an id made from its own time.
fn with_named_entry(shared: &Shared, request: &Request) -> Vec<Bytes> {
    const KEY: usize = 1;
    let chosen = (KEY + 1..request.len()).find(|at| request.arg(*at) == Some(b"*"));
    match chosen {
        Some(at) => {
            let id = format!("{}-*", shared.clock.now().unix_ms());
            request.with_arg(at, id.as_bytes())
        }
        None => vec![request.bytes().clone()],
    }
}

/// Whether the call of a script has as many keys as it announces. If not, the proxy
/// adds no arguments, because they could make a call valid that the server must refuse.
fn is_well_formed(request: &Request) -> bool {
    let keys = request.arg(2).and_then(|keys| std::str::from_utf8(keys).ok());
    let keys = keys.and_then(|keys| keys.parse::<usize>().ok());
    keys.is_some_and(|keys| keys <= request.len() - 3)
}

/// `SCRIPT EXISTS` for the scripts that the server got in place of the client's. A
/// script that has not passed the proxy does not exist for the client, even if the
/// server has it: called by its digest, it would run without the shim and without
/// patches.
fn script_exists(scripts: &Scripts, request: &Request) -> Vec<Bytes> {
    const COMMAND: usize = 2;
    let words = request.args().take(COMMAND);
    let digests = request.args().skip(COMMAND);
    let digests =
        digests.map(|digest| scripts.shimmed(digest).unwrap_or(NO_DIGEST).as_bytes());
    vec![encode(words.chain(digests).collect::<Vec<_>>().into_iter())]
}

/// The name of the script that a request runs. `None` if it runs no script.
pub(crate) fn script_label(
    scripts: &Scripts,
    kind: Kind,
    request: &Request,
) -> Option<String> {
    let script = request.arg(1)?;
    match kind {
        Kind::Eval => Some(scripts.label_of_source(script)),
        Kind::EvalSha => Some(scripts.label(script)),
        _ => None,
    }
}

fn time(shared: &Shared) -> Bytes {
    let [seconds, micros] = shared.clock.time();
    let parts = [
        Bytes::from_static(b"*2\r\n"),
        bulk(seconds.as_bytes()),
        bulk(micros.as_bytes()),
    ];
    parts.concat().into()
}

pub(crate) fn discard() -> Bytes {
    encode([b"DISCARD".as_slice()].into_iter())
}
