//! The line at the end of a worker.

use relq::worker::Summary;

use crate::message::say;

/// Prints, when the worker ends, how many jobs were done, retried, buried and so on.
pub(super) fn say_summary(summary: &Summary) {
    say(&format!("relq: {}", words(summary)));
}

fn words(summary: &Summary) -> String {
    let Summary {
        done,
        retried,
        dead,
        postponed,
        cancelled,
        lost,
        uncertain,
        given_back,
        ..
    } = summary;
    let counts = [
        (*retried, "to be tried again"),
        (*dead, "dead"),
        (*postponed, "postponed"),
        (*cancelled, "cancelled"),
        (*lost, "with their lease lost"),
        (*uncertain, "perhaps settled (not confirmed by the store)"),
        (*given_back, "given back"),
    ];
    let mut said = format!("{done} done");
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        said.push_str(&format!(", {count} {words}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_a_job_has_its_words_in_the_summary() {
        let mut summary = Summary::default();
        assert_eq!(words(&summary), "0 done");
        (summary.done, summary.retried, summary.dead) = (1, 2, 3);
        (summary.postponed, summary.cancelled, summary.lost) = (4, 5, 6);
        (summary.uncertain, summary.given_back) = (7, 8);

        let expected = "1 done, 2 to be tried again, 3 dead, 4 postponed, 5 cancelled, \
                        6 with their lease lost, 7 perhaps settled (not confirmed by \
                        the store), 8 given back";
        assert_eq!(words(&summary), expected);
    }
}
