//! Draws the charts for the page of measurements, as SVG files.
//!
//! The measured values differ by more than a factor of ten, so the value axis is
//! logarithmic. A logarithmic axis has no zero, so a value is drawn as a dot: the
//! length of a bar would mean nothing. The legend has a column of its own, where it
//! covers no value.

use std::{error::Error, ops::Range, path::Path};

use plotters::{
    coord::{
        Shift,
        ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter},
    },
    prelude::*,
};

use crate::{
    growth::{Growth, Many},
    results::Results,
    sample::{Figures, count},
    workload::Workload,
};

type Drawn = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (1000, 420);

/// The width of the column that holds the legend.
const LEGEND_WIDTH: u32 = 140;

/// The radius of the dots in the charts, in pixels.
const DOT: i32 = 4;

/// Colours that people with colour blindness can distinguish (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(153, 153, 153),
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
];

/// The workloads that the throughput chart shows. Each has one group of dots.
const RATED: [Workload; 6] = [
    Workload::PushOne,
    Workload::PushTasks,
    Workload::PushBatches,
    Workload::DrainOne,
    Workload::DrainTasks,
    Workload::DrainBatches,
];

/// A chart that shows groups of dots next to each other. Each group has one dot for
/// each name.
struct Dots<'a> {
    title: &'a str,
    unit: &'a str,
    groups: Vec<String>,
    names: Vec<String>,
    /// The values of each group, in the order of the names. `None` draws no dot.
    values: Vec<Vec<Option<f64>>>,
}

/// Draws the jobs per second of each workload, as measured on the first server.
pub(crate) fn throughput(results: &Results, file: &Path) -> Drawn {
    let Some(durability) = results.durabilities().first().copied() else {
        return Ok(());
    };
    let names = names_on(results, durability);
    let value = |workload: Workload, name: &String| {
        find(results, durability, workload, name).and_then(|it| it.jobs_per_s)
    };
    let group =
        |workload: Workload| format!("{} {}", workload.name(), workload.words());
    Dots {
        title: "Jobs a second, by pattern",
        unit: "jobs a second",
        groups: RATED.map(group).into(),
        values: RATED
            .map(|workload| names.iter().map(|name| value(workload, name)).collect())
            .into(),
        names,
    }
    .draw(file)
}

/// Draws the time from a push to the start of the handler: median and 99th percentile.
pub(crate) fn hand_over(results: &Results, file: &Path) -> Drawn {
    let Some(durability) = results.durabilities().first().copied() else {
        return Ok(());
    };
    let names = names_on(results, durability);
    let figures = |name: &String| find(results, durability, Workload::HandOver, name);
    let p50 = names.iter().map(|name| figures(name)?.p50_us).collect();
    let p99 = names.iter().map(|name| figures(name)?.p99_us).collect();
    Dots {
        title: "From push to handler, idle worker",
        unit: "microseconds",
        groups: vec!["half are sooner (p50)".into(), "99 of 100 are (p99)".into()],
        values: vec![p50, p99],
        names,
    }
    .draw(file)
}

fn names_on(results: &Results, durability: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figures in &results.figures {
        if figures.durability == durability && !names.contains(&figures.backend) {
            names.push(figures.backend.clone());
        }
    }
    names
}

/// Finds the figures of a workload on a backend. `None` if it was not measured.
pub(crate) fn find<'a>(
    results: &'a Results,
    durability: &str,
    workload: Workload,
    name: &str,
) -> Option<&'a Figures> {
    results.figures.iter().find(|figures| {
        figures.durability == durability
            && figures.workload == workload.name()
            && figures.backend == name
    })
}

