//! Reads the members of sorted sets, page by page, and what is stored of their jobs.

use std::str::from_utf8;

use bytes::Bytes;
use relq_core::{Error, environment::Timestamp, error::Operation, operator::PeekOrder};

use super::{Bookkeeping, Look, SectionRequest};
use crate::command;

/// A member of a sorted set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name of the member.
    pub name: Bytes,
    /// Its score, as the server writes it.
    pub score: Bytes,
}

impl Member {
    /// The whole part of the score as a time in milliseconds. The score of a held job is
    /// infinite, which is the last time of all.
    pub fn time(&self) -> Timestamp {
        let score = from_utf8(&self.score).unwrap_or_default();
        // The equals of the first millisecond of all have scores such as 1.1e-16.
        let whole = if score.contains("e-") { "0" } else { score };
        let whole = whole.split('.').next().unwrap_or_default();
        Timestamp::from_unix_ms(whole.parse().unwrap_or(i64::MAX))
    }

    /// The score as a number.
    pub fn number(&self) -> f64 {
        number_of(&self.score).unwrap_or(f64::NAN)
    }

    /// The position behind this member in a listing of the set.
    fn position(&self) -> Bytes {
        position(&self.score, &self.name)
    }
}

/// A member of a sorted set, and what is stored of its job at the same moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The member of the set.
    pub member: Member,
    /// The entry of the job, empty if another client has removed it. `None` if the entries
    /// were not asked for.
    pub entry: Option<Bytes>,
    /// The last error of the job, as the scripts store it.
    pub error: Option<Bytes>,
}

/// The position of a member in a listing of a sorted set. The member need not exist. In a
/// listing from the highest score on, the members before it follow.
pub fn position(score: &[u8], name: &[u8]) -> Bytes {
    [score, b":", name].concat().into()
}

/// Where the next part begins, after a part with these members.
pub fn next_of(asked: &SectionRequest, found: &[StoredJob]) -> Option<Bytes> {
    let last = found.last().filter(|_| found.len() >= asked.count)?;
    Some(last.member.position())
}

/// The score and the name in a position of a sorted set.
pub(super) fn score_and_name(position: &Bytes) -> Option<(Bytes, Bytes)> {
    let at = position.iter().position(|byte| *byte == b':')?;
    let (score, name) = (position.slice(..at), position.slice(at + 1..));
    number_of(&score).map(|_| (score, name))
}

fn number_of(score: &Bytes) -> Option<f64> {
    let number: f64 = from_utf8(score).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

impl Bookkeeping {
    /// Reads members of a sorted set, from the lowest score on or from the highest, and
    /// their jobs, whose entries are in the hash `entries`. Each part begins behind the last
    /// member of the part before. So a member that keeps its score is not missed, whatever
    /// happens to the others.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call), and [`Error::Invalid`] for a
    /// position of another form.
    pub async fn members_after(
        &self,
        set: &str,
        entries: Option<&str>,
        asked: &SectionRequest,
    ) -> Result<Vec<StoredJob>, Error> {
        let order = match asked.order {
            PeekOrder::AsServed => "served",
            PeekOrder::NewestFirst => "newest",
        };
        let mut keys = vec![set, &self.keys.errors];
        keys.extend(entries);
        let call = self.scripts.read_members.keys(&keys);
        let mut call = call.arg(order).arg(asked.count);
        if let Some(after) = &asked.after {
            let (score, name) = score_and_name(after)
                .ok_or_else(|| self.not_a_cursor(Operation::Peek))?;
            call.push_arg(&score[..]);
            call.push_arg(&name[..]);
        }
        let mut parts = call.run(&self.conn, Operation::Peek).await?.parts()?;
        let mut found = Vec::new();
        while let Some(name) = parts.next() {
            let (name, score) = (name.bytes()?, parts.part().bytes()?);
            let entry = parts.part().optional_bytes()?;
            found.push(StoredJob {
                member: Member { name, score },
                entry: entries.map(|_| entry.unwrap_or_default()),
                error: parts.part().optional_bytes()?,
            });
        }
        Ok(found)
    }

    /// Whether a sorted set has a member with this name.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn has_member(&self, set: &str, name: &Bytes) -> Result<bool, Error> {
        let mut cmd = command("ZSCORE");
        cmd.arg(set).arg(&name[..]);
        let score = self.conn.call(Operation::Peek, &cmd).await?;
        Ok(!score.is_nil())
    }

    /// Reads members of a sorted set of times. The earliest comes first.
    ///
    /// The range is one of ranks. A range of scores with an offset would make the server
    /// pass all members before the offset.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn members(
        &self,
        set: &str,
        Look { offset, count }: Look,
    ) -> Result<Vec<(Bytes, Timestamp)>, Error> {
        let Some(last) = offset.saturating_add(count).checked_sub(1) else {
            return Ok(Vec::new());
        };
        let mut cmd = command("ZRANGE");
        cmd.arg(set).arg(offset).arg(last).arg("WITHSCORES");
        let mut members = Vec::new();
        for pair in self.conn.call(Operation::Peek, &cmd).await?.list()? {
            let mut pair = pair.list()?.into_iter();
            if let (Some(member), Some(score)) = (pair.next(), pair.next()) {
                // The score of a held job is infinite.
                let ms = score.time_ms()?.unwrap_or(i64::MAX);
                members.push((member.bytes()?, Timestamp::from_unix_ms(ms)));
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_score_and_any_name() {
        let read = |text: &'static str| score_and_name(&Bytes::from(text));
        let pair = |score: &'static str, name: &'static str| {
            Some((Bytes::from(score), Bytes::from(name)))
        };

        assert_eq!(read("inf:a:b"), pair("inf", "a:b"));
        assert_eq!(read("1800000000123.0002:"), pair("1800000000123.0002", ""));
        assert_eq!((read("a:b"), read("1"), read("nan:b")), (None, None, None));
    }

    #[test]
    fn the_whole_part_of_a_score_is_a_time() {
        let time = |score: &'static str| {
            let (name, score) = (Bytes::new(), Bytes::from(score));
            Member { name, score }.time()
        };

        assert_eq!(time("1800000000123.0002").unix_ms(), 1_800_000_000_123);
        assert_eq!(time("7").unix_ms(), 7);
        assert_eq!(time("1.1102230246251565e-16").unix_ms(), 0);
        assert_eq!(time("inf").unix_ms(), i64::MAX);
    }
}
