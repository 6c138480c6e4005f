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

use std::{fmt, future::Future, pin::Pin, sync::LazyLock};

use crate::{Need, Profile, Subject, harness::store::Store};

pub(crate) type Run =
    for<'a> fn(&'a Store) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A test of one promise of the contract.
pub struct Case {
    /// `topic::name`; stable, so that reports of two versions can be compared.
    pub id: &'static str,
    /// The numbers of the contract's rules that the case tests, such as `R7`.
    pub rules: &'static [&'static str],
    /// The options and classes that the backend must have for the case to run. If the
    /// backend lacks one of them, a probe runs in place of the case.
    pub needs: &'static [Need],
    /// The stores that the case applies to.
    pub scope: Scope,
    /// Whether the case also runs in real time, on a server without the proxy.
    pub is_in_real_time: bool,
    pub(crate) run: Run,
}

/// Which stores a case applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The case applies to all stores.
    Every,
    /// The case applies to stores on Redis.
    Redis,
    /// The case applies to embedded stores, such as a SQLite file.
    Embedded,
    /// The case applies to stores whose records the suite can count: those on Redis, and
    /// embedded ones whose subject [counts them](Subject::records).
    Counted,
}

impl Case {
    /// The reason why the case does not apply to that subject and its kind of store.
    /// `None` if it applies.
    pub(crate) fn not_concerned(
        &self,
        profile: Profile,
        subject: &dyn Subject,
    ) -> Option<&'static str> {
        match (self.scope, profile) {
            (Scope::Redis, Profile::Embedded) => Some("Redis only"),
            (Scope::Embedded, Profile::Redis | Profile::Bare) => Some("embedded only"),
            (Scope::Counted, Profile::Embedded) if subject.records().is_none() => {
                Some("no Subject::records")
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.rules.join(", "))
    }
}

/// Returns every case of the suite, sorted by topic and then by its place in the
/// source.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let mut entries: Vec<_> = inventory::iter::<Entry>.into_iter().collect();
        entries.sort_unstable_by_key(|entry| (entry.topic(), entry.module, entry.line));
        entries.into_iter().map(Entry::case).collect()
    });
    &CASES
}

/// One case with its position in the source, as the macro [`case!`] registers it.
pub(crate) struct Entry {
    pub(crate) module: &'static str,
    pub(crate) line: u32,
    pub(crate) name: &'static str,
    pub(crate) rules: &'static [&'static str],
    pub(crate) needs: &'static [Need],
    pub(crate) scope: Scope,
    pub(crate) is_in_real_time: bool,
    pub(crate) run: Run,
}

inventory::collect!(Entry);

impl Entry {
    /// Returns the topic of the case, which is the name of its module directly below
    /// `cases`.
    fn topic(&self) -> &'static str {
        let below = self.module.strip_prefix(module_path!());
        let below = below.and_then(|it| it.strip_prefix("::"));
        let below = below.expect("cases are declared below this module");
        below.split("::").next().unwrap_or(below)
    }

    fn case(&self) -> Case {
        let Self { rules, needs, scope, is_in_real_time, run, .. } = *self;
        let id = format!("{}::{}", self.topic(), self.name).leak();
        Case { id, rules, needs, scope, is_in_real_time, run }
    }
}

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
            #[cfg_attr(test, allow(dead_code, reason = "it is not registered"))]
            const ENTRY: $crate::cases::Entry = $crate::cases::Entry {
                module: module_path!(),
                line: line!(),
                name: stringify!($name),
                rules: &[$(stringify!($rule)),+],
                needs: &[$($($crate::cases::need!($need)),+)?],
                scope: $crate::cases::scope!($($scope)?),
                is_in_real_time: $crate::cases::is_in_real_time!($($real_time)?),
                run: |store| Box::pin($name(store)),
            };
            // The unit tests of this library run no case. Without these entries, the
            // compiler generates no code of the cases for them, which saves a third of
            // its time.
            #[cfg(not(test))]
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
