//! Unique keys of jobs (R16).

use std::{fmt, str::FromStr, sync::Arc};

use crate::name::{InvalidName, check_text, checked_text};

checked_text! {
    /// A key that at most one scheduled, ready or leased job holds (R16): 1 to 255
    /// bytes of text without control characters.
    UniqueKey, "the unique key", 255, |_| Ok(())
}

/// The effect of a push whose unique key another job already holds.
///
/// ```
/// use std::time::Duration;
/// use relq_core::NewJob;
/// use relq_core::unique::{OnDuplicate, UniqueKey};
///
/// // Each push within the minute moves the one reminder: it is sent a minute after
/// // the last of them.
/// let key = UniqueKey::new("reminder for anna")?;
/// let job = NewJob::new("remind anna")
///     .delay(Duration::from_secs(60))
///     .unique_or(key, OnDuplicate::Reschedule);
/// # Ok::<(), relq_core::error::InvalidName>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// The push changes nothing: the job that holds the key stays as it is.
    #[default]
    Keep,
    /// If the job that holds the key is still scheduled, it becomes due after the new
    /// job's delay instead; its payload stays. A ready or leased holder stays as it is.
    Reschedule,
}

/// A unique key, and the effect of a push if another job holds that key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The key that at most one unfinished job holds.
    pub key: UniqueKey,
    /// The effect of the push if another job holds the key.
    pub on_duplicate: OnDuplicate,
}
