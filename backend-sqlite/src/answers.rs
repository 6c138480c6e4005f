//! The results of a push call as text, returned again if the call is repeated (R4).
//!
//! The usual result is that a job was stored under the id derived from the token. Each
//! job with another result has a line. Ids hold no control characters, so a line ends
//! at a newline: `7 stored ID`, `7 same-id ID`, `7 same-key ID`.

use std::fmt::Write as _;

use relq_core::{
    JobId, PushToken,
    outcome::{DuplicateOf, Pushed},
};

/// Encodes the results of a push call for the column `answers` of its stored row.
pub(crate) fn encode(token: &PushToken, answers: &[Pushed]) -> String {
    let mut text = String::new();
    for (index, answer) in answers.iter().enumerate() {
        let word = match answer {
            Pushed::Stored(id) if *id == token.job_id(index) => continue,
            Pushed::Stored(_) => "stored",
            Pushed::Duplicate { by: DuplicateOf::Id, .. } => "same-id",
            Pushed::Duplicate { by: DuplicateOf::UniqueKey, .. } => "same-key",
        };
        writeln!(text, "{index} {word} {}", answer.job())
            .expect("writing to a string cannot fail");
    }
    text
}

/// Decodes text that [`encode`] wrote for `jobs` jobs. Returns `None` for any other
/// text.
pub(crate) fn decode(
    token: &PushToken,
    jobs: usize,
    text: &str,
) -> Option<Vec<Pushed>> {
    let mut answers: Vec<Pushed> =
        (0..jobs).map(|index| Pushed::Stored(token.job_id(index))).collect();
    for line in text.lines() {
        let (index, rest) = line.split_once(' ')?;
        let (word, id) = rest.split_once(' ')?;
        let id = JobId::new(id).ok()?;
        *answers.get_mut(index.parse::<usize>().ok()?)? = match word {
            "stored" => Pushed::Stored(id),
            "same-id" => Pushed::Duplicate { existing: id, by: DuplicateOf::Id },
            "same-key" => {
                Pushed::Duplicate { existing: id, by: DuplicateOf::UniqueKey }
            }
            _ => return None,
        };
    }
    Some(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> JobId {
        JobId::new(text).unwrap()
    }

    /// R4: a repeated call gets the results of the first one.
    #[test]
    fn answers_come_back_as_they_were_given() {
        let token = PushToken::new("call").unwrap();
        let answers = vec![
            Pushed::Stored(token.job_id(0)),
            Pushed::Stored(id("with space 7")),
            Pushed::Duplicate { existing: id("a"), by: DuplicateOf::Id },
            Pushed::Duplicate { existing: id("b"), by: DuplicateOf::UniqueKey },
        ];

        let text = encode(&token, &answers);

        assert_eq!(decode(&token, 4, &text), Some(answers));
    }

    /// R4: if all of a thousand jobs were stored as usual, their encoded results take
    /// zero bytes.
    #[test]
    fn usual_answers_take_no_room() {
        let token = PushToken::new("call").unwrap();
        let answers: Vec<_> =
            (0..1000).map(|index| Pushed::Stored(token.job_id(index))).collect();

        assert_eq!(encode(&token, &answers), "");
        assert_eq!(decode(&token, 1000, ""), Some(answers));
    }

    /// R3: text that `encode` did not write is refused.
    #[test]
    fn damaged_answers_are_seen() {
        let token = PushToken::new("call").unwrap();

        for text in ["x", "0 stored", "9 stored a", "0 lost a", "zero stored a"] {
            assert_eq!(decode(&token, 1, text), None, "{text}");
        }
    }
}
