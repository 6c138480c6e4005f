//! Commands that the server may hold until something comes or a time is over.

use std::time::Duration;

use bytes::Bytes;

use super::request::Request;

/// A command that blocks, and where it says for how long at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocking {
    limit_at: usize,
    limit: Option<Duration>,
    answer: TimeOutAnswer,
}

/// What the server answers when the time is over.
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
    /// The command, if it is one that blocks and its limit is well formed; any
    /// other passes as it is, for the server to refuse.
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

    /// How long the server would hold it; `None` is for ever.
    pub(crate) fn limit(self) -> Option<Duration> {
        self.limit
    }

    /// The request with no limit on the server, in pieces: the proxy keeps the time.
    pub(crate) fn without_limit(self, request: &Request) -> Vec<Bytes> {
        match self.limit {
            Some(_) => request.with_arg(self.limit_at, b"0"),
            None => vec![request.bytes().clone()],
        }
    }

    /// What the server of 7.0 answers when the time is over.
    pub(crate) fn time_out(self, protocol: u8) -> &'static [u8] {
        match (self.answer, protocol) {
            (TimeOutAnswer::Zero, _) => b":0\r\n",
            (TimeOutAnswer::Null, 3) => b"_\r\n",
            (TimeOutAnswer::Null, _) => b"*-1\r\n",
        }
    }
}

/// Where the milliseconds after `BLOCK` are. What follows `STREAMS` are names.
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
