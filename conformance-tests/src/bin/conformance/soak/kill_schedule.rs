//! Chooses which processes of the soak are killed, and when.

use std::time::Duration;

use relq_core::environment::Environment;
use serde::Serialize;

use super::{processes::Processes, site::Site};
use crate::SuiteResult;

/// The shortest and the longest time between two kills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace(Duration, Duration);

impl Pace {
    /// For a store that is one server or a file.
    pub(super) const FAST: Self =
        Self(Duration::from_millis(60), Duration::from_millis(300));

    /// For several servers: each kill lets some jobs run again, and many kills would
    /// hide the jobs that run again because of a fault of the servers.
    pub(super) const SLOW: Self = Self(Duration::from_secs(1), Duration::from_secs(3));
}

/// The longest time that a server is down: shorter than a lease, so that no worker
/// loses its jobs because of an outage, and the bound on repeated runs holds.
const LONGEST_OUTAGE: Duration = Duration::from_millis(500);

/// The kind of process to kill. The kinds take turns, so that a short soak kills each
/// of them.
#[derive(Clone, Copy)]
enum Victim {
    Worker,
    Producer,
    /// The server, or a producer if the store has no server.
    Server,
}

const TURNS: [Victim; 5] =
    [Victim::Worker, Victim::Producer, Victim::Worker, Victim::Server, Victim::Worker];

/// How many processes were killed, by kind.
#[derive(Serialize, Debug, Default, Clone, Copy)]
pub(super) struct Kills {
    pub(super) workers: u64,
    pub(super) producers: u64,
    pub(super) servers: u64,
}

impl Kills {
    fn all(&self) -> u64 {
        self.workers + self.producers + self.servers
    }
}

/// Kills processes at random times. The kinds of processes take turns, and chance
/// selects the process of that kind.
pub(super) struct KillSchedule {
    environment: Environment,
    pace: Pace,
    next: Duration,
    kills: Kills,
}

impl KillSchedule {
    pub(super) fn new(environment: Environment, pace: Pace) -> Self {
        let next = environment.clock().elapsed() + pace.1;
        Self { environment, pace, next, kills: Kills::default() }
    }

    pub(super) fn count(&self) -> Kills {
        self.kills
    }

    /// Kills one process if the next kill is due.
    pub(super) async fn kill_if_due(
        &mut self,
        processes: &mut Processes,
        site: &mut Site,
    ) -> SuiteResult<()> {
        if self.environment.clock().elapsed() < self.next {
            return Ok(());
        }
        let random = self.environment.random();
        let pick = |of: usize| index(of, random.fraction());
        let turn = usize::try_from(self.kills.all())? % TURNS.len();
        match (TURNS[turn], site.server()) {
            (Victim::Worker, _) => {
                processes.kill_worker(pick)?;
                self.kills.workers += 1;
            }
            (Victim::Server, Some(server)) => {
                server.kill();
                self.environment.clock().sleep(self.draw(LONGEST_OUTAGE)).await;
                server.restart();
                self.kills.servers += 1;
            }
            _ => {
                processes.kill_producer(pick)?;
                self.kills.producers += 1;
            }
        }
        let Pace(shortest, longest) = self.pace;
        let pause = shortest + self.draw(longest.saturating_sub(shortest));
        self.next = self.environment.clock().elapsed() + pause;
        Ok(())
    }

    fn draw(&self, most: Duration) -> Duration {
        most.mul_f64(self.environment.random().fraction())
    }
}

/// Converts a fraction from 0 to 1 into an index below `of`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there are few processes, and a fraction is from 0 to 1"
)]
fn index(of: usize, fraction: f64) -> usize {
    (of as f64 * fraction) as usize
}
