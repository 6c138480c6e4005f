//! Translates a request for the server, and determines what happens to its reply.
//! Requests pass unchanged, except for those that ask for the time or name a script.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use relq_core::environment::Clock as _;

use super::{
    command::Kind,
    fault_proxy::Shared,
    request::{Request, bulk, encode},
    script::Scripts,
    wire::Reply,
};

/// A digest that no script has.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000";

/// The state of one connection, derived from the client's requests.
#[derive(Debug)]
pub(crate) struct Session {
    /// The server's id of the connection.
    id: String,
    /// The labels of the queued commands, between MULTI and EXEC.
    transaction: Option<Vec<String>>,
    /// The connection's subscriptions, by kind.
    subscriptions: BTreeMap<String, BTreeSet<Bytes>>,
}

impl Session {
    pub(crate) fn new(id: String) -> Self {
        Self { id, transaction: None, subscriptions: BTreeMap::new() }
    }

    pub(crate) fn is_queueing(&self) -> bool {
        self.transaction.is_some()
    }

    pub(crate) fn contents(&self) -> &[String] {
        self.transaction.as_deref().unwrap_or_default()
    }

    pub(crate) fn end_transaction(&mut self) {
        self.transaction = None;
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Updates the state of the connection for a request. Returns the expected reply.
    fn follow(&mut self, kind: Kind, request: &Request) -> Reply {
        match kind {
            Kind::Multi => self.transaction = Some(Vec::new()),
            Kind::Exec | Kind::Discard => self.transaction = None,
            _ => {}
        }
        match (kind, request.arg(1)) {
            (Kind::Hello, Some(b"3")) => Reply::Hello(3),
            (Kind::Hello, Some(_)) => Reply::Hello(2),
            (Kind::Discard, _) if request.word(0) == "RESET" => Reply::Hello(2),
            (Kind::Subscription, _) => Reply::Confirmations(self.subscribe(request)),
            _ => Reply::Pass,
        }
    }

    /// Updates the subscriptions. Returns the number of confirmations to expect.
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

/// The bytes to send for a request, and the expected reply, if there is one.
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
        // The server decides whether the user may run TIME.
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

/// The bytes to send between MULTI and EXEC. Time is taken when a command is queued.
fn queued(
    shared: &Shared,
    session: &mut Session,
    kind: Kind,
    request: &Request,
) -> Vec<Bytes> {
    let label = script_label(&shared.scripts(), kind, request);
    if let Some(contents) = &mut session.transaction {
        contents.push(label.unwrap_or_else(|| request.word(0)));
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

/// The commands to send to the server instead of `request`. If `request` runs a script,
/// the proxy's time is added to its arguments.
fn timed(shared: &Shared, kind: Kind, request: &Request) -> Vec<Bytes> {
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
            if let Some(shimmed) = scripts.shimmed(request.arg(1).unwrap_or_default()) {
                let time = scripts.for_shim(shared.clock.time_of_next_script());
                return request.with_arg_and(1, shimmed.as_bytes(), &time);
            }
        }
        Kind::ScriptExists => return script_exists(&scripts, request),
        Kind::Plain if scripts.names_entries() && request.word(0) == "XADD" => {
            return with_named_entry(shared, request);
        }
        _ => {}
    }
    vec![request.bytes().clone()]
}

/// A request that adds an entry to a stream, with an id of the proxy's time where the
/// server was to choose one.
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

/// Whether the number of keys fits the arguments. If not, the server must refuse the
/// request; the arguments that the proxy adds must not make it valid.
fn is_well_formed(request: &Request) -> bool {
    let keys = request.arg(2).and_then(|keys| std::str::from_utf8(keys).ok());
    let keys = keys.and_then(|keys| keys.parse::<usize>().ok());
    keys.is_some_and(|keys| keys <= request.len() - 3)
}

/// Asks for the scripts that the server got in place of the client's. A script that has
/// not passed the proxy does not exist for the client, even if the server has it from
/// elsewhere: called by its digest, it would run without the shim and without patches.
fn script_exists(scripts: &Scripts, request: &Request) -> Vec<Bytes> {
    const COMMAND: usize = 2;
    let words = request.args().take(COMMAND);
    let digests = request.args().skip(COMMAND);
    let digests =
        digests.map(|digest| scripts.shimmed(digest).unwrap_or(NO_DIGEST).as_bytes());
    vec![encode(words.chain(digests).collect::<Vec<_>>().into_iter())]
}

/// The name of the script that a request runs.
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
