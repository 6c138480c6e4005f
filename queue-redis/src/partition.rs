//! Which part of a queue of several parts a queue on Redis is, as its marker says.
//!
//! ```text
//!  {Q}:marker    relq 4 zset partitions=3    part 0, which has the name of the whole
//!  {Q:1}:marker  relq 4 zset part=1
//!  {Q:2}:marker  relq 4 zset part=2
//! ```

use std::num::NonZeroU16;

use relq_core::QueueName;

use crate::Marker;

/// The option of the marker of part 0.
pub(crate) const PARTITIONS: &str = "partitions";

/// The option of the marker of every other part.
pub(crate) const PART: &str = "part";

/// Which part of a queue of several parts a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Partition {
    /// The queue is not a part of another one.
    #[default]
    Whole,
    /// Part 0 of a queue whose clients push to `pushed_to` parts and claim from
    /// `claimed_from`. The two differ while the number of parts is changed.
    First {
        /// The number of parts that clients push to.
        pushed_to: NonZeroU16,
        /// The number of parts that workers claim from, at least `pushed_to`.
        claimed_from: NonZeroU16,
    },
    /// Part `number` of a queue.
    Other {
        /// The number of the part, from 1.
        number: NonZeroU16,
        /// The number of parts that clients push to. `None` if the client has opened this
        /// part alone, so that it does not know the number.
        pushed_to: Option<NonZeroU16>,
    },
    /// The whole queue, or part 0 of one, whichever it is. A completion job is pushed to
    /// such a queue.
    WholeOrFirst {
        /// The number of parts of the queue if it is new. `None` if the client does not
        /// know it: then the client writes to the queue only if it has a marker.
        parts_if_new: Option<NonZeroU16>,
    },
}

/// The parts of the queue, as a marker names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The queue has this many parts, and this is the first. A queue that is not
    /// partitioned has one part.
    First(u16),
    /// The queue is the part with this number.
    Other(u16),
}

impl Partition {
    /// The name of part `number` of the queue `whole`, from 1: `Q:1`.
    ///
    /// # Errors
    /// When the name is too long.
    pub fn name_of_part(
        whole: &QueueName,
        number: NonZeroU16,
    ) -> Result<QueueName, relq_core::error::InvalidName> {
        QueueName::new(format!("{whole}:{number}"))
    }

    /// How a client that has opened a queue as this part opens the queue `other`: as a new
    /// queue it gets as many parts, because its clients have the same URL. If the names of
    /// so many parts would be too long, no client opens it with that URL, and it gets one.
    pub(crate) fn of_another(self, other: &QueueName) -> Self {
        let parts_if_new = match self {
            Self::Whole => Some(NonZeroU16::MIN),
            Self::First { pushed_to, .. } => Some(pushed_to),
            Self::Other { pushed_to, .. } => pushed_to,
            Self::WholeOrFirst { parts_if_new } => parts_if_new,
        };
        let is_possible = |parts: &NonZeroU16| {
            let last = NonZeroU16::new(parts.get() - 1);
            last.is_none_or(|last| Self::name_of_part(other, last).is_ok())
        };
        let possible =
            |parts| Some(parts).filter(is_possible).unwrap_or(NonZeroU16::MIN);
        Self::WholeOrFirst { parts_if_new: parts_if_new.map(possible) }
    }

    /// The option that the first writer stores in the marker; `None` for none.
    pub(crate) fn option(self) -> Option<String> {
        let parts = match self {
            Self::Other { number, .. } => return Some(format!("{PART}={number}")),
            Self::First { pushed_to, .. } => pushed_to.get(),
            Self::WholeOrFirst { parts_if_new } => parts_if_new?.get(),
            Self::Whole => 1,
        };
        (parts > 1).then(|| format!("{PARTITIONS}={parts}"))
    }

    /// Whether a client may write the marker of a new queue.
    pub(crate) fn may_be_new(self) -> bool {
        self != Self::WholeOrFirst { parts_if_new: None }
    }

    /// Whether a client that opened the queue as this part may use a queue whose marker
    /// says `stored`.
    pub(crate) fn admits(self, stored: Stored) -> bool {
        match (self, stored) {
            (Self::Whole, Stored::First(parts)) => parts == 1,
            (Self::First { pushed_to, claimed_from }, Stored::First(parts)) => {
                parts == pushed_to.get() || parts == claimed_from.get()
            }
            (Self::Other { number, .. }, Stored::Other(stored)) => {
                stored == number.get()
            }
            (Self::WholeOrFirst { .. }, Stored::First(_)) => true,
            _ => false,
        }
    }
}

