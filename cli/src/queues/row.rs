//! One queue in the list of `relq queues`.

use relq::{operator::Rates, store::StoreQueue};
use serde::Serialize;

use super::Reading;
use crate::{
    failure::Failure, printable::printable, stats::Figures, table::Table, values::age,
};

/// A queue with its figures, or with the reason why they cannot be read.
#[derive(Serialize)]
pub(super) struct Row {
    queue: String,
    backend: Option<String>,
    url: Option<String>,
    error: Option<String>,
    #[serde(flatten)]
    figures: Option<Figures>,
    pushed_per_s: Option<f64>,
    ended_per_s: Option<f64>,
}

impl Row {
    pub(super) fn new(
        queue: StoreQueue,
        reading: Reading,
        rates: Option<Rates>,
    ) -> Self {
        let (figures, error) = match reading {
            Ok((stats, _)) => (Some(Figures::from(&stats)), None),
            Err(Failure::Failed(why) | Failure::Usage(why)) => (None, Some(why)),
            Err(other) => (None, Some(format!("{other:?}"))),
        };
        Self {
            queue: queue.name.to_string(),
            backend: queue.backend,
            url: queue.url,
            error,
            figures,
            pushed_per_s: rates.map(|rates| rates.pushed),
            ended_per_s: rates.map(|rates| rates.ended),
        }
    }

    pub(super) fn is_unread(&self) -> bool {
        self.error.is_some()
    }

    fn cells(&self) -> [String; 11] {
        let number = |of: fn(&Figures) -> u64| {
            self.figures.as_ref().map(|it| of(it).to_string()).unwrap_or_default()
        };
        let rate = |rate: Option<f64>| rate.map(|it| format!("{it:.1}"));
        let oldest = self.figures.as_ref().and_then(Figures::oldest_ready);
        let is_paused = self.figures.as_ref().is_some_and(|it| it.paused);
        // All queues of a file have the same URL, which the user knows.
        let url = self.url.as_deref().filter(|url| !url.starts_with("sqlite:"));
        [
            printable(&self.queue),
            self.backend.as_deref().map(printable).unwrap_or_default(),
            number(|it| it.ready),
            oldest.map(age).unwrap_or_default(),
            number(|it| it.scheduled),
            number(|it| it.leased),
            number(|it| it.dead),
            rate(self.pushed_per_s).unwrap_or_default(),
            rate(self.ended_per_s).unwrap_or_default(),
            if is_paused { "paused".to_owned() } else { String::new() },
            url.map(printable).unwrap_or_default(),
        ]
    }
}

pub(super) fn table(rows: &[Row]) -> Table<11> {
    let heads = [
        "QUEUE",
        "BACKEND",
        "READY",
        "OLDEST",
        "SCHEDULED",
        "LEASED",
        "DEAD",
        "PUSHED/S",
        "ENDED/S",
        "STATE",
        "URL",
    ];
    // A column without cells is left out, and so is its head.
    let is_used =
        |column: usize| rows.iter().any(|row| !row.cells()[column].is_empty());
    let heads =
        std::array::from_fn(|column| if is_used(column) { heads[column] } else { "" });
    let mut table = Table::new(heads);
    for row in rows {
        table.row(row.cells(), row.error.as_deref().map(printable));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq::Stats;
    use serde_json::json;

    use super::*;

    /// A row in which no two figures are equal.
    fn row() -> Row {
        let mut stats = Stats::new();
        (stats.ready, stats.scheduled, stats.leased, stats.dead) = (1, 2, 3, 4);
        (stats.oldest_ready_age, stats.paused) = (Some(Duration::from_secs(5)), true);
        Row {
            queue: "mail".to_owned(),
            backend: Some("zset".to_owned()),
            url: Some("zset+redis://h/0".to_owned()),
            error: None,
            figures: Some(Figures::from(&stats)),
            pushed_per_s: Some(6.0),
            ended_per_s: Some(7.0),
        }
    }

    #[test]
    fn each_figure_of_a_queue_has_its_column() {
        let text = table(&[row()]).render(200);

        let mut lines = text.lines().map(str::split_whitespace);
        let columns: Vec<_> =
            lines.next().unwrap().zip(lines.next().unwrap()).collect();
        let expected = [
            ("QUEUE", "mail"),
            ("BACKEND", "zset"),
            ("READY", "1"),
            ("OLDEST", "5s"),
            ("SCHEDULED", "2"),
            ("LEASED", "3"),
            ("DEAD", "4"),
            ("PUSHED/S", "6.0"),
            ("ENDED/S", "7.0"),
            ("STATE", "paused"),
            ("URL", "zset+redis://h/0"),
        ];
        assert_eq!(columns, expected);
    }

    #[test]
    fn each_figure_of_a_queue_has_its_field_in_json() {
        let json = serde_json::to_value(row()).unwrap();

        let expected = json!({
            "queue": "mail", "backend": "zset", "url": "zset+redis://h/0", "error": null,
            "ready": 1, "scheduled": 2, "leased": 3, "overdue": 0, "dead": 4,
            "finished": 0, "discarded": 0, "cancelled": 0, "paused": true,
            "next_due_in_ms": null, "oldest_ready_age_ms": 5000,
            "pushed_per_s": 6.0, "ended_per_s": 7.0,
        });
        assert_eq!(json, expected);
    }
}
