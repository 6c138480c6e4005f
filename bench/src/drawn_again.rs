//! Reads the figures of a page of measurements back, so that its charts can be drawn
//! again without a new measurement.
//!
//! The page shows rounded figures, such as `18k`. In a chart the rounding error is
//! smaller than a dot.

use crate::{
    growth::{Growth, Many},
    results::Results,
    sample::Figures,
};

/// Reads those figures of a page that its charts show. The result is empty if the page
/// has no tables with such figures.
pub(crate) fn results(page: &str) -> Results {
    let mut results = Results::default();
    let (mut durability, mut sizes) = (String::new(), Vec::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut durability);
            sizes.clear();
        }
        let Some(cells) = cells(line) else { continue };
        match &cells[..] {
            ["backend", heads @ ..] => {
                sizes = heads.iter().copied().map(size).collect();
            }
            [workload, backend, rate, _spread, _ratio, p50, p99, ..]
                if is_workload(workload) =>
            {
                results.figures.push(Figures {
                    backend: backend.trim_end_matches(" (void)").to_owned(),
                    workload: (*workload).to_owned(),
                    durability: durability.clone(),
                    jobs_per_s: number(rate),
                    p50_us: number(p50),
                    p99_us: number(p99),
                    ..Figures::default()
                });
            }
            [backend, costs @ ..] => {
                let known = sizes.iter().zip(costs).filter_map(|(size, cost)| {
                    let ((jobs, many), cost) = ((*size)?, cost.split(' ').next()?);
                    let us_per_job = number(cost)?;
                    Some(growth(backend, many, jobs, us_per_job))
                });
                results.growth.extend(known);
            }
            [] => {}
        }
    }
    results
}

/// The cells of a line of a Markdown table. `None` if the line is not part of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

fn is_workload(cell: &str) -> bool {
    cell.strip_prefix('W')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Parses the head of a table column, such as `1000 waiting`. Returns `None` for other
/// heads.
fn size(head: &str) -> Option<(u64, Many)> {
    let (jobs, many) = head.split_once(' ')?;
    let many = match many {
        "waiting" => Many::Waiting,
        "leased" => Many::Leased,
        _ => return None,
    };
    Some((jobs.parse().ok()?, many))
}

/// Parses a figure as `text::short` writes it.
fn number(cell: &str) -> Option<f64> {
    let (digits, factor) = match cell.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => cell.strip_suffix('M').map_or((cell, 1.0), |digits| (digits, 1e6)),
    };
    digits.parse::<f64>().ok().map(|number| number * factor)
}

fn growth(backend: &str, many: Many, jobs: u64, us_per_job: f64) -> Growth {
    Growth {
        backend: backend.to_owned(),
        many,
        jobs,
        us_per_job,
        commands_per_job: None,
        redis_cpu_us_per_job: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
## memory only

| | backend | jobs/s | spread | of raw | p50 us | p99 us | commands/job |
|---|---|--:|--:|--:|--:|--:|--:|
| W1 | raw Redis | 18k | 13k..19k | 1.00 |  |  | 1.00 |
| W5 | zset (void) |  |  | 2.41 | 668 | 1456 | 24.23 |

## Growth

| backend | 10 leased | 1000 leased |
|---|--:|--:|
| zset | 249 (84.0) |  |
| sqlite | 624 | 567 |

## Idle workers

| backend | idle commands/s |
|---|--:|
| zset | 2.00 |
";

    #[test]
    fn the_figures_of_a_page_are_read_back() {
        let results = results(PAGE);

        let figures = results.figures.iter().map(|it| {
            (it.workload.as_str(), it.backend.as_str(), it.jobs_per_s, it.p50_us)
        });
        let figures: Vec<_> = figures.collect();
        assert_eq!(
            figures,
            [("W1", "raw Redis", Some(18e3), None), ("W5", "zset", None, Some(668.0))]
        );
        assert_eq!(results.durabilities(), ["memory only"]);
        let growth: Vec<_> = results
            .growth
            .iter()
            .map(|it| (it.backend.as_str(), it.jobs, it.us_per_job))
            .collect();
        assert_eq!(
            growth,
            [("zset", 10, 249.0), ("sqlite", 10, 624.0), ("sqlite", 1000, 567.0)]
        );
    }
}