impl Stored {
    /// The parts of the queue, as this marker names them.
    pub(crate) fn of(marker: &Marker) -> Self {
        let value = |name| marker.options().iter().find_map(|it| number(it, name));
        match value(PART) {
            Some(number) => Self::Other(number),
            None => Self::First(value(PARTITIONS).unwrap_or(1)),
        }
    }
}

/// Whether an option of a marker is `partitions` with a number above 1, or `part` with a
/// number.
pub(crate) fn is_known(option: &str) -> bool {
    number(option, PARTITIONS).is_some_and(|parts| parts > 1)
        || number(option, PART).is_some()
}

/// The value of an option of that name; `None` for another option, or for a value that
/// is not a number above zero.
fn number(option: &str, name: &str) -> Option<u16> {
    let (key, value) = option.split_once('=')?;
    let number: NonZeroU16 = value.parse().ok().filter(|_| key == name)?;
    Some(number.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pushed_to: u16, claimed_from: u16) -> Partition {
        let number = |number| NonZeroU16::new(number).unwrap();
        Partition::First {
            pushed_to: number(pushed_to),
            claimed_from: number(claimed_from),
        }
    }

    #[test]
    fn a_client_admits_the_numbers_that_it_was_opened_with() {
        let number = NonZeroU16::new(2).unwrap();
        let other = Partition::Other { number, pushed_to: None };
        let whole_or_first = Partition::WholeOrFirst { parts_if_new: None };
        for (partition, stored, is_admitted) in [
            (Partition::Whole, Stored::First(1), true),
            (Partition::Whole, Stored::First(3), false),
            (Partition::Whole, Stored::Other(1), false),
            (first(3, 3), Stored::First(3), true),
            (first(3, 3), Stored::First(1), false),
            (first(3, 3), Stored::First(2), false),
            (first(2, 3), Stored::First(2), true),
            (first(2, 3), Stored::First(3), true),
            (first(2, 3), Stored::First(1), false),
            (first(1, 3), Stored::First(1), true),
            (other, Stored::Other(2), true),
            (other, Stored::Other(1), false),
            (other, Stored::First(1), false),
            (whole_or_first, Stored::First(3), true),
            (whole_or_first, Stored::Other(1), false),
        ] {
            assert_eq!(
                partition.admits(stored),
                is_admitted,
                "{partition:?} {stored:?}"
            );
        }
    }

    /// R25: a new queue that a completion job is pushed to has the parts of its sender's
    /// URL, if its name allows so many.
    #[test]
    fn a_new_queue_gets_the_parts_of_the_url() {
        let [short, long] = ["other".to_owned(), "o".repeat(199)]
            .map(|name| QueueName::new(name).unwrap());
        let [one, two, three] =
            [1, 2, 3].map(|number| NonZeroU16::new(number).unwrap());
        let part = |pushed_to| Partition::Other { number: two, pushed_to };
        for (partition, other, parts_if_new) in [
            (Partition::Whole, &short, Some(one)),
            (first(3, 3), &short, Some(three)),
            (first(2, 3), &short, Some(two)),
            (first(3, 3), &long, Some(one)),
            (part(Some(three)), &short, Some(three)),
            (part(None), &short, None),
        ] {
            let expected = Partition::WholeOrFirst { parts_if_new };
            assert_eq!(partition.of_another(other), expected, "{partition:?}");
            assert_eq!(expected.may_be_new(), parts_if_new.is_some());
        }
    }

    #[test]
    fn the_marker_says_which_part_it_is() {
        for (marker, stored) in [
            ("relq 4 zset", Stored::First(1)),
            ("relq 4 zset partitions=3", Stored::First(3)),
            ("relq 4 processing-list mode=shared part=2", Stored::Other(2)),
        ] {
            let marker = Marker::parse(marker.as_bytes()).unwrap();
            assert_eq!(Stored::of(&marker), stored);
        }
        for option in ["partitions=0", "partitions=1", "partitions=x", "part=0", "odd"]
        {
            assert!(!is_known(option), "{option}");
        }
    }
}
