//! The scenes: each has a few actors that make a few calls at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use relq_core::capabilities::Capability;

use crate::spec::operation::{Act, Operation, Who, payloads_before};

/// What some actors do at the same time.
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

/// The scenes of which every order is tried.
pub(super) const SCENES: &[SceneText] = &[
    SceneText {
        name: "settle_against_recover",
        lines: "p push j; a claim 1 l0 | \
                a settle 0D | \
                r recover 5 | \
                - advance 3 | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "retry_against_recover",
        lines: "p push j; a claim 1 l0; - advance 3 | \
                a settle 0R0 | \
                r recover 5 | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "extend_against_recover",
        lines: "p push j; a claim 1 l0 | \
                a extend 0 l0; a settle 0D | \
                r recover 5 | \
                - advance 3",
        needs: &[],
    },
    SceneText {
        name: "cancel_against_recover",
        lines: "p push j; a claim 1 l0; - advance 3 | \
                o cancel 0 | \
                r recover 5 | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "cancel_against_claim",
        lines: "p push j | \
                o cancel 0 | \
                a claim 1 l0; a settle 0G",
        needs: &[],
    },
    SceneText {
        name: "cancel_against_promotion",
        lines: "p push jd1; - advance 2 | \
                o cancel 0 | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0D",
        needs: &[Capability::Delay],
    },
    SceneText {
        name: "a_freed_key_against_a_push",
        lines: "p push jk1; a claim 1 l0 | \
                a settle 0D | \
                p push jk1 | \
                b claim 1 l0; b settle 0D",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "a_freed_key_against_two_pushes",
        lines: "p push jk1; a claim 1 l0 | \
                a settle 0D | \
                p push jk1; p push jk1",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "a_repeated_push",
        lines: "p push j t1 | \
                p repeat t1 | \
                o repeat t1 | \
                a claim 2 l0; a settle 0D",
        needs: &[Capability::PushTokens],
    },
    SceneText {
        name: "a_push_by_two_at_once",
        lines: "p push j | \
                p push j t1 | \
                o push j t1 | \
                a claim 3 l0",
        needs: &[Capability::PushTokens],
    },
    SceneText {
        name: "pause_against_claim",
        lines: "p push j,j | \
                o pause; o stats; o resume | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0G",
        needs: &[],
    },
    SceneText {
        name: "purge_against_all",
        lines: "p push j,j; a claim 1 l0 | \
                o purge | \
                a settle 0R0 | \
                p push jk1 | \
                b claim 1 l0",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "release_against_recover",
        lines: "p push j,j; a claim 2 l0; - advance 3 | \
                a release-worker | \
                r recover 5 | \
                b claim 2 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "two_reapers",
        lines: "p push j,jm1; a claim 2 l0; - advance 3 | \
                r recover 1; r recover 1 | \
                o recover 5 | \
                b claim 2 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "redrive_against_purge_of_the_dead",
        lines: "p push jk1m1; a claim 1 l0; a settle 0B | \
                o redrive | \
                r purge-dead | \
                b claim 1 l0; b settle 0D | \
                p push jk1",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "stats_against_claim",
        lines: "p push j | \
                a claim 1 l0; a settle 0R0 | \
                o stats | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "waiting_claim_against_release",
        lines: "p push j; p cancel 0 | \
                a claim 1 l0 w1; a settle 0D | \
                o release-worker a | \
                p push j",
        needs: &[],
    },
    SceneText {
        name: "waiting_claim_against_anothers_release",
        lines: "p push j; a claim 1 l0 | \
                a release-worker | \
                b claim 1 l0 w1; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "two_waiting_claims",
        lines: "p push j; p cancel 0 | \
                a claim 1 l0 w1 | \
                b claim 1 l0 w1 | \
                p push j",
        needs: &[],
    },
    SceneText {
        name: "end_of_a_wait_against_push",
        lines: "p push j; p cancel 0 | \
                a claim 1 l0 w1 | \
                p push j | \
                - advance 2",
        needs: &[],
    },
    SceneText {
        name: "a_limited_batch",
        lines: "p create 0 p0s1; p add 0 j,j | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0D",
        needs: &[Capability::Batches],
    },
    SceneText {
        name: "the_end_of_a_batch",
        lines: "p create 0 p0s0; p add 0 j; a claim 1 l0 | \
                a settle 0D | \
                p seal 0 | \
                o cancel-batch 0",
        needs: &[Capability::Batches],
    },
    SceneText {
        name: "the_last_two_jobs_of_a_batch",
        lines: "p create 0 p0s0; p add 0 j,j; p seal 0; a claim 1 l0; b claim 1 l0 | \
                a settle 0D | \
                b settle 0R0; b claim 1 l0; b settle 0D | \
                o batch 0",
        needs: &[Capability::Batches],
    },
    SceneText {
        name: "a_result_against_a_recovery",
        lines: "p push jv2; a claim 1 l0; - advance 3 | \
                a settle 0D1 | \
                r recover 5 | \
                b claim 1 l0; b settle 0D2 | \
                o result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "progress_of_two_workers",
        lines: "p push jv2; a claim 1 l0; - advance 3 | \
                a report 0 v1 | \
                r recover 5 | \
                b claim 1 l0; b report 0 v2; b settle 0D | \
                o result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "a_result_against_a_cancel",
        lines: "p push jv2; a claim 1 l0 | \
                a report 0 v1; a settle 0D1 | \
                o cancel 0; o result 0 | \
                r result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "a_redrive_against_a_purge_of_results",
        lines: "p push jv2; a claim 1 l0; a settle 0B | \
                o redrive | \
                r purge-dead | \
                a claim 1 l0; a settle 0D1 | \
                p result 0; p result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "two_schedulers_at_one_tick",
        lines: "p put 1 d1; - advance 3 | \
                p tick 1 d1 s5 j | \
                o tick 1 d1 s5 j; o tick 1 d1 s4 j | \
                a claim 2 l0; a settle 0D",
        needs: &[Capability::Schedules],
    },
    SceneText {
        name: "a_tick_against_a_replacement",
        lines: "p put 1 d1; - advance 3 | \
                p tick 1 d1 s5 j | \
                o put 1 d2; o tick 1 d2 s6 j | \
                - advance 2",
        needs: &[Capability::Schedules],
    },
    SceneText {
        name: "a_tick_against_a_removal",
        lines: "p put 1 d1; - advance 3 | \
                p tick 1 d1 s5 j | \
                o remove-schedule 1; o put 1 d1 | \
                r tick 1 d1 s4 jk1",
        needs: &[Capability::Schedules],
    },
    SceneText {
        name: "two_workers_share_two_jobs",
        lines: "p push j,j | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0R0",
        needs: &[],
    },
];

/// Scenes with so many orders that only random ones are tried.
pub(super) const LARGE_SCENES: &[SceneText] = &[
    SceneText {
        name: "a_busy_queue",
        lines: "p push j,j,j | \
                p push jk1 t1; p repeat t1; p push jd1; p push jk1 | \
                a claim 2 l0; a settle 0D; a claim 1 l0; a settle 0R0 | \
                b claim 1 l0; b extend 0 l0; b settle 0D; b claim 2 l0; b settle 0D | \
                o stats; o cancel 0; o pause; o resume; o redrive | \
                r recover 1; r recover 5; r recover 5 | \
                - advance 3; - advance 2",
        needs: &[Capability::Delay, Capability::Unique, Capability::PushTokens],
    },
    SceneText {
        name: "three_workers_come_and_go",
        lines: "p push j,j,jm1,j | \
                a claim 2 l0; a settle 0D; a release-worker; a claim 1 l0 | \
                b claim 1 l0; b settle 0R0; b claim 2 l0; b settle 0D | \
                o claim 1 l0; o extend 0 l0; o settle 0B; o redrive | \
                p push j; p push j,j | \
                r recover 1; r recover 5; r purge-dead | \
                - advance 3; - advance 3",
        needs: &[],
    },
];

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
