//! Says which field of a cron expression cannot be read.

use croner::{errors::CronError, parser::CronParser};

/// The fields of an expression of six, each with what it may hold. One of five has no
/// second.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, or L for the last one"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of the week", "0 to 7, or SUN to SAT"),
];

/// Why the parser refuses an expression, whose fields are separated by single spaces.
pub(crate) fn reason(
    parser: &CronParser,
    expression: &str,
    error: &CronError,
) -> String {
    if expression.starts_with('@') {
        return "the names are @hourly, @daily, @weekly, @monthly and @yearly"
            .to_owned();
    }
    let fields: Vec<_> = expression.split_terminator(' ').collect();
    let known = match fields.len() {
        5 => &FIELDS[1..],
        6 => &FIELDS[..],
        count => {
            return format!(
                "it needs five fields (minute, hour, day of the month, month, day of the \
                 week) or six with the second first, and has {count}"
            );
        }
    };
    for (at, (name, values)) in known.iter().enumerate() {
        let mut alone = vec!["*"; fields.len()];
        alone[at] = fields[at];
        if parser.parse(&alone.join(" ")).is_err() {
            return format!(
                "the {name} is {:?}, and must be {values}; *, a list such as 1,5, a range \
                 such as 1-5, or steps such as */5",
                fields[at]
            );
        }
    }
    error.to_string().trim_end_matches('.').to_owned()
}
