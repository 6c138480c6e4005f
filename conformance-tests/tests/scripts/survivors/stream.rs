//! The changes of stream's scripts that no test case catches, each with the reason. A
//! person has checked each reason.

use crate::page::Reasons;

/// The changes that no case catches, each with the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[];
