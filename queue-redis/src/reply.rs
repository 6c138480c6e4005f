//! Replies of the server, and functions that read them as the expected types.

use std::{time::Duration, vec};

use bytes::Bytes;
use redis::Value;
use relq_core::{Error, error::ErrorContext};

use crate::error::unreadable;

/// A reply of the server, and the operation that it belongs to.
#[derive(Debug)]
pub struct Reply {
    at: ErrorContext,
    value: Value,
}

impl Reply {
    pub(crate) fn new(at: ErrorContext, value: Value) -> Self {
        Self { at, value }
    }

    /// Whether the reply is nil.
    pub fn is_nil(&self) -> bool {
        self.value == Value::Nil
    }

    /// Reads the reply as a list of replies. Nil is an empty list.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn list(self) -> Result<Vec<Self>, Error> {
        let at = self.at;
        match self.value {
            Value::Array(items) | Value::Set(items) => {
                Ok(items.into_iter().map(|value| Self { at, value }).collect())
            }
            Value::Map(pairs) => Ok(pairs
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .map(|value| Self { at, value })
                .collect()),
            Value::Nil => Ok(Vec::new()),
            other => Err(mismatch(at, "a list", &other)),
        }
    }

    /// Reads the reply as a list whose parts the caller reads one by one.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn parts(self) -> Result<Parts, Error> {
        Ok(Parts { at: self.at, rest: self.list()?.into_iter() })
    }

    /// Reads the reply as bytes, without a copy.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn bytes(self) -> Result<Bytes, Error> {
        match self.value {
            Value::BulkString(bytes) => Ok(bytes.into()),
            Value::SimpleString(text) => Ok(text.into()),
            Value::VerbatimString { text, .. } => Ok(text.into()),
            Value::Okay => Ok(Bytes::from_static(b"OK")),
            other => Err(mismatch(self.at, "bytes", &other)),
        }
    }

    /// Reads the reply as bytes; `None` if it is nil.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn optional_bytes(self) -> Result<Option<Bytes>, Error> {
        if self.is_nil() { Ok(None) } else { self.bytes().map(Some) }
    }

    /// Reads the reply as text.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type or is not UTF-8.
    pub fn text(self) -> Result<String, Error> {
        let at = self.at;
        let bytes = self.bytes()?;
        String::from_utf8(bytes.into()).map_err(|error| unreadable(at, error))
    }

    /// Reads the reply as a whole number.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn number(self) -> Result<i64, Error> {
        let at = self.at;
        match self.value {
            Value::Int(number) => Ok(number),
            Value::Boolean(truth) => Ok(i64::from(truth)),
            #[expect(clippy::cast_possible_truncation, reason = "times in ms fit")]
            Value::Double(number) => Ok(number as i64),
            value => {
                let text = Self { at, value }.text()?;
                let whole = text.split('.').next().unwrap_or_default();
                whole.parse().map_err(|error| unreadable(at, error))
            }
        }
    }

    /// Reads the reply as the score of a time, in milliseconds; `None` if it is infinite.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn time_ms(self) -> Result<Option<i64>, Error> {
        let is_infinite = match &self.value {
            Value::Double(number) => number.is_infinite(),
            Value::BulkString(text) => text == b"inf",
            _ => false,
        };
        if is_infinite { Ok(None) } else { self.number().map(Some) }
    }

    /// Reads the reply as a whole number that is not negative.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type or is negative.
    pub fn count(self) -> Result<u64, Error> {
        let at = self.at;
        u64::try_from(self.number()?).map_err(|error| unreadable(at, error))
    }

    /// Reads the reply as a number of milliseconds; `None` if it is `-1`.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn optional_ms(self) -> Result<Option<Duration>, Error> {
        self.number().map(|ms| u64::try_from(ms).ok().map(Duration::from_millis))
    }

    /// Reads the reply as a list of whole numbers.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn numbers(self) -> Result<Vec<i64>, Error> {
        self.list()?.into_iter().map(Self::number).collect()
    }

    /// Reads the reply as a list of positions, counted from 0.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn positions(self) -> Result<Vec<usize>, Error> {
        self.list()?.into_iter().map(Self::position).collect()
    }

    /// Reads the reply as a position, counted from 0.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn position(self) -> Result<usize, Error> {
        self.count().map(|at| usize::try_from(at).unwrap_or(usize::MAX))
    }

    /// Reads the reply as the number of jobs that a script handled, at least one.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type or is zero.
    pub fn handled(self) -> Result<usize, Error> {
        let at = self.at;
        match usize::try_from(self.number()?) {
            Ok(0) => Err(unreadable(at, "the script handled no job")),
            Ok(handled) => Ok(handled),
            Err(error) => Err(unreadable(at, error)),
        }
    }

    /// Reads the reply as a whole number; `None` if it is nil.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another type.
    pub fn optional_number(self) -> Result<Option<i64>, Error> {
        if self.is_nil() { Ok(None) } else { self.number().map(Some) }
    }
}

/// The parts of a reply that is a list. The iterator yields the parts that
/// [`part`](Self::part) has not returned yet.
#[derive(Debug)]
pub struct Parts {
    at: ErrorContext,
    rest: vec::IntoIter<Reply>,
}

impl Parts {
    /// Returns the next part, or nil if there are no more.
    pub fn part(&mut self) -> Reply {
        let missing = Reply { at: self.at, value: Value::Nil };
        self.rest.next().unwrap_or(missing)
    }

    /// Returns the last part that was not read yet, or nil if there is none.
    pub fn last_part(&mut self) -> Reply {
        let missing = Reply { at: self.at, value: Value::Nil };
        self.rest.next_back().unwrap_or(missing)
    }
}

impl Iterator for Parts {
    type Item = Reply;

    fn next(&mut self) -> Option<Reply> {
        self.rest.next()
    }
}

fn mismatch(at: ErrorContext, wanted: &str, value: &Value) -> Error {
    let found = match value {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) | Value::SimpleString(_) | Value::Okay => "text",
        Value::Array(_) | Value::Set(_) | Value::Map(_) => "a list",
        _ => "something else",
    };
    unreadable(at, format!("the answer is {found}, expected {wanted}"))
}

#[cfg(test)]
mod tests {
    use relq_core::error::Operation;

    use super::*;

    #[test]
    fn an_optional_number_is_missing_only_where_the_reply_is_nil() {
        let at = ErrorContext { backend: "mine", operation: Operation::Peek };
        let read = |value| Reply::new(at, value).optional_number();

        assert_eq!(read(Value::Nil).unwrap(), None);
        assert_eq!(read(Value::Int(-2)).unwrap(), Some(-2));
        assert_eq!(read(Value::Double(1e12)).unwrap(), Some(1_000_000_000_000));
        assert!(matches!(
            read(Value::SimpleString("no number".to_owned())),
            Err(Error::Unreadable { .. })
        ));
    }
}
