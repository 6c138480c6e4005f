//! The cases, one file per topic.
//!
//! A case is a function with a [`case!`] line above it. Every backend runs all cases.

mod bad_input;
mod batches;
mod cancel_safety;
mod clocks;
mod company;
mod dead_letters;
mod delay;
mod equals;
mod expiry;
mod followers;
mod idempotence;
mod inspecting;
mod isolation;
mod joints;
mod last_error;
mod leases;
mod no_loss;
mod one_holder;
mod operator;
mod order;
mod owner;
mod postponing;
mod races;
mod recovery;
mod refusals;
mod restoring;
mod results;
mod running_now;
mod schedules;
mod settle_and_claim;
mod stalled;
mod stats;
mod times;
mod unique;
mod unique_expiry;
mod unique_moves;
mod waiting;
mod waiting_without_claim;
mod worker_release;
mod workers;

/// Registers the function `name` as a case. The form is `name: rules => needs @ scope,
/// real_time`.
///
/// The needs are what a backend must support or declare ([`Need`]). If a backend does
/// not, a probe runs in place of the case. The scope is `redis` or `embedded` for a case
/// that applies to one kind of store, and `counted` for one that calls `Store::size`. A
/// case with `real_time` also runs on a server without the proxy. Each promise that
/// depends on time or on the server's notifications has one such case.
macro_rules! case {
    ($name:ident: $($rule:ident)+ $(=> $($need:ident)+)? $(@ $scope:ident)?
        $(, $real_time:ident)?) => {
        const _: () = {
            const ENTRY: $crate::case::Entry = $crate::case::Entry {
                module: module_path!(),
                line: line!(),
                name: stringify!($name),
                rules: &[$(stringify!($rule)),+],
                needs: &[$($($crate::cases::need!($need)),+)?],
                scope: $crate::cases::scope!($($scope)?),
                is_in_real_time: $crate::cases::is_in_real_time!($($real_time)?),
                run: |store| Box::pin($name(store)),
            };
            inventory::submit! { ENTRY }
        };
    };
}
use case;

macro_rules! need {
    (Order) => {
        $crate::Need::Order
    };
    (Fifo) => {
        $crate::Need::Fifo
    };
    (JobLease) => {
        $crate::Need::JobLease
    };
    ($option:ident) => {
        $crate::Need::Option(relq_core::capabilities::Capability::$option)
    };
}
use need;

macro_rules! scope {
    () => {
        $crate::Scope::Every
    };
    (redis) => {
        $crate::Scope::Redis
    };
    (embedded) => {
        $crate::Scope::Embedded
    };
    (counted) => {
        $crate::Scope::Counted
    };
}
use scope;

macro_rules! is_in_real_time {
    () => {
        false
    };
    (real_time) => {
        true
    };
}
use is_in_real_time;
