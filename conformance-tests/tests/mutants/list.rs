//! The list of all mutants, grouped by the kind of bug.

use std::sync::LazyLock;

use crate::mutant::Mutant;

#[path = "list/careless.rs"]
mod careless;
#[path = "list/changed.rs"]
mod changed;
#[path = "list/classes.rs"]
mod classes;
#[path = "list/company.rs"]
mod company;
#[path = "list/crossed.rs"]
mod crossed;
#[path = "list/equals.rs"]
mod equals;
#[path = "list/followers.rs"]
mod followers;
#[path = "list/inspecting.rs"]
mod inspecting;
#[path = "list/joints.rs"]
mod joints;
#[path = "list/lost.rs"]
mod lost;
#[path = "list/misreported.rs"]
mod misreported;
#[path = "list/owner.rs"]
mod owner;
#[path = "list/postponed.rs"]
mod postponed;
#[path = "list/restoring.rs"]
mod restoring;
#[path = "list/results.rs"]
mod results;
#[path = "list/returned.rs"]
mod returned;
#[path = "list/running_now.rs"]
mod running_now;
#[path = "list/schedules.rs"]
mod schedules;
#[path = "list/sequences.rs"]
mod sequences;
#[path = "list/suite.rs"]
mod suite;
#[path = "list/times.rs"]
mod times;
#[path = "list/twice.rs"]
mod twice;
#[path = "list/waits.rs"]
mod waits;
#[path = "list/workers.rs"]
mod workers;

/// The mutants of all lists.
pub(crate) static MUTANTS: LazyLock<Vec<Mutant>> = LazyLock::new(|| {
    let kinds = [
        lost::LOST,
        twice::TWICE,
        changed::CHANGED,
        returned::RETURNED,
        postponed::POSTPONED,
        times::TIMES,
        schedules::SCHEDULES,
        results::RESULTS,
        followers::FOLLOWERS,
        inspecting::INSPECTING,
        running_now::RUNNING_NOW,
        restoring::RESTORING,
        workers::WORKERS,
        waits::WAITS,
        joints::JOINTS,
        company::COMPANY,
        crossed::CROSSED,
        equals::EQUALS,
        owner::OWNER,
        misreported::TOLD,
        classes::CLASSES,
        careless::CARELESS,
        sequences::SEQUENCES,
        suite::SUITE,
    ];
    kinds.concat()
});
