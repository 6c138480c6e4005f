//! Queues on one store are apart, and plain producers count (R19, R20).

mod plain;
mod queues;

pub(crate) use plain::*;
pub(crate) use queues::*;
