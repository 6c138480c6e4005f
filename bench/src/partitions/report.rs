//! The figures of queues of several parts, as a table or as JSON.

use std::{num::NonZeroU16, time::Duration};

use serde::Serialize;

use super::{Phase, Run};
use crate::{
    failure::{CommandResult, Failure},
    sample::{count, median},
    spent::Spent,
    table::Table,
    text::{fine, short},
};

/// The figures of all backends and numbers of parts: the medians over the repetitions.
#[derive(Debug, Default)]
pub(crate) struct Report {
    figures: Vec<Figures>,
}

/// The figures of one backend and one number of parts.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    backend: String,
    partitions: NonZeroU16,
    push: Costs,
    drain: Costs,
    /// Commands per second that the busiest node runs for a worker without jobs, also
    /// inside of scripts.
    idle_commands_per_s: f64,
    /// Whether each job was handled exactly once.
    exact: bool,
}

/// The cost of a pushed or of a drained job.
#[derive(Debug, Clone, Serialize)]
struct Costs {
    jobs_per_s: f64,
    /// The commands that all nodes run for a job.
    commands_per_job: f64,
    /// How often the nodes read from a connection for a job.
    round_trips_per_job: f64,
    /// Microseconds of processor time that each node spends, divided by the number of
    /// jobs of the whole queue. The node that spends most is the first.
    node_cpu_us_per_job: Vec<f64>,
    /// The time of the busiest node, divided by that of the queue with the first number
    /// of parts.
    of_first: f64,
}

impl Report {
    /// Adds the figures of some runs with one number of parts.
    pub(super) fn add(&mut self, backend: &str, partitions: NonZeroU16, runs: &[Run]) {
        let mut first = self.figures.iter().filter(|one| one.backend == backend);
        let first = first.next();
        let push = Costs::of(runs, |run| &run.push, first.map(|first| &first.push));
        let drain = Costs::of(runs, |run| &run.drain, first.map(|first| &first.drain));
        let idle = runs.iter().map(|run| {
            let commands = |node: &Spent| per_second(node.commands, run.idle.took);
            run.idle.nodes.iter().map(commands).fold(0.0, f64::max)
        });
        self.figures.push(Figures {
            backend: backend.to_owned(),
            partitions,
            push,
            drain,
            idle_commands_per_s: median(idle.collect()).unwrap_or(0.0),
            exact: runs.iter().all(|run| run.exact),
        });
    }

    /// Whether every job of every run was handled exactly once.
    pub(crate) fn is_exact(&self) -> bool {
        self.figures.iter().all(|figures| figures.exact)
    }

    /// Formats the figures as JSON, one object on each line.
    pub(crate) fn json_lines(&self) -> CommandResult<String> {
        let lines = self.figures.iter().map(serde_json::to_string);
        let lines = lines.collect::<Result<Vec<_>, _>>();
        let lines = lines.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(lines.join("\n") + "\n")
    }

    /// Formats the figures as a table.
    pub(crate) fn tables(&self) -> String {
        let mut table = Table::new([
            "backend",
            "parts",
            "",
            "jobs/s",
            "cmds",
            "trips",
            "cpu us/job of each node",
            "of first",
            "idle cmds/s a node",
        ]);
        for figures in &self.figures {
            for (what, costs) in [("push", &figures.push), ("drain", &figures.drain)] {
                let is_drain = what == "drain";
                let idle = is_drain.then_some(figures.idle_commands_per_s);
                let nodes = costs.node_cpu_us_per_job.iter();
                let nodes: Vec<_> = nodes.map(|node| fine(Some(*node))).collect();
                let cells = [
                    figures.backend.clone(),
                    figures.partitions.to_string(),
                    what.to_owned(),
                    short(costs.jobs_per_s),
                    fine(Some(costs.commands_per_job)),
                    fine(Some(costs.round_trips_per_job)),
                    nodes.join(" "),
                    fine(Some(costs.of_first)),
                    fine(idle),
                ];
                let is_void = is_drain && !figures.exact;
                let void = "void: jobs were missing or handled twice";
                table.row(cells, is_void.then(|| void.to_owned()));
            }
        }
        table.render(usize::MAX)
    }
}

