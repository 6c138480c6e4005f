//! The checks that judge a run, each with a name of its own.

use std::fmt;

/// One check of a run with a fault. A failure lists the checks that did not pass, each
/// by its name and a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Check {
    /// A job that was stored has disappeared, although no call ended it (R1).
    Lost,
    /// There is a job that was never pushed, or the payload of a job has changed (R2,
    /// R3).
    Unexpected,
    /// A job exists more often than the fault can explain (R4).
    DupBound,
    /// A job is back although the call that ended it had returned (R8).
    Final,
    /// A job that had attempts left is dead, or a job that had none is alive (R11).
    WrongEnd,
    /// A call that must be all or nothing was done in part (R5).
    AllOrNone,
    /// A job is in two places, or an index has an entry of a job that does not exist
    /// (R23).
    Conserve,
    /// A receipt is accepted although its lease was lost (R7).
    Fence,
    /// A receipt is refused although its lease has not been lost (R6).
    KeepLive,
    /// One lease and one run of the reaper after the fault, a job still cannot be
    /// claimed (R9).
    RecoveryTime,
    /// After the fault is healed, a call of an actor that did not die fails (R21).
    DrainAfterHeal,
    /// An error does not say correctly whether the call took effect (R21).
    ErrorClass,
    /// A call fails because the server has forgotten the scripts: they must be sent
    /// again (R21).
    ScriptReload,
    /// A call that may be repeated fails when it is repeated (R21).
    Repeat,
    /// A call neither returns nor fails (R21).
    Hang,
    /// A background task panicked, so that its work is not done any more (R21).
    Panic,
    /// Two runs of the same calls without a fault sent different commands. So the suite
    /// may not have injected faults at every step.
    Deterministic,
    /// A planned fault did not fire, so its run has tested nothing.
    FaultFired,
    /// For some command the suite has not tested both the death of an actor right
    /// before it and right after it.
    Coverage,
}

impl Check {
    /// All checks.
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

    /// The name of the check. It stays the same in later versions, so that reports of
    /// two versions can be compared.
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

    /// Whether the check judges the suite's own work and not the backend. If such a
    /// check fails, other checks may fail as a result.
    pub fn is_of_the_suite(self) -> bool {
        matches!(self, Self::Deterministic | Self::FaultFired | Self::Coverage)
    }

    /// Whether a failure message names this check.
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
