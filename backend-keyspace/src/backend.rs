//! The data that this backend keeps for one open queue.

use crate::{
    config::ForeignKeys,
    pick::Finder,
    recover::{Adoption, Freeing},
    scripts::Store,
};

/// The keyspace pattern on one queue, with the queue's keys and connection.
#[derive(Debug)]
pub struct Keyspace {
    pub(crate) store: Store,
    pub(crate) foreign_keys: ForeignKeys,
    pub(crate) finder: Finder,
    pub(crate) adoption: Adoption,
    pub(crate) freeing: Freeing,
}
