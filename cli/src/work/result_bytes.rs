//! Keeps the whole standard output of a command, for the result of its job.

use std::sync::{Mutex, PoisonError};

use relq::{Bytes, results::MAX_RESULT};

use super::forward::KeepsOutput;

/// The bytes that a command wrote to its standard output, up to those of the largest
/// result.
#[derive(Debug, Default)]
pub(super) struct ResultBytes(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    bytes: Vec<u8>,
    is_too_long: bool,
}

/// The output is too long to be a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl ResultBytes {
    /// Takes the output.
    pub(super) fn take(&self) -> Result<Bytes, TooLong> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.is_too_long {
            return Err(TooLong);
        }
        Ok(std::mem::take(&mut written.bytes).into())
    }
}

impl KeepsOutput for ResultBytes {
    fn keep(&self, output: &[u8]) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.bytes.len() + output.len() > MAX_RESULT {
            *written = Written { bytes: Vec::new(), is_too_long: true };
        }
        if !written.is_too_long {
            written.bytes.extend(output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_output_is_the_result() {
        let result = ResultBytes::default();
        assert_eq!(result.take(), Ok(Bytes::new()), "no output");
        result.keep(b"a\n");
        result.keep(b"b");
        assert_eq!(result.take(), Ok(Bytes::from("a\nb")), "two parts");
    }

    #[test]
    fn an_output_that_is_too_long_is_none() {
        let result = ResultBytes::default();
        result.keep(&vec![0; MAX_RESULT]);
        result.keep(b"x");
        result.keep(b"y");
        assert_eq!(result.take(), Err(TooLong), "one byte more");
    }
}
