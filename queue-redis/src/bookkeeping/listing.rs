//! Reads the jobs of a state page by page, in the order in which they will be served or
//! in the opposite one.
//!
//! The jobs of a state are stored in *sections*: a list, a sorted set, a stream, or a
//! range of one of them. A section says where its next part begins, and the cursor of a
//! page names the section and that position.
//!
//! ```text
//!  s3:1800000000123:mine
//!  |\__________________ where the next part begins: here a score and a member
//!  '- order, and the place of the section
//! ```

use std::str::from_utf8;

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use relq_core::{
    Error,
    error::Operation,
    operator::{JobParts, JobState, JobView, Page, PageCursor, PeekOrder, PeekRequest},
};

use super::{Bookkeeping, PageSize, REPLY_BYTES};

/// The maximum number of jobs of a page, even if more are requested, because a page
/// also contains their payloads.
const MAX_PAGE: usize = 1000;

/// A request for the next jobs of one section of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRequest {
    /// Where the jobs begin, in the section's own form; `None` at its beginning.
    pub after: Option<Bytes>,
    /// The maximum number of jobs.
    pub count: usize,
    /// The order of the jobs.
    pub order: PeekOrder,
    /// The parts of each job that are needed.
    pub parts: JobParts,
}

/// Some jobs of one section of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SectionPart {
    /// The jobs, in the order of the request.
    pub jobs: Vec<JobView>,
    /// How many bytes were read that belong to none of these jobs.
    pub other_bytes: usize,
    /// Where the next part begins; `None` if this is the last part of the section.
    pub next: Option<Bytes>,
}

/// The range of jobs to read from a section, in the order in which they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// How many jobs of the section come before the range.
    pub offset: usize,
    /// The maximum number of jobs in the range.
    pub count: usize,
}

/// Where the next page of a listing begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Position {
    /// The place of the section; `None` before the first one.
    place: Option<u64>,
    /// Where in that section.
    after: Option<Bytes>,
}

impl Bookkeeping {
    /// Reads one page of the jobs in a state. Each of `sections` has a place, by which
    /// they are sorted in the order in which they are served. A section keeps its place
    /// for the whole listing. The page ends early with the job that fills
    /// [`REPLY_BYTES`].
    ///
    /// # Errors
    /// The errors of `read`, and [`Error::Invalid`] for a cursor of another form or of
    /// the other order.
    pub async fn list<'a, S: Clone>(
        &self,
        sections: &[(u64, S)],
        ask: &PeekRequest,
        read: impl Fn(S, SectionRequest) -> BoxFuture<'a, Result<SectionPart, Error>>,
    ) -> Result<Page, Error> {
        let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
        let mut at = self.position(ask)?;
        let (mut jobs, mut size, mut bytes) = (Vec::new(), first_size(ask), 0);
        for (place, section) in sections_from(sections, ask.order, at.place) {
            if at.place != Some(*place) {
                at = Position { place: Some(*place), after: None };
            }
            loop {
                if jobs.len() == limit || bytes >= REPLY_BYTES {
                    return Ok(Page { jobs, next: Some(at.cursor(ask.order)) });
                }
                let count = size.count_of(limit - jobs.len());
                let (order, parts) = (ask.order, ask.parts);
                let asked =
                    SectionRequest { after: at.after.take(), count, order, parts };
                let part = read(section.clone(), asked).await?;
                let read_bytes = part.other_bytes
                        // A job without a payload takes space, too.
                        + part.jobs.iter().map(|job| 1 + job.total_bytes()).sum::<usize>();
                size.adapt(read_bytes);
                bytes += read_bytes;
                jobs.extend(part.jobs);
                match part.next {
                    Some(next) => at.after = Some(next),
                    None => break,
                }
            }
        }
        Ok(Page { jobs, next: None })
    }

    /// Reads one page of the jobs in a state, whose sections are read by offsets, in the
    /// order in which they are served.
    ///
    /// # Errors
    /// The errors of [`list`](Self::list).
    pub async fn page<'a, S: Copy>(
        &self,
        sections: &[S],
        ask: &PeekRequest,
        look: impl Fn(S, Look) -> BoxFuture<'a, Result<Vec<JobView>, Error>>,
    ) -> Result<Page, Error> {
        // A section that is read by offsets has no outlines.
        let mut ask = ask.clone();
        ask.parts = JobParts::Whole;
        self.list(&in_order(sections), &ask, |section, asked| {
            let offset = offset_of(&asked);
            let look = look(section, Look { offset, count: asked.count });
            async move {
                let jobs = look.await?;
                let next = next_offset(&asked, offset, jobs.len());
                Ok(SectionPart { jobs, next, ..SectionPart::default() })
            }
            .boxed()
        })
        .await
    }

    fn position(&self, ask: &PeekRequest) -> Result<Position, Error> {
        let Some(cursor) = &ask.after else { return Ok(Position::default()) };
        Position::read(&cursor.0, ask.order)
            .ok_or_else(|| self.not_a_cursor(Operation::Peek))
    }

    /// The error for a cursor that the backend did not make for this listing.
    pub(super) fn not_a_cursor(&self, operation: Operation) -> Error {
        let reason =
            "the cursor is not that of a page of this listing: begin with the \
                      first page"
                .to_owned();
        Error::Invalid { at: self.conn.at(operation), reason }
    }
}

