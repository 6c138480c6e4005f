//! The scenes: each has a few actors that make a few calls at the same time.

mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use relq_core::capabilities::Capability;

pub(super) use self::table::{LARGE_SCENES, SCENES};
use crate::spec::operation::{Act, Operation, Who, payloads_before};

/// The calls that several actors make at the same time, and the setup before them.
#[derive(Debug, Clone, Default)]
pub(super) struct Scene {
    pub(super) name: String,
    /// The calls of the setup. They are made one after the other, before the programs
    /// begin.
    pub(super) setup: Vec<Operation>,
    /// The calls of each actor. The program of [`Who::Nobody`] lets time pass.
    pub(super) programs: BTreeMap<Who, Vec<Operation>>,
    /// The options that the backend must support for the scene.
    pub(super) needs: &'static [Capability],
}

/// A scene in the form of text.
pub(super) struct SceneText {
    pub(super) name: &'static str,
    /// Lines of the model's language: the setup, then the program of each actor.
    lines: &'static str,
    pub(super) needs: &'static [Capability],
}

impl SceneText {
    /// Whether a claim of the scene waits for jobs.
    pub(super) fn has_waiting_claims(&self) -> bool {
        Scene::named(self.name).is_ok_and(|scene| scene.has_waiting_claims())
    }
}

impl Scene {
    /// Returns the scene of that name, or reads the scene from the text.
    ///
    /// # Errors
    /// When no scene has that name, or the text is not a scene.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if name.contains('|') {
            return Self::read(name, name);
        }
        let text = SCENES.iter().chain(LARGE_SCENES).find(|text| text.name == name);
        let SceneText { lines, needs, .. } =
            text.ok_or_else(|| format!("there is no scene {name}"))?;
        let mut scene = Self::read(name, lines)?;
        scene.needs = needs;
        Ok(scene)
    }

    /// Reads a scene: the setup, then the actors' programs, separated by `|`.
    pub(super) fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut parts = text.split('|').map(calls);
        let setup = parts.next().ok_or("a scene has a setup")??;
        let setup = setup.into_iter().map(|(_, operation)| operation).collect();
        let mut programs = BTreeMap::new();
        for program in parts {
            let (actors, program): (Vec<_>, Vec<_>) = program?.into_iter().unzip();
            let who = *actors.first().ok_or("a program has a call")?;
            if actors.iter().any(|actor| *actor != who) {
                return Err(format!("the program of {who:?} has a call of another"));
            }
            if programs.insert(who, program).is_some() {
                return Err(format!("{who:?} has two programs"));
            }
        }
        let mut scene = Self { name: name.to_owned(), setup, programs, needs: &[] };
        let options = [
            (!scene.batches().is_empty(), Capability::Batches),
            (scene.has_schedules(), Capability::Schedules),
            (scene.has_results(), Capability::Results),
        ];
        let used = options.into_iter().filter(|(is_used, _)| *is_used);
        scene.needs = used.map(|(_, option)| option).collect::<Vec<_>>().leak();
        Ok(scene)
    }

    /// Whether a claim of the scene waits for jobs.
    pub(super) fn has_waiting_claims(&self) -> bool {
        self.setup.iter().any(waits) || self.waiters().next().is_some()
    }

    /// The actors whose claims wait for jobs.
    pub(super) fn waiters(&self) -> impl Iterator<Item = Who> {
        let waiters = self.programs.iter().filter(|(_, calls)| calls.iter().any(waits));
        waiters.map(|(who, _)| *who)
    }

    /// Whether the scene has calls on schedules.
    fn has_schedules(&self) -> bool {
        let mut calls = self.programs.values().flatten().chain(&self.setup);
        calls.any(|one| {
            matches!(
                one.act,
                Act::PutSchedule { .. }
                    | Act::RemoveSchedule { .. }
                    | Act::Tick { .. }
                    | Act::ListSchedules
            )
        })
    }

    /// Whether the scene has calls on results, or jobs that keep theirs.
    fn has_results(&self) -> bool {
        let mut calls = self.programs.values().flatten().chain(&self.setup);
        calls.any(|one| match &one.act {
            Act::Report { .. } | Act::Result { .. } => true,
            Act::Push { jobs, .. } | Act::Add { jobs, .. } => {
                jobs.iter().any(|job| job.option('v') > 0)
            }
            _ => false,
        })
    }

    /// The numbers of the batches that the scene creates.
    pub(super) fn batches(&self) -> BTreeSet<u8> {
        let calls = self.programs.values().flatten().chain(&self.setup);
        let batch = |one: &Operation| match one.act {
            Act::CreateBatch { batch, .. } => Some(batch),
            _ => None,
        };
        calls.filter_map(batch).collect()
    }

    /// Counts, before each call of the scene, the jobs that earlier calls of the scene
    /// push. A push numbers its payloads from that count on, so no two jobs have the
    /// same payload. Two pushes with one token are the same call, and have the same
    /// payloads. Returns the counts of the setup, and those of each actor.
    pub(super) fn payloads_before(&self) -> (Vec<usize>, BTreeMap<Who, Vec<usize>>) {
        let (mut used, mut with_token) = (0, BTreeMap::new());
        let mut count = |operations: &[Operation]| {
            let counts = payloads_before(operations, &mut used).into_iter();
            let counts =
                operations.iter().zip(counts).map(|(one, before)| match one.act {
                    Act::Push { token, .. } if token > 0 => {
                        *with_token.entry(token).or_insert(before)
                    }
                    _ => before,
                });
            counts.collect::<Vec<_>>()
        };
        let setup = count(&self.setup);
        let programs = self.programs.iter().map(|(who, calls)| (*who, count(calls)));
        (setup, programs.collect())
    }
}

fn waits(call: &Operation) -> bool {
    matches!(call.act, Act::Claim { wait, .. } if wait > 0)
}

/// Reads calls, each with the actor that makes it.
fn calls(text: &str) -> Result<Vec<(Who, Operation)>, String> {
    text.split(';').map(|one| call(one.trim())).collect()
}

/// Reads a call. In `o release-worker a`, the operator releases the worker of actor a.
fn call(text: &str) -> Result<(Who, Operation), String> {
    const RELEASE: &str = "release-worker";
    if let Some((actor, worker)) = text.split_once(&format!(" {RELEASE} ")) {
        let by = Operation::from_str(&format!("{actor} {RELEASE}"))?.who;
        return Ok((by, Operation::from_str(&format!("{worker} {RELEASE}"))?));
    }
    let operation = Operation::from_str(text)?;
    Ok((operation.who, operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scene_can_be_read() {
        assert!(SCENES.len() >= 10);
        for SceneText { name, .. } in SCENES.iter().chain(LARGE_SCENES) {
            let scene = Scene::named(name).unwrap();
            assert!(scene.programs.len() >= 2, "{name}");
        }
    }

    #[test]
    fn an_actor_releases_the_worker_of_another() {
        let scene = Scene::read("x", "p push j | o release-worker a").unwrap();

        let [call] = &scene.programs[&Who::Operator][..] else { panic!("{scene:?}") };

        assert_eq!(call.who, Who::WorkerA);
    }

    #[test]
    fn payloads_are_counted_over_the_whole_scene() {
        let scene =
            Scene::read("x", "p push j,j | a claim 1 l0 | p push j; p push j").unwrap();

        let (setup, programs) = scene.payloads_before();

        assert_eq!(setup, [0]);
        assert_eq!(programs[&Who::Producer], [2, 3]);
    }
}
