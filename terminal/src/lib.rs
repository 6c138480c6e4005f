//! What the programs `relq` and `relq-bench` share: which store is meant, what is
//! printed and how, why a command failed, and the signals that end it.

pub mod failure;
pub mod interrupts;
pub mod logging;
pub mod output;
pub mod printable;
pub mod store;
pub mod store_url;
pub mod table;