/// Numbers the sections in their order.
pub fn in_order<S: Clone>(sections: &[S]) -> Vec<(u64, S)> {
    (0..).zip(sections.iter().cloned()).collect()
}

/// Reads the position of a section that is read by offsets: how many jobs come before.
pub fn offset_of(asked: &SectionRequest) -> usize {
    let text = asked.after.as_ref().and_then(|after| from_utf8(after).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The position of the next part of a section that is read by offsets, after a part
/// with so many jobs.
pub fn next_offset(
    asked: &SectionRequest,
    offset: usize,
    found: usize,
) -> Option<Bytes> {
    (found >= asked.count).then(|| offset.saturating_add(found).to_string().into())
}

/// The sections that a listing reads from the section at `place` on.
fn sections_from<S>(
    sections: &[(u64, S)],
    order: PeekOrder,
    place: Option<u64>,
) -> Vec<&(u64, S)> {
    let mut left: Vec<_> = sections.iter().collect();
    let is_reversed = order == PeekOrder::NewestFirst;
    if is_reversed {
        left.reverse();
    }
    left.retain(|(own, _)| {
        place
            .is_none_or(|place| if is_reversed { *own <= place } else { *own >= place })
    });
    left
}

/// The size of the first part of a page. Only sections of leased and dead jobs have
/// outlines; the others read the payloads.
fn first_size(ask: &PeekRequest) -> PageSize {
    match (ask.parts, ask.state) {
        (JobParts::Outline, JobState::Leased | JobState::Dead) => PageSize::of_errors(),
        _ => PageSize::of_payloads(),
    }
}

fn letter_of(order: PeekOrder) -> u8 {
    match order {
        PeekOrder::AsServed => b's',
        PeekOrder::NewestFirst => b'n',
    }
}

impl Position {
    fn read(cursor: &Bytes, order: PeekOrder) -> Option<Self> {
        let rest = cursor.strip_prefix(&[letter_of(order)])?;
        let mut parts = rest.splitn(2, |byte| *byte == b':');
        let place = from_utf8(parts.next()?).ok()?.parse().ok()?;
        let after = parts.next().map(|after| cursor.slice_ref(after));
        Some(Self { place: Some(place), after })
    }

    fn cursor(&self, order: PeekOrder) -> PageCursor {
        let place = self.place.unwrap_or(0).to_string();
        let mut cursor = vec![letter_of(order)];
        cursor.extend_from_slice(place.as_bytes());
        if let Some(after) = &self.after {
            cursor.push(b':');
            cursor.extend_from_slice(after);
        }
        PageCursor(cursor.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_the_order_that_it_was_made_with() {
        for after in [None, Some(Bytes::new()), Some(Bytes::from_static(b"1:a:\xff"))] {
            let position = Position { place: Some(7), after };

            let PageCursor(cursor) = position.cursor(PeekOrder::NewestFirst);

            let read = |order| Position::read(&cursor, order);
            assert_eq!(read(PeekOrder::NewestFirst), Some(position.clone()));
            assert_eq!(read(PeekOrder::AsServed), None);
        }
    }

    #[test]
    fn a_listing_goes_on_where_a_section_was_that_is_gone() {
        let sections = [(0, 'a'), (1, 'b'), (7, 'c')];
        let from = |order, place| -> String {
            let sections = sections_from(&sections, order, place);
            sections.into_iter().map(|(_, section)| *section).collect()
        };

        assert_eq!(from(PeekOrder::AsServed, None), "abc");
        assert_eq!(from(PeekOrder::AsServed, Some(1)), "bc");
        assert_eq!(from(PeekOrder::AsServed, Some(4)), "c");
        assert_eq!(from(PeekOrder::NewestFirst, None), "cba");
        assert_eq!(from(PeekOrder::NewestFirst, Some(1)), "ba");
        assert_eq!(from(PeekOrder::NewestFirst, Some(4)), "ba");
    }
}
