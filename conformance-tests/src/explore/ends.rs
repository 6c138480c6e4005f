//! The states in which the runs of a scene end, with pruning and without.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Faults,
    scene::Scene,
    search::{Progress, Pruning, Search},
    store::Place,
};
use crate::Subject;

/// The states in which the runs of a scene ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct Ends {
    /// How often the scene was played.
    pub runs: u64,
    /// The digests of these states.
    pub ends: BTreeSet<u64>,
}

/// Returns the final states of a scene, once found by the usual search and once by a
/// search that prunes nothing. A test compares the two.
///
/// # Errors
/// When no scene has that name, or a run breaks a rule.
#[doc(hidden)]
pub fn ends(
    subject: &Arc<dyn Subject>,
    name: &str,
    faults: Faults,
) -> Result<[Ends; 2], String> {
    let scene = Scene::named(name)?;
    let place = Place::of(&**subject);
    let found = [Pruning::KnownStates, Pruning::Nothing].map(|pruning| {
        let search = Search { pruning, ..Search::new(&place, subject, &scene, faults) };
        let found = search.all(Progress::default(), |_| Ok(()))?;
        match found.failure {
            Some(failure) => Err(failure.wrong),
            None => Ok(Ends { runs: found.runs, ends: found.ends }),
        }
    });
    let [pruned, whole] = found;
    Ok([pruned?, whole?])
}
