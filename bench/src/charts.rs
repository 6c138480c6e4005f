//! The charts of the page, as SVG.

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

const SIZE: (u32, u32) = (880, 420);

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

/// One row of bars for each of these workloads.
const RATED: [Workload; 6] = [
    Workload::PushOne,
    Workload::PushTasks,
    Workload::PushBatches,
    Workload::DrainOne,
    Workload::DrainTasks,
    Workload::DrainBatches,
];

/// Bars side by side: a value for each name, for each of several groups.
struct Bars<'a> {
    title: &'a str,
    unit: &'a str,
    groups: Vec<String>,
    names: Vec<String>,
    /// The values by group, then by name.
    values: Vec<Vec<Option<f64>>>,
}

/// Jobs a second of each workload, on the first server measured.
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
    Bars {
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

/// The time from the push to the handler: the median and the 99th percentile.
pub(crate) fn hand_over(results: &Results, file: &Path) -> Drawn {
    let Some(durability) = results.durabilities().first().copied() else {
        return Ok(());
    };
    let names = names_on(results, durability);
    let figures = |name: &String| find(results, durability, Workload::HandOver, name);
    let p50 = names.iter().map(|name| figures(name)?.p50_us).collect();
    let p99 = names.iter().map(|name| figures(name)?.p99_us).collect();
    Bars {
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

/// A workload's figures.
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

impl Bars<'_> {
    fn draw(&self, file: &Path) -> Drawn {
        let area = SVGBackend::new(file, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let range = around(self.values.iter().flatten().flatten().copied());
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(Groups(&self.groups), range.clone().log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .y_desc(self.unit)
            .y_label_formatter(&|value| crate::text::short(*value))
            .x_labels(self.groups.len())
            .draw()?;
        for (at, name) in self.names.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let bars = self.bars_of(at, range.start);
            chart
                .draw_series(
                    bars.map(|corners| Rectangle::new(corners, colour.filled())),
                )?
                .label(name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .draw()?;
        area.present()?;
        Ok(())
    }

    /// The bars of one name, each a part of its group's width.
    fn bars_of(
        &self,
        name: usize,
        floor: f64,
    ) -> impl Iterator<Item = [(f64, f64); 2]> + '_ {
        const FILLED: f64 = 0.84;
        let places = (0u32..).zip(&self.names);
        let place = places.map(|(place, _)| f64::from(place)).nth(name).unwrap_or(0.0);
        let width = FILLED / count(self.names.len() as u64);
        (0u32..).zip(&self.values).filter_map(move |(group, values)| {
            let value = values.get(name).copied().flatten()?;
            let left = f64::from(group) + (1.0 - FILLED) / 2.0 + place * width;
            Some([(left, floor), (left + width, value)])
        })
    }
}

/// An axis with a section of length 1 for each group, with its name in the middle.
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

/// The cost of a job against the number of other jobs.
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

fn draw_growth(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    points: &[&Growth],
    many: Many,
) -> Drawn {
    area.fill(&WHITE)?;
    let (title, axis) = words(many);
    let width = around(points.iter().map(|growth| count(growth.jobs)));
    let height = around(points.iter().map(|growth| growth.us_per_job));
    let mut chart = ChartBuilder::on(area)
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
    for (at, (name, line)) in lines(points).into_iter().enumerate() {
        let colour = COLOURS[(at + 1) % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))?
            .label(name)
            .legend(move |at| sample_of(colour, at));
        let dots = line.into_iter().map(|at| Circle::new(at, 3, colour.filled()));
        chart.draw_series(dots)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .draw()?;
    Ok(())
}

/// A short line of that colour, for the legend.
fn sample_of(colour: RGBColor, (x, y): (i32, i32)) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2))
}

/// The title of the chart, and the label of its horizontal axis.
fn words(many: Many) -> (&'static str, &'static str) {
    match many {
        Many::Waiting => ("A job's cost beside others that wait", "jobs waiting"),
        Many::Leased => ("A job's cost beside others that are leased", "jobs leased"),
    }
}

/// The points of each backend, in the order in which they were measured.
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

/// The range from below the smallest to above the largest value, for a logarithmic
/// axis.
fn around(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().reduce(f64::min).unwrap_or(1.0).max(1e-3);
    let largest = values.reduce(f64::max).unwrap_or(10.0).max(least * 2.0);
    10f64.powf(least.log10().floor())..largest * 1.6
}
