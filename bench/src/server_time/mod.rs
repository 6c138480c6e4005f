//! Measures the longest time for which one command of an operation keeps the server
//! from serving other clients, with many jobs and with large jobs.

mod operations;
mod probe;

use std::{fmt::Write as _, time::Duration};

use relq::environment::Environment;
use serde::Serialize;

use self::probe::Probe;
use crate::{
    failure::{CommandResult, Failure},
    growth::queue_name,
    message::say,
    server::{Durability, Server},
};

/// The time limit for one command. It applies to jobs whose payload is not larger than
/// [`ONE_STEP`].
pub(crate) const LIMIT: Duration = Duration::from_millis(5);

/// The most bytes of payloads that a backend moves in one script if it moves more than
/// one job. The push calls of this benchmark have about this size.
pub(crate) const ONE_STEP: usize = 1 << 20;

/// The number of jobs in a queue, and the size of their payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Load {
    pub(crate) jobs: usize,
    pub(crate) payload: usize,
    /// How often all operations are repeated. Each repetition measures the longest time
    /// of an operation. The shortest of these times is reported, because the machine
    /// may do other work during the other repetitions.
    #[serde(skip)]
    repetitions: usize,
}

impl Load {
    const FULL: [Self; 3] = [
        Self { jobs: 1_000_000, payload: 256, repetitions: 2 },
        Self { jobs: 100, payload: ONE_STEP, repetitions: 3 },
        Self { jobs: 12, payload: 16 * ONE_STEP, repetitions: 3 },
    ];

    const QUICK: [Self; 3] = [
        Self { jobs: 20_000, ..Self::FULL[0] },
        Self { jobs: 40, ..Self::FULL[1] },
        Self { jobs: 4, ..Self::FULL[2] },
    ];

    fn words(self) -> String {
        match self.payload >> 20 {
            0 => format!("{} of {} B", self.jobs, self.payload),
            mebibytes => format!("{} of {mebibytes} MiB", self.jobs),
        }
    }
}

/// The result of one operation of a backend under one load.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Longest {
    backend: String,
    load: Load,
    operation: &'static str,
    /// The longest time of one command. `None` if all commands were too fast for the
    /// server's slow log.
    milliseconds: Option<f64>,
    /// By how many MiB the resident memory of this process grew at its peak.
    client_mebibytes: Option<u64>,
}

impl Longest {
    fn is_too_long(&self) -> bool {
        let limit = LIMIT.as_secs_f64() * 1e3;
        self.load.payload <= ONE_STEP && self.milliseconds.is_some_and(|it| it > limit)
    }
}

/// Measures the given backends on private servers, and prints the results. Fails if a
/// command took longer than [`LIMIT`].
pub(crate) async fn compare(
    backends: &[String],
    is_quick: bool,
) -> CommandResult<Report> {
    let loads = if is_quick { Load::QUICK } else { Load::FULL };
    let mut all = Vec::new();
    for backend in backends.iter().filter(|backend| *backend != "sqlite") {
        for load in loads {
            let mut rounds = Vec::new();
            for _ in 0..load.repetitions {
                rounds.push(round(backend, load).await?);
            }
            all.extend(shortest(rounds));
        }
        say(&format!("relq-bench: {backend} is measured"));
    }
    Ok(Report(all))
}

/// Runs all operations once, on a new server.
async fn round(backend: &str, load: Load) -> CommandResult<Vec<Longest>> {
    let server = Server::start(Durability::Memory).await?;
    let name = queue_name(&Environment::default().random().text(12))?;
    let queue = relq::connect(&server.url_of(backend, 0), &name).await?;
    let mut probe = Probe::start(server.connect().await?).await?;
    operations::all(&*queue, load, &mut probe).await?;
    let of = |(operation, noted): (_, probe::Noted)| Longest {
        backend: backend.to_owned(),
        load,
        operation,
        milliseconds: noted.longest.map(|longest| longest.as_secs_f64() * 1e3),
        client_mebibytes: noted.client_bytes.map(|bytes| bytes >> 20),
    };
    Ok(probe.noted().into_iter().map(of).collect())
}

