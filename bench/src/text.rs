//! Formats the results as tables for the terminal.

use crate::{
    growth::{Growth, Many},
    results::Results,
    sample::Figures,
    table::Table,
};

const HEADS: [&str; 11] = [
    "", "backend", "jobs/s", "spread", "of raw", "p50 us", "p99 us", "cmds", "trips",
    "cpu us", "B/job",
];

/// Formats all results as tables.
pub(crate) fn tables(results: &Results) -> String {
    let mut text = String::new();
    for durability in results.durabilities() {
        let mut table = Table::new(HEADS);
        let figures =
            results.figures.iter().filter(|figures| figures.durability == durability);
        for figures in figures {
            table.row(cells(figures), void(figures));
        }
        text.push_str(&format!("{durability}\n\n{}\n", table.render(usize::MAX)));
    }
    text.push_str(&growth(&results.growth));
    text.push_str(&at_rest(results));
    text
}

fn cells(figures: &Figures) -> [String; 11] {
    let spread = figures.jobs_per_s_spread;
    let spread = spread.map(|(from, to)| format!("{}..{}", short(from), short(to)));
    [
        figures.workload.clone(),
        figures.backend.clone(),
        figures.jobs_per_s.map(short).unwrap_or_default(),
        spread.unwrap_or_default(),
        figures.of_raw.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        whole(figures.p50_us),
        whole(figures.p99_us),
        fine(figures.commands_per_job),
        fine(figures.round_trips_per_job),
        fine(figures.redis_cpu_us_per_job),
        whole(figures.memory_bytes_per_job),
    ]
}

fn void(figures: &Figures) -> Option<String> {
    let is_void = figures.exact == Some(false);
    is_void.then(|| "void: jobs were missing or handled twice".to_owned())
}

fn growth(all: &[Growth]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["backend", "beside", "us/job", "cmds", "cpu us"]);
    for growth in all {
        let many = match growth.many {
            Many::Waiting => "waiting",
            Many::Leased => "leased",
        };
        let cells = [
            growth.backend.clone(),
            format!("{} {many}", growth.jobs),
            format!("{:.0}", growth.us_per_job),
            fine(growth.commands_per_job),
            fine(growth.redis_cpu_us_per_job),
        ];
        table.row(cells, None);
    }
    format!("a job pushed, claimed and finished\n\n{}\n", table.render(usize::MAX))
}

fn at_rest(results: &Results) -> String {
    if results.at_rest.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["backend", "idle cmds/s", "recovered after lease, ms"]);
    for at_rest in &results.at_rest {
        let cells = [
            at_rest.backend.clone(),
            fine(at_rest.idle_commands_per_s),
            format!("{:.0}", at_rest.recovered_ms_after_lease),
        ];
        table.row(cells, None);
    }
    table.render(usize::MAX)
}

/// Formats a figure shortly: thousands as `12.3k`.
pub(crate) fn short(figure: f64) -> String {
    match figure {
        many if many >= 1e6 => format!("{:.2}M", many / 1e6),
        many if many >= 1e4 => format!("{:.0}k", many / 1e3),
        many if many >= 1e3 => format!("{:.1}k", many / 1e3),
        few => format!("{few:.0}"),
    }
}

pub(crate) fn whole(figure: Option<f64>) -> String {
    figure.map(|figure| format!("{figure:.0}")).unwrap_or_default()
}

pub(crate) fn fine(figure: Option<f64>) -> String {
    figure.map(|figure| format!("{figure:.2}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_figures_are_short() {
        let shown = [17.4, 999.0, 1234.0, 98_765.0, 1_234_567.0].map(short);
        assert_eq!(shown, ["17", "999", "1.2k", "99k", "1.23M"]);
    }
}
