//! Tests that run the built program as a user does, on a SQLite file and on Redis.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[cfg(target_os = "linux")]
mod audit_memory;
mod bad_input;
mod batch;
mod cron;
mod dead;
mod dead_killed;
mod demo;
mod export;
mod followers;
mod formats;
mod help;
mod import_ended;
mod import_equal_ids;
mod import_left_out;
mod import_stopped;
mod missing_store;
mod operate;
mod owner;
mod ping;
mod push;
mod push_errors;
mod push_piped;
#[cfg(target_os = "linux")]
mod push_unprinted;
mod queues;
mod relq;
mod result;
mod run;
mod search;
#[cfg(feature = "web")]
mod serve;
mod show;
mod shown;
mod start;
#[cfg(feature = "top")]
mod terminal;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "top")]
mod top;
#[cfg(feature = "top")]
mod top_terminal;
mod work;
mod work_ended;
mod work_health;
mod work_killed;
mod work_nested;
mod work_output;
mod work_queues;
mod work_stopped;
mod workers;

/// Defines two tests, one on a SQLite file and one on Redis, for each function that
/// takes a store.
#[macro_export]
macro_rules! on_each_store {
    ($($(#[$doc:meta])* fn $name:ident($store:ident) $body:block)*) => {
        mod sqlite {
            $($(#[$doc])* #[test] fn $name() {
                super::$name(&$crate::relq::Store::sqlite());
            })*
        }
        mod redis {
            $($(#[$doc])* #[test] fn $name() {
                super::$name(&$crate::relq::Store::redis());
            })*
        }
        $(fn $name($store: &$crate::relq::Store) $body)*
    };
}
