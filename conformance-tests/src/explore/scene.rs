//! The scenes: a few actors with a few calls each.

use std::{collections::BTreeMap, str::FromStr};

use relq_core::capabilities::Capability;

use crate::spec::operation::{Act, Operation, Who};

/// What some actors do at the same time.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) name: String,
    /// One call after the other, before the others begin.
    pub(super) setup: Vec<Operation>,
    /// The calls of each actor. Those of [`Who::Nobody`] let time pass.
    pub(super) programs: BTreeMap<Who, Vec<Operation>>,
    /// The options without which the scene is another one.
    pub(super) needs: &'static [Capability],
}

/// A scene as text.
pub(super) struct SceneText {
    pub(super) name: &'static str,
    /// Lines of the model's language: the setup, then the program of each actor.
    lines: &'static str,
    pub(super) needs: &'static [Capability],
}

/// All scenes.
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
        name: "a_repeated_push",
        lines: "p push j t1 | \
                p repeat t1 | \
                o repeat t1 | \
                a claim 2 l0; a settle 0D",
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
        name: "two_workers_share_two_jobs",
        lines: "p push j,j | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0R0",
        needs: &[],
    },
];

impl Scene {
    /// The scene of that name.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let text = SCENES.iter().find(|text| text.name == name);
        let SceneText { lines, needs, .. } =
            text.ok_or_else(|| format!("there is no scene {name}"))?;
        let mut scene = Self::read(name, lines)?;
        scene.needs = needs;
        Ok(scene)
    }

    /// Reads a scene: the setup, then the actors' programs, separated by `|`.
    pub(super) fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut parts = text.split('|').map(operations);
        let setup = parts.next().ok_or("a scene has a setup")??;
        let mut programs = BTreeMap::new();
        for program in parts {
            let program = program?;
            let who = program.first().ok_or("a program has a call")?.who;
            if program.iter().any(|one| one.who != who) {
                return Err(format!("the program of {who:?} has a call of another"));
            }
            if programs.insert(who, program).is_some() {
                return Err(format!("{who:?} has two programs"));
            }
        }
        Ok(Self { name: name.to_owned(), setup, programs, needs: &[] })
    }

    /// How many jobs are pushed by calls that the scene names before each call: of the
    /// setup, then of each program.
    pub(super) fn payloads_before(&self) -> (Vec<usize>, BTreeMap<Who, Vec<usize>>) {
        let mut pushed = 0;
        let mut count = |operations: &[Operation]| {
            let counts = operations.iter().map(|one| {
                let before = pushed;
                if let Act::Push { jobs, .. } = &one.act {
                    pushed += jobs.len();
                }
                before
            });
            counts.collect::<Vec<_>>()
        };
        let setup = count(&self.setup);
        let programs = self.programs.iter().map(|(who, calls)| (*who, count(calls)));
        (setup, programs.collect())
    }
}

fn operations(text: &str) -> Result<Vec<Operation>, String> {
    text.split(';').map(|one| Operation::from_str(one.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scene_can_be_read() {
        assert!(SCENES.len() >= 10);
        for SceneText { name, .. } in SCENES {
            let scene = Scene::named(name).unwrap();
            assert!(scene.programs.len() >= 2, "{name}");
        }
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