impl Costs {
    fn of(runs: &[Run], phase: impl Fn(&Run) -> &Phase, first: Option<&Self>) -> Self {
        let rates = runs.iter().map(&phase).map(|one| per_second(one.jobs, one.took));
        let nodes = runs.iter().map(&phase).map(sorted_cpu).collect::<Vec<_>>();
        let most = nodes.first().map_or(0, Vec::len);
        let of_node = |at: usize| {
            let all = nodes.iter().filter_map(|run| run.get(at).copied());
            median(all.collect()).unwrap_or(0.0)
        };
        let node_cpu_us_per_job: Vec<_> = (0..most).map(of_node).collect();
        let busiest = |costs: &[f64]| costs.first().copied().unwrap_or(0.0);
        let own = busiest(&node_cpu_us_per_job);
        let of_first = first.map_or(1.0, |it| own / busiest(&it.node_cpu_us_per_job));
        let per_job = |figure: fn(&Spent) -> u64| {
            let all = runs.iter().map(&phase).map(|one| {
                let sum: u64 = one.nodes.iter().map(figure).sum();
                count(sum) / count(one.jobs.max(1))
            });
            median(all.collect()).unwrap_or(0.0)
        };
        Self {
            jobs_per_s: median(rates.collect()).unwrap_or(0.0),
            commands_per_job: per_job(|node| node.commands),
            round_trips_per_job: per_job(|node| node.reads),
            node_cpu_us_per_job,
            of_first,
        }
    }
}

/// The time that each node spent on a job of the queue, the longest first.
fn sorted_cpu(phase: &Phase) -> Vec<f64> {
    let jobs = count(phase.jobs.max(1));
    let mut all: Vec<_> = phase.nodes.iter().map(|node| node.cpu_us / jobs).collect();
    all.sort_by(|one, other| other.total_cmp(one));
    all
}

fn per_second(of: u64, took: Duration) -> f64 {
    count(of) / took.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(jobs: u64, cpu_us: [f64; 3]) -> Phase {
        let node =
            |cpu_us| Spent { commands: 8, reads: 0, bytes: 0, cpu_us, memory: 0.0 };
        Phase { jobs, took: Duration::from_secs(2), nodes: cpu_us.map(node).to_vec() }
    }

    fn run(jobs: u64, cpu_us: [f64; 3]) -> Run {
        let phase = phase(jobs, cpu_us);
        Run { push: phase.clone(), drain: phase.clone(), idle: phase, exact: true }
    }

    #[test]
    fn the_busiest_node_is_compared_with_that_of_the_first_number() {
        let mut report = Report::default();
        let three = NonZeroU16::new(3).unwrap();

        report.add("zset", NonZeroU16::MIN, &[run(100, [0.0, 600.0, 0.0])]);
        report.add("zset", three, &[run(300, [600.0, 570.0, 630.0])]);

        let costs = &report.figures[1].drain;
        assert_eq!(costs.node_cpu_us_per_job, [2.1, 2.0, 1.9]);
        assert!((costs.of_first - 0.35).abs() < 1e-9, "{costs:?}");
        assert_eq!(costs.jobs_per_s, 150.0);
        assert_eq!(report.figures[1].idle_commands_per_s, 4.0);
    }

    #[test]
    fn a_run_that_lost_a_job_is_void() {
        let mut report = Report::default();
        report.add(
            "zset",
            NonZeroU16::MIN,
            &[Run { exact: false, ..run(1, [1.0; 3]) }],
        );

        assert!(!report.is_exact());
        assert!(report.tables().contains("void"), "{}", report.tables());
    }
}
