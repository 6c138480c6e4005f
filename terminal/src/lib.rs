//! The code that the programs `relq` and `relq-bench` share: the URL of the store, the
//! output, the failures of a command, and the signals that end it.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod failure;
pub mod interrupts;
pub mod logging;
pub mod message;
pub mod output;
pub mod printable;
pub mod store;
pub mod store_url;
pub mod table;
