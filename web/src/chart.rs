//! Small charts of the last hour, drawn on the server.

use maud::{Markup, html};

use crate::text::number;

const WIDTH: usize = 240;
const HEIGHT: u64 = 48;

/// A chart of one value for each minute of the last hour.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// One value for each minute, oldest first; `None` for a minute without a sample.
    pub(crate) values: Vec<Option<u64>>,
    pub(crate) is_bad: bool,
}

impl Chart<'_> {
    /// The chart with its title and its highest value.
    pub(crate) fn figure(&self) -> Markup {
        html! {
            figure {
                figcaption { (self.title) span.quiet { ", most " (number(self.highest())) } }
                (self.picture())
            }
        }
    }

    /// The chart alone. Screen readers read its summary.
    pub(crate) fn picture(&self) -> Markup {
        let highest = self.highest();
        let step = WIDTH / self.values.len().max(1);
        let last = self.values.iter().rev().flatten().next().copied().unwrap_or(0);
        let summary = format!(
            "{}, last hour: now {}, most {}",
            self.title,
            number(last),
            number(highest)
        );
        html! {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(summary) {
                @for (at, value) in self.values.iter().enumerate() {
                    @if let Some(value @ 1..) = *value {
                        @let height = (value * HEIGHT).div_ceil(highest.max(1)).min(HEIGHT);
                        rect.bar[!self.is_bad].bar-bad[self.is_bad]
                            x=(at * step) y=(HEIGHT - height)
                            width=(step - 1) height=(height) {}
                    }
                }
            }
        }
    }

    fn highest(&self) -> u64 {
        self.values.iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bar of the highest value is as high as the chart, and no value has no bar.
    #[test]
    fn the_bars_are_in_proportion_to_the_highest_value() {
        let values = vec![None, Some(0), Some(5), Some(10), Some(0)];

        let picture =
            Chart { title: "Jobs", values, is_bad: false }.picture().into_string();

        assert!(picture.contains("Jobs, last hour: now 0, most 10"), "{picture}");
        let bars = [
            r#"x="96" y="24" width="47" height="24""#,
            r#"x="144" y="0" width="47" height="48""#,
        ];
        assert_eq!(picture.matches("<rect").count(), bars.len(), "{picture}");
        for bar in bars {
            assert!(picture.contains(bar), "{bar} in {picture}");
        }
    }
}
