//! Reading the ring and its marks, page by page from the tail.

use bytes::{BufMut, Bytes, BytesMut};
use relq_core::{
    Error, environment::Timestamp, error::Operation, operator::StateDetail,
};
use relq_redis::{Reply, command};

use crate::{element::InProcess, lease::Lease, scripts::Store};

/// An element of the ring, and its mark.
#[derive(Debug)]
pub(crate) struct Seen {
    element: Bytes,
    /// The parts and the mark of an element in process. `None` for a waiting element,
    /// and for an element of the same form whose token has no mark.
    marked: Option<(InProcess, Mark)>,
}

/// The state of a lease, as the sorted set of marks stores it: see `keys.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Runs { until: Timestamp },
    Recovered,
    Left,
    Over,
}

impl Mark {
    fn of(score: i64) -> Self {
        match score {
            1.. => Self::Runs { until: Timestamp::from_unix_ms(score) },
            0 => Self::Recovered,
            -2 | -1 => Self::Left,
            _ => Self::Over,
        }
    }
}

impl Seen {
    /// Returns the job's entry or bare payload, and the job's state; `None` if the job
    /// has ended or moved.
    pub(crate) fn job(self) -> Option<(Bytes, StateDetail)> {
        let Some((InProcess { token, entry }, mark)) = self.marked else {
            return Some((self.element, StateDetail::Ready));
        };
        match mark {
            Mark::Runs { until } => {
                let Lease { worker, since } = Lease::parse(&token)?;
                Some((entry, StateDetail::Leased { worker, since, until }))
            }
            Mark::Recovered => Some((entry, StateDetail::Ready)),
            Mark::Left => Some((without_last_attempt(&entry), StateDetail::Ready)),
            Mark::Over => None,
        }
    }

    /// Whether the job's lease has expired and no claim has taken the job over yet.
    pub(crate) fn is_recovered(&self) -> bool {
        matches!(self.marked, Some((_, Mark::Recovered)))
    }

    /// The size of the element in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.element.len()
    }

    /// The token of the element, if it has a mark.
    pub(crate) fn token(&self) -> Option<&Bytes> {
        self.marked.as_ref().map(|(parts, _)| &parts.token)
    }
}

/// Reads up to `most` elements of the ring, from the tail on, after skipping `passed`
/// elements. A page with fewer than `most` elements is the last one.
pub(crate) async fn read(
    store: &Store,
    operation: Operation,
    passed: usize,
    most: usize,
) -> Result<Vec<Seen>, Error> {
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut cmd = command("LRANGE");
    cmd.arg(&store.keys.circle);
    cmd.arg(-signed(passed + most)).arg(-signed(passed + 1));
    let elements = store.conn.call(operation, &cmd).await?.list()?;
    let elements: Vec<_> =
        elements.into_iter().rev().map(Reply::bytes).collect::<Result<_, _>>()?;
    let parts: Vec<_> = elements.iter().map(InProcess::read).collect();
    let mut marks = marks(store, operation, &parts).await?.into_iter();
    let seen = |(element, parts): (Bytes, Option<InProcess>)| {
        let mark = parts.as_ref().and_then(|_| marks.next()).flatten();
        Seen { element, marked: parts.zip(mark) }
    };
    Ok(elements.into_iter().zip(parts).map(seen).collect())
}

/// Reads the marks of the elements that have the form of a job in process.
async fn marks(
    store: &Store,
    operation: Operation,
    parts: &[Option<InProcess>],
) -> Result<Vec<Option<Mark>>, Error> {
    let mut cmd = command("ZMSCORE");
    cmd.arg(&store.keys.marks);
    for InProcess { token, .. } in parts.iter().flatten() {
        cmd.arg(&token[..]);
    }
    if parts.iter().flatten().next().is_none() {
        return Ok(Vec::new());
    }
    let scores = store.conn.call(operation, &cmd).await?.list()?;
    let mark = |score: Reply| Ok(score.optional_number()?.map(Mark::of));
    scores.into_iter().map(mark).collect()
}

/// Returns the entry with one delivery less: the delivery to a worker that was released
/// does not count.
fn without_last_attempt(entry: &Bytes) -> Bytes {
    const ATTEMPT: std::ops::Range<usize> = 6..8;
    let Some(&[high, low]) = entry.get(ATTEMPT) else { return entry.clone() };
    let attempt = u16::from_be_bytes([high, low]).saturating_sub(1);
    let mut changed = BytesMut::from(&entry[..ATTEMPT.start]);
    changed.put_u16(attempt);
    changed.extend_from_slice(&entry[ATTEMPT.end..]);
    changed.freeze()
}
