//! The last error of a job (R11), as the reference model expects it.

use std::fmt;

/// The last error of a job: what the last failed attempt reported, and the attempts
/// since then whose leases expired. By default no attempt has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LastError {
    /// Empty if no attempt has reported an error.
    reported: &'static str,
    /// The bit `1 << n` stands for attempt `n`.
    lost: u64,
}

impl LastError {
    /// The error of an attempt that failed. It replaces what was known before.
    pub(crate) fn reported(error: &'static str) -> Self {
        Self { reported: error, lost: 0 }
    }

    /// The error after the lease of that attempt has expired.
    #[must_use]
    pub(crate) fn with_lost_lease(self, attempt: u32) -> Self {
        let bit = 1_u64.checked_shl(attempt).expect("few attempts");
        Self { lost: self.lost | bit, ..self }
    }
}

/// The error as R11 describes it. Empty if there is none.
impl fmt::Display for LastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reported)?;
        let mut separator = if self.reported.is_empty() { "" } else { "; " };
        for attempt in (0..u64::BITS).filter(|bit| self.lost & (1 << bit) != 0) {
            write!(f, "{separator}attempt {attempt}: lease ended, no heartbeat")?;
            separator = "; ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::LastError;

    #[test]
    fn lost_leases_are_added_to_the_error() {
        let failed = LastError::reported("it failed").with_lost_lease(2);

        assert_eq!(
            failed.with_lost_lease(3).to_string(),
            "it failed; attempt 2: lease ended, no heartbeat; \
             attempt 3: lease ended, no heartbeat"
        );
        let lost = LastError::default().with_lost_lease(1);
        assert_eq!(lost.to_string(), "attempt 1: lease ended, no heartbeat");
        assert_eq!(LastError::default().to_string(), "");
    }
}
