//! The state of this backend on one queue.

use crate::{
    config::ForeignKeys,
    pick::Finder,
    recover::{Adoption, Freeing},
    scripts::Store,
};

/// How this backend keeps its jobs.
#[derive(Debug)]
pub struct Keyspace {
    pub(crate) store: Store,
    pub(crate) foreign_keys: ForeignKeys,
    pub(crate) finder: Finder,
    pub(crate) adoption: Adoption,
    pub(crate) freeing: Freeing,
}
