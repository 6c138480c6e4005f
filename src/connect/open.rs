//! How each backend is opened; `None` for those that are not compiled in.

use super::Open;

pub(super) const SQLITE: Option<Open> = None;
pub(super) const ZSET: Option<Open> = None;
