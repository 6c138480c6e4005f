//! What a case is, and the list of all cases.

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

/// The module of all cases.
const TOPICS: &str = concat!(env!("CARGO_CRATE_NAME"), "::cases::");

impl Entry {
    /// Returns the topic of the case, which is the name of its module directly below
    /// `cases`.
    fn topic(&self) -> &'static str {
        let below = self.module.strip_prefix(TOPICS);
        let below = below.expect("cases are declared below this module");
        below.split("::").next().unwrap_or(below)
    }

    fn case(&self) -> Case {
        let Self { rules, needs, scope, is_in_real_time, run, .. } = *self;
        let id = format!("{}::{}", self.topic(), self.name).leak();
        Case { id, rules, needs, scope, is_in_real_time, run }
    }
}
