//! Guesses which known word a user meant with a mistyped word.

/// The most edits between a mistyped word and its guess.
const MOST_EDITS: usize = 3;

/// Returns the word of `known` that needs the fewest edits to become `typed`. Returns
/// `None` if no word is near.
pub(super) fn nearest(typed: &str, known: &[String]) -> Option<String> {
    let typed = typed.to_lowercase();
    let near = known.iter().map(|word| (edits(&typed, word), word));
    let near = near.filter(|(edits, word)| *edits <= MOST_EDITS.min(word.len() / 2));
    near.min_by_key(|(edits, _)| *edits).map(|(_, word)| word.clone())
}

/// Computes the Levenshtein distance of two words, one row of the table at a time.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, typed) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, wanted) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(typed != *wanted);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_guessed_and_another_word_is_not() {
        let known = ["sqlite", "zset+redis", "zset+rediss", "redis"].map(str::to_owned);
        for (typed, meant) in [
            ("sqllite", Some("sqlite")),
            ("zset+reids", Some("zset+redis")),
            ("zset+rediss", Some("zset+rediss")),
            ("SQLITE", Some("sqlite")),
            ("postgres", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, &known).as_deref(), meant, "{typed}");
        }
    }
}
