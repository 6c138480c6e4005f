//! What a run is judged by, each check by a name of its own.

use std::fmt;

/// One check of a hit by a fault run. A failure says which ones were not passed, each by its
/// name and a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Check {
    /// A job that was accepted, and that nothing has ended, is nowhere (R1).
    Lost,
    /// Something is there that nobody pushed, or with other bytes (R2, R3).
    Unexpected,
    /// A job is there more often than the fault can explain (R4).
    DupBound,
    /// A job is back although the call that ended it was answered (R8).
    Final,
    /// A job is dead that had attempts left, or alive that had none (R11).
    WrongEnd,
    /// A call that is all or none was done in part (R5).
    AllOrNone,
    /// A job is in two places, or an index speaks of a job that is in none (R23).
    Conserve,
    /// A receipt counts although its lease was lost (R7).
    Fence,
    /// A receipt does not count although its lease runs (R6).
    KeepLive,
    /// A job cannot be claimed one lease and one pass of the reaper later (R9).
    RecoveryTime,
    /// A survivor's call fails after all is healed (R21).
    DrainAfterHeal,
    /// An error does not say truly whether the call happened (R21).
    ErrorClass,
    /// A call fails because the server has forgotten the scripts (R21).
    ScriptReload,
    /// A call that may be made again fails then (R21).
    Repeat,
    /// A call neither answers nor fails (R21).
    Hang,
    /// A task in the background panicked: what it is for is not done any more (R21).
    Panic,
    /// The same act sends other commands the second time: then the suite has not
    /// hit by a fault every step.
    Deterministic,
    /// A fault that was planned did not fire: then its run has proved nothing.
    FaultFired,
    /// A command was not seen with `before` and with `after`.
    Coverage,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Lost,
        Self::Unexpected,
        Self::DupBound,
        Self::Final,
        Self::WrongEnd,
        Self::AllOrNone,
        Self::Conserve,
        Self::Fence,
        Self::KeepLive,
        Self::RecoveryTime,
        Self::DrainAfterHeal,
        Self::ErrorClass,
        Self::ScriptReload,
        Self::Repeat,
        Self::Hang,
        Self::Panic,
        Self::Deterministic,
        Self::FaultFired,
        Self::Coverage,
    ];

    /// Its name; stable, so that reports of two versions can be compared.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "LOST",
            Self::Unexpected => "UNEXPECTED",
            Self::DupBound => "DUP-BOUND",
            Self::Final => "ACK-FINAL",
            Self::WrongEnd => "WRONG-END",
            Self::AllOrNone => "ALL-OR-NONE",
            Self::Conserve => "CONSERVE",
            Self::Fence => "FENCE-ACK",
            Self::KeepLive => "NO-STEAL-LIVE",
            Self::RecoveryTime => "RECOVERY-TIME",
            Self::DrainAfterHeal => "DRAIN-AFTER-HEAL",
            Self::ErrorClass => "ERROR-CLASS",
            Self::ScriptReload => "SCRIPT-RELOAD",
            Self::Repeat => "REPEAT",
            Self::Hang => "HANG",
            Self::Panic => "PANIC",
            Self::Deterministic => "DETERMINISTIC",
            Self::FaultFired => "FAULT-FIRED",
            Self::Coverage => "COVERAGE",
        }
    }

    /// Whether it judges the suite's own work on a backend, and not the backend: where
    /// one of these is not passed, others of them may not be either.
    pub fn is_of_the_suite(self) -> bool {
        matches!(self, Self::Deterministic | Self::FaultFired | Self::Coverage)
    }

    /// Whether it is among those that a failure names.
    pub fn is_in(self, failure: &str) -> bool {
        let named = format!("{}: ", self.name());
        failure.split_inclusive(": ").any(|word| word.ends_with(&named))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
