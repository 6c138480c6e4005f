//! Commands that the server may hold until data arrives or their time limit passes.

use std::time::Duration;

use bytes::Bytes;

use super::request::Request;

/// A blocking command: the position of its time limit among the arguments, the limit,
/// and the reply when the limit has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocking {
    limit_at: usize,
    limit: Option<Duration>,
    answer: TimeOutAnswer,
}

/// The reply of the server to a blocking command whose time limit has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeOutAnswer {
    Null,
    Zero,
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Seconds,
    Milliseconds,
}

impl Blocking {
    /// The blocking command in a request. `None` for any other command, and for a
    /// malformed limit, which the server refuses itself.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let last = request.len() - 1;
        let (limit_at, unit) = match request.word(0).as_str() {
            "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BZPOPMIN" | "BZPOPMAX" => {
                (last, Unit::Seconds)
            }
            "BLMPOP" | "BZMPOP" => (1, Unit::Seconds),
            "XREAD" | "XREADGROUP" => (after_block(request)?, Unit::Milliseconds),
            "WAIT" => (last, Unit::Milliseconds),
            _ => return None,
        };
        let limit = limit(request.arg(limit_at)?, unit)?;
        let answer = match request.word(0).as_str() {
            "WAIT" => TimeOutAnswer::Zero,
            _ => TimeOutAnswer::Null,
        };
        let limit = (!limit.is_zero()).then_some(limit);
        Some(Self { limit_at, limit, answer })
    }

    /// How long the server may hold the command. `None` means without limit.
    pub(crate) fn limit(self) -> Option<Duration> {
        self.limit
    }

    /// The request with its time limit removed, as pieces to send in order. The proxy
    /// applies the limit by its own clock.
    pub(crate) fn without_limit(self, request: &Request) -> Vec<Bytes> {
        match self.limit {
            Some(_) => request.with_arg(self.limit_at, b"0"),
            None => vec![request.bytes().clone()],
        }
    }

    /// The bytes that Redis 7.0 replies when the time limit has passed, in RESP2 or
    /// RESP3.
    pub(crate) fn time_out(self, protocol: u8) -> &'static [u8] {
        match (self.answer, protocol) {
            (TimeOutAnswer::Zero, _) => b":0\r\n",
            (TimeOutAnswer::Null, 3) => b"_\r\n",
            (TimeOutAnswer::Null, _) => b"*-1\r\n",
        }
    }
}

/// The index of the argument after `BLOCK`, a limit in milliseconds. Words after
/// `STREAMS` are names of keys.
fn after_block(request: &Request) -> Option<usize> {
    let words = (1..request.len()).map(|at| (at, request.word(at)));
    let (at, _) = words
        .take_while(|(_, word)| word != "STREAMS")
        .find(|(_, word)| word == "BLOCK")?;
    Some(at + 1)
}

fn limit(arg: &[u8], unit: Unit) -> Option<Duration> {
    let text = std::str::from_utf8(arg).ok()?;
    match unit {
        Unit::Seconds => Duration::try_from_secs_f64(text.parse().ok()?).ok(),
        Unit::Milliseconds => text.parse().ok().map(Duration::from_millis),
    }
}
