//! Small charts of one line.

/// The heights of a bar, in eighths of a line.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last values in a chart of this many columns, with a blank for a time without one.
/// The highest value has a whole bar, and zero the lowest one.
pub(super) fn chart(values: &[Option<u64>], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let highest = shown.iter().flatten().copied().max().unwrap_or(0);
    let bar = |value: u64| {
        let height = (u128::from(value) * 7).checked_div(highest.into()).unwrap_or(0);
        BARS[usize::try_from(height).unwrap_or(7).min(7)]
    };
    shown.iter().map(|value| value.map_or(' ', bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_values_are_drawn() {
        let values = [Some(9), None, Some(0), Some(3), Some(7)];
        assert_eq!(chart(&values, 4), " ▁▄█");
        assert_eq!(chart(&values, 9), "█ ▁▃▆");
        assert_eq!(chart(&[Some(0), Some(0)], 5), "▁▁");
        assert_eq!(chart(&[], 5), "");
        assert_eq!(chart(&[Some(u64::MAX)], 1), "█", "no overflow");
    }
}
