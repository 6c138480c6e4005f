//! Unique keys of jobs (R16).

use std::{fmt, str::FromStr, sync::Arc};

use crate::name::{InvalidName, check_text, checked_text};

checked_text! {
    /// A key that at most one scheduled, ready or leased job holds (R16): 1 to 255
    /// bytes of text without control characters.
    UniqueKey, "the unique key", 255, |_| Ok(())
}

/// The effect of a push when another job already holds the unique key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// The holder does not change.
    #[default]
    Keep,
    /// If the holder is still scheduled, it becomes due after the new job's delay
    /// instead; its payload stays. A ready or leased holder stays as it is.
    Reschedule,
}

/// A unique key and what to do when it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The key.
    pub key: UniqueKey,
    /// The effect of a push whose key is held.
    pub on_duplicate: OnDuplicate,
}
