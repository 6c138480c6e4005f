//! The warnings about the server that a worker prints when it starts.

use std::io::{self, IsTerminal as _};

use relq::{
    QueueName,
    redis::{self, ClockDifference, ServerCheck},
};

use crate::{message::say, store_url::is_on_this_machine, target::Target, values::age};

/// The difference from which on the clocks are far apart. Machines that ask a time server
/// differ by less, and a smaller difference hardly matters for times that a person types or
/// reads, which are rounded to seconds.
const FAR_APART_S: u64 = 10;

/// Prints what may surprise the operator of the queue's server. A check that fails says
/// nothing: the worker itself will say that it cannot use the server.
///
/// A worker that a person starts at a terminal, on a server of the same machine, is probably
/// a trial. Then a missing append-only file is only logged.
pub(super) async fn warn(target: &Target, queue: &QueueName) {
    let Ok(url) = target.url() else { return };
    if url.starts_with("sqlite:") {
        return;
    }
    match redis::check_server(&url, queue).await {
        Ok(check) => {
            let is_tried_out = is_on_this_machine(&url) && io::stderr().is_terminal();
            warn_of_a_crash(&check, is_tried_out);
            if let Some(warning) = warning_of_clocks(&check) {
                say(&format!("relq: {warning}"));
            }
        }
        Err(error) => tracing::debug!(%error, "the server is not checked"),
    }
}

fn warn_of_a_crash(check: &ServerCheck, is_tried_out: bool) {
    if check.has_append_only_file != Some(false) {
        return;
    }
    let fact = "the server has no append-only file, so its crash loses jobs \
                (docs/operations.md)";
    if is_tried_out {
        tracing::info!("{fact}");
    } else {
        say(&format!("relq: warning: {fact}"));
    }
}

fn warning_of_clocks(check: &ServerCheck) -> Option<String> {
    let apart =
        check.clock_difference.filter(|it| it.length().as_secs() >= FAR_APART_S)?;
    let (by, direction) = match apart {
        ClockDifference::Ahead(by) => (by, "ahead of"),
        ClockDifference::Behind(by) => (by, "behind"),
    };
    Some(format!(
        "warning: the clock of this machine is {} {direction} the server's: times given \
         by `relq push --at` are wrong by as much; leases and delays are not, because \
         the server keeps their time",
        age(by)
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn said(difference: Option<ClockDifference>) -> Option<String> {
        let mut check = ServerCheck::default();
        check.clock_difference = difference;
        warning_of_clocks(&check)
    }

    #[test]
    fn clocks_that_are_far_apart_are_warned_of() {
        let seconds = Duration::from_secs;
        assert_eq!(said(None), None);
        assert_eq!(said(Some(ClockDifference::Ahead(seconds(9)))), None);
        let ahead = said(Some(ClockDifference::Ahead(seconds(3600)))).unwrap();
        assert!(ahead.contains("is 1h ahead of the server's"), "{ahead:?}");
        let behind = said(Some(ClockDifference::Behind(seconds(11)))).unwrap();
        assert!(behind.contains("is 11s behind the server's"), "{behind:?}");
    }
}