impl Dots<'_> {
    fn draw(&self, file: &Path) -> Drawn {
        let area = SVGBackend::new(file, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = split(&area);
        let range = around(self.values.iter().flatten().flatten().copied());
        let mut chart = ChartBuilder::on(&left)
            .caption(self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(Groups(&self.groups), range.log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .y_desc(self.unit)
            .y_label_formatter(&|value| crate::text::short(*value))
            .x_labels(self.groups.len())
            .draw()?;
        for (at, colour) in (0..self.names.len()).zip(COLOURS.into_iter().cycle()) {
            let dots = self.values_of(at);
            chart.draw_series(dots.map(|at| Circle::new(at, DOT, colour.filled())))?;
        }
        let names = self.names.iter().map(String::as_str);
        legend(&right, names.zip(COLOURS.into_iter().cycle()))?;
        area.present()?;
        Ok(())
    }

    /// Returns the dots that belong to one name: for each group, the position on the
    /// horizontal axis and the value.
    fn values_of(&self, name: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        const FILLED: f64 = 0.7;
        let width = FILLED / count(self.names.len() as u64);
        let place = (1.0 - FILLED) / 2.0 + width * (count(name as u64) + 0.5);
        (0u32..).zip(&self.values).filter_map(move |(group, values)| {
            let value = values.get(name).copied().flatten()?;
            Some((f64::from(group) + place, value))
        })
    }
}

/// Divides an area into the part for the chart and the column for its legend.
fn split<'a>(area: &Area<'a>) -> (Area<'a>, Area<'a>) {
    area.split_horizontally(SIZE.0 - LEGEND_WIDTH)
}

/// Draws the legend: a line for each name, with its colour.
fn legend<'a>(
    area: &Area<'_>,
    names: impl Iterator<Item = (&'a str, RGBColor)>,
) -> Drawn {
    const TOP: i32 = 60;
    const LINE: i32 = 22;
    for ((name, colour), y) in names.zip((TOP..).step_by(LINE.unsigned_abs() as usize))
    {
        area.draw(&Circle::new((8, y), DOT, colour.filled()))?;
        let style = ("sans-serif", 14).into_font();
        area.draw(&Text::new(name.to_owned(), (20, y - 7), style))?;
    }
    Ok(())
}

/// A horizontal axis that is divided into sections of length 1, one for each group. The
/// name of the group stands in the middle of its section.
struct Groups<'a>(&'a [String]);

impl Ranged for Groups<'_> {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, at: &f64, (from, to): (i32, i32)) -> i32 {
        let part = at / count(self.0.len().max(1) as u64);
        #[expect(clippy::cast_possible_truncation, reason = "it is between the two")]
        let offset = (part * f64::from(to - from)).round() as i32;
        from + offset
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0u32..).take(self.0.len()).map(|group| f64::from(group) + 0.5).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..count(self.0.len() as u64)
    }
}

impl ValueFormatter<f64> for Groups<'_> {
    fn format_ext(&self, at: &f64) -> String {
        let mut groups = (1u32..).zip(self.0);
        let group = groups.find(|(end, _)| *at < f64::from(*end));
        group.map(|(_, name)| name.clone()).unwrap_or_default()
    }
}

/// Draws how the cost of one job depends on the number of other jobs in the queue.
pub(crate) fn growth(results: &Results, many: Many, file: &Path) -> Drawn {
    let points: Vec<_> =
        results.growth.iter().filter(|growth| growth.many == many).collect();
    if points.is_empty() {
        return Ok(());
    }
    let area = SVGBackend::new(file, SIZE).into_drawing_area();
    draw_growth(&area, &points, many)?;
    area.present()?;
    Ok(())
}

fn draw_growth(area: &Area<'_>, points: &[&Growth], many: Many) -> Drawn {
    area.fill(&WHITE)?;
    let (left, right) = split(area);
    let (title, axis) = words(many);
    let width = around(points.iter().map(|growth| count(growth.jobs)));
    let height = around(points.iter().map(|growth| growth.us_per_job));
    let mut chart = ChartBuilder::on(&left)
        .caption(title, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(width.log_scale(), height.log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(axis)
        .y_desc("microseconds a job")
        .x_label_formatter(&|value| crate::text::short(*value))
        .y_label_formatter(&|value| crate::text::short(*value))
        .draw()?;
    // Skip the first colour. The other charts use it for the bare store, which this
    // chart does not show.
    let colours = || COLOURS.into_iter().cycle().skip(1);
    let lines = lines(points);
    for ((_, line), colour) in lines.iter().zip(colours()) {
        chart.draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))?;
        let dots = line.iter().map(|at| Circle::new(*at, DOT, colour.filled()));
        chart.draw_series(dots)?;
    }
    legend(&right, lines.iter().map(|(name, _)| *name).zip(colours()))
}

/// Returns the title of a growth chart, and the label of its horizontal axis.
fn words(many: Many) -> (&'static str, &'static str) {
    match many {
        Many::Waiting => ("A job's cost beside others that wait", "jobs waiting"),
        Many::Leased => ("A job's cost beside others that are leased", "jobs leased"),
    }
}