/// Returns, for each operation, the shortest time and the least memory of all rounds.
fn shortest(rounds: Vec<Vec<Longest>>) -> Vec<Longest> {
    let mut rounds = rounds.into_iter();
    let mut best = rounds.next().unwrap_or_default();
    for round in rounds {
        for (best, other) in best.iter_mut().zip(round) {
            if other.milliseconds < best.milliseconds {
                best.milliseconds = other.milliseconds;
            }
            best.client_mebibytes = best.client_mebibytes.min(other.client_mebibytes);
        }
    }
    best
}

/// The result of the whole measurement: the longest times of all operations on all
/// backends.
#[derive(Debug)]
pub(crate) struct Report(Vec<Longest>);

impl Report {
    /// The results as JSON, one object on each line.
    pub(crate) fn json_lines(&self) -> CommandResult<String> {
        let line = |longest| match serde_json::to_string(longest) {
            Ok(line) => Ok(line + "\n"),
            Err(error) => Err(Failure::Failed(error.to_string())),
        };
        self.0.iter().map(line).collect()
    }

    /// Returns a Markdown table for each load. A table has a row for each operation and
    /// a column for each backend.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        let mut loads: Vec<_> = self.0.iter().map(|longest| longest.load).collect();
        loads.dedup();
        loads.sort_by_key(|load| load.payload);
        loads.dedup();
        for load in loads {
            self.table(&mut text, load);
        }
        text
    }

    fn table(&self, text: &mut String, load: Load) {
        let of_load: Vec<_> = self.0.iter().filter(|it| it.load == load).collect();
        let backends = distinct(of_load.iter().map(|longest| longest.backend.as_str()));
        let operations = distinct(of_load.iter().map(|longest| longest.operation));
        let _ = writeln!(text, "| {} | {} |", load.words(), backends.join(" | "));
        let _ = writeln!(text, "|---|{}", "--:|".repeat(backends.len()));
        for operation in operations {
            let cell = |backend: &&str| {
                let of_it = |longest: &&&Longest| {
                    longest.operation == operation && longest.backend == *backend
                };
                of_load
                    .iter()
                    .find(of_it)
                    .map(|longest| cell(longest))
                    .unwrap_or_default()
            };
            let cells: Vec<_> = backends.iter().map(cell).collect();
            let _ = writeln!(text, "| {operation} | {} |", cells.join(" | "));
        }
        text.push('\n');
    }

    /// Returns a sentence for each operation in which a command took longer than the
    /// limit.
    pub(crate) fn excesses(&self) -> Vec<String> {
        let too_long = self.0.iter().filter(|longest| longest.is_too_long());
        too_long
            .map(|longest| {
                let Longest { backend, load, operation, .. } = longest;
                format!("{backend}, {}, {operation}: {}", load.words(), cell(longest))
            })
            .collect()
    }
}

/// Formats a cell of the table: the milliseconds of the server, and in brackets the
/// mebibytes of the client if there are any.
fn cell(longest: &Longest) -> String {
    let time = match longest.milliseconds {
        Some(time) => format!("{time:.1}"),
        None => format!("< {:.1}", probe::SHORTEST.as_secs_f64() * 1e3),
    };
    match longest.client_mebibytes {
        Some(mebibytes @ 1..) => format!("{time} ({mebibytes})"),
        _ => time,
    }
}

/// Returns each value once, in the order in which the values first occur.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    values.for_each(|value| {
        if !all.contains(&value) {
            all.push(value);
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(operation: &'static str, payload: usize, milliseconds: f64) -> Longest {
        let load = Load { jobs: 7, payload, repetitions: 1 };
        let milliseconds = Some(milliseconds);
        let backend = "zset".to_owned();
        Longest { backend, load, operation, milliseconds, client_mebibytes: None }
    }

    #[test]
    fn only_payloads_above_one_step_may_take_longer() {
        let all = [("claim", 1, 5.1), ("peek", 1, 4.9), ("audit", 2, 9.0)];
        let all = all.map(|(name, size, time)| longest(name, size * ONE_STEP, time));
        let excesses = Report(all.to_vec()).excesses();
        assert_eq!(excesses, ["zset, 7 of 1 MiB, claim: 5.1"]);
    }

    #[test]
    fn the_shortest_round_counts() {
        let rounds = [6.0, 2.0, 4.0].map(|time| vec![longest("claim", 1, time)]);
        assert_eq!(shortest(rounds.to_vec())[0].milliseconds, Some(2.0));
    }
}
