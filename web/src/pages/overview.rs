//! The overview: all queues with their counts, their rates and the last hour.

use axum::response::Response;
use maud::{Markup, html};
use relq_core::{QueueName, Stats, operator::Span};

use super::layout;
use crate::{
    chart::Chart,
    links::with_query,
    live::rate,
    page_error::PageError,
    sampler::{Known, MOST_QUEUES},
    text::{number, visible},
    view::View,
};

/// How many queues one page has.
const PAGE: usize = 50;

pub(crate) async fn show(view: View) -> Result<Response, PageError> {
    let names = view.app.sampler.names().await?;
    let after = view.query.read::<QueueName>("after")?;
    let part = view.query.get("name").unwrap_or_default();
    let mut wanted = names.iter().filter(|name| name.as_str().contains(part));
    let begins = |name: &&QueueName| after.as_ref().is_none_or(|after| *name > after);
    let page: Vec<_> = wanted.by_ref().filter(begins).take(PAGE).collect();
    let next = if wanted.next().is_some() { page.last() } else { None };
    let body = html! {
        h1 { "Queues" }
        (filter(&view, part))
        @if page.is_empty() {
            p { "There is no queue here. A queue appears with its first job." }
        } @else {
            (table(&view, &page))
        }
        @if let Some(last) = next {
            @let query = [("name", Some(part)), ("after", Some(last.as_str()))];
            p { a href=(with_query(&view.app.links.home(), &query)) { "More queues" } }
        }
        (note(names.len()))
    };
    let live = view.app.links.to("/live");
    Ok(layout::page(&view, "Queues", Some(&live), &body))
}

fn filter(view: &View, part: &str) -> Markup {
    html! {
        form.filter method="get" action=(view.app.links.home()) {
            label { "Name contains " input name="name" value=(part); }
            button type="submit" { "Filter" }
        }
    }
}

fn table(view: &View, names: &[&QueueName]) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "Queue" }
                        @for head in ["Ready", "Scheduled", "Leased", "Dead", "Rate"] {
                            th.number scope="col" { (head) }
                        }
                        th.spark scope="col" { "Ready, last hour" }
                        th.spark scope="col" { "Died, last hour" }
                    }
                }
                tbody {
                    @for name in names {
                        (row(view, name))
                    }
                }
            }
        }
    }
}

fn row(view: &View, name: &QueueName) -> Markup {
    let known = view.app.sampler.known(name);
    html! {
        tr {
            th.text scope="row" {
                a href=(view.app.links.queue(name, "")) { (visible(name.as_str())) }
                @if known.as_ref().is_some_and(is_paused) {
                    " " span.bad { "paused" }
                }
            }
            @match known.as_ref().map(|known| (known, &known.counts)) {
                Some((known, Ok(stats))) => {
                    (counts(name, stats))
                    td.number data-queue=(name) data-count="rate" { (rate(known)) }
                    @for chart in charts(known).iter().step_by(2) {
                        td.spark { (chart.picture()) }
                    }
                }
                Some((_, Err(error))) => { td.bad colspan="7" { (visible(error)) } }
                None => { td.quiet colspan="7" { "Its counts are on its page." } }
            }
        }
    }
}

fn is_paused(known: &Known) -> bool {
    known.counts.as_ref().is_ok_and(|stats| stats.paused)
}

fn counts(name: &QueueName, stats: &Stats) -> Markup {
    let counts = [
        ("ready", stats.ready),
        ("scheduled", stats.scheduled),
        ("leased", stats.leased),
        ("dead", stats.dead),
    ];
    html! {
        @for (count, value) in counts {
            td.number data-queue=(name) data-count=(count) { (number(value)) }
        }
    }
}

/// The last hour of a queue: ready jobs, jobs that ended, jobs that died.
pub(crate) fn charts(known: &Known) -> [Chart<'static>; 3] {
    let hour = known.history.spans();
    let of = |value: fn(&Span) -> u64| {
        hour.iter().map(|minute| minute.as_ref().map(value)).collect()
    };
    [
        Chart { title: "Ready jobs", values: of(|it| it.ready), is_bad: false },
        Chart {
            title: "Jobs ended per minute",
            values: of(|it| it.flow.ended),
            is_bad: false,
        },
        Chart {
            title: "Jobs that died per minute",
            values: of(|it| it.flow.died),
            is_bad: true,
        },
    ]
}

fn note(queues: usize) -> Markup {
    html! {
        p.quiet {
            "The charts and rates come from samples that this page keeps in memory while it "
            "runs: they begin with its start. A failed attempt that is retried is not a "
            "death."
            @if queues > MOST_QUEUES {
                " Only the first " (MOST_QUEUES) " queues are sampled."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use relq_core::operator::StatsHistory;

    use super::*;

    #[test]
    fn each_chart_has_its_own_values() {
        let minute = Duration::from_secs(60);
        let hour = std::num::NonZeroU16::new(60).unwrap();
        let (now, mut history) = (Instant::now(), StatsHistory::new(minute, hour));
        let mut stats = Stats::new();
        history.add(now, &stats);
        (stats.ready, stats.finished, stats.dead) = (1, 2, 3);
        history.add(now + minute, &stats);
        let known = Known { counts: Ok(stats), history };

        let charts = charts(&known);

        let drawn = charts
            .map(|chart| (chart.title, chart.values[58..].to_vec(), chart.is_bad));
        let expected = [
            ("Ready jobs", vec![Some(0), Some(1)], false),
            ("Jobs ended per minute", vec![Some(0), Some(2)], false),
            ("Jobs that died per minute", vec![Some(0), Some(3)], true),
        ];
        assert_eq!(drawn, expected);
    }
}