/// Returns the name and the points of the line of each backend. The backends are in the
/// order in which they were measured.
fn lines<'a>(points: &[&'a Growth]) -> Vec<(&'a str, Vec<(f64, f64)>)> {
    let mut lines = Vec::<(&str, Vec<_>)>::new();
    for growth in points {
        let point = (count(growth.jobs), growth.us_per_job);
        match lines.last_mut().filter(|(name, _)| *name == growth.backend) {
            Some((_, line)) => line.push(point),
            None => lines.push((&growth.backend, vec![point])),
        }
    }
    lines
}

/// Returns a range that contains all values, for a logarithmic axis. Both ends are
/// round numbers: 1, 2 or 5 times a power of ten.
fn around(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().reduce(f64::min).unwrap_or(1.0).max(1e-3);
    let largest = values.reduce(f64::max).unwrap_or(10.0).max(least * 2.0);
    let steps =
        || (-3..=12).flat_map(|ten| [1.0, 2.0, 5.0].map(|of| of * 10f64.powi(ten)));
    let from = steps().take_while(|step| *step <= least * 0.95).last();
    let to = steps().find(|step| *step >= largest * 1.05);
    from.unwrap_or(least)..to.unwrap_or(largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Figures;

    /// Reads one attribute, such as `cx`, of every circle in an SVG text.
    fn of_circles(svg: &str, attribute: &str) -> Vec<i32> {
        let circles = svg.lines().filter(|line| line.starts_with("<circle"));
        let value = |line: &str| {
            let rest = line.split_once(&format!("{attribute}=\""))?.1;
            rest.split_once('"')?.0.parse().ok()
        };
        circles.map(|line| value(line).unwrap()).collect()
    }

    fn results(names: &[&str]) -> Results {
        let figures = names.iter().flat_map(|name| {
            RATED.iter().chain([&Workload::HandOver]).map(|workload| Figures {
                backend: (*name).to_owned(),
                workload: workload.name().to_owned(),
                durability: "memory only".to_owned(),
                jobs_per_s: Some(900_000.0),
                p50_us: Some(300.0),
                p99_us: Some(900.0),
                ..Figures::default()
            })
        });
        let growth = names.iter().flat_map(|name| {
            [(10, 200.0), (1_000, 900.0)].map(|(jobs, us_per_job)| Growth {
                backend: (*name).to_owned(),
                many: Many::Waiting,
                jobs,
                us_per_job,
                commands_per_job: None,
                redis_cpu_us_per_job: None,
            })
        });
        let (figures, growth) = (figures.collect(), growth.collect());
        Results { figures, growth, ..Results::default() }
    }

    /// Each value is a circle to the left of the legend, and none is drawn as a bar.
    #[test]
    fn the_legend_covers_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["raw Redis", "circular", "processing-list", "zset"];
        let results = results(&names);
        let file = |name: &str| folder.path().join(name);
        throughput(&results, &file("rates.svg")).unwrap();
        hand_over(&results, &file("times.svg")).unwrap();
        growth(&results, Many::Waiting, &file("growth.svg")).unwrap();
        for (name, values) in [("rates.svg", 24), ("times.svg", 8), ("growth.svg", 8)] {
            let svg = std::fs::read_to_string(file(name)).unwrap();
            let legend = i32::try_from(SIZE.0 - LEGEND_WIDTH).unwrap();
            let (of_legend, of_values): (Vec<_>, Vec<_>) =
                of_circles(&svg, "cx").into_iter().partition(|x| *x >= legend);
            assert_eq!((of_legend.len(), of_values.len()), (names.len(), values));
            assert_eq!(svg.matches("<rect").count(), 1, "only the background: {name}");
        }
    }

    #[test]
    fn an_axis_ends_near_its_values() {
        for (values, range) in [
            ([5_600.0, 896_000.0], 5_000.0..1_000_000.0),
            ([277.0, 1_678.0], 200.0..2_000.0),
            ([195.0, 729.0], 100.0..1_000.0),
        ] {
            let found = around(values.into_iter());
            assert!((found.start - range.start).abs() < 1e-6, "{found:?}");
            assert!((found.end - range.end).abs() < 1e-3, "{found:?}");
        }
    }
}
