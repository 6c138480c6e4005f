//! The warnings about the server that a worker prints when it starts.

use relq::{
    QueueName,
    redis::{self, ClockDifference, ServerCheck},
};

use crate::{message::say, target::Target, values::age};

/// From which difference on the clocks are far apart. What a person types and reads is
/// rounded to seconds, and a machine that asks a time server differs by less.
const FAR_APART_S: u64 = 10;

/// Prints what may surprise the operator of the queue's server. A check that fails says
/// nothing: the worker itself will say that it cannot use the server.
pub(super) async fn warn(target: &Target, queue: &QueueName) {
    let Ok(url) = target.url() else { return };
    if url.starts_with("sqlite:") {
        return;
    }
    match redis::check_server(&url, queue).await {
        Ok(check) => warnings(&check).iter().for_each(|warning| {
            say(&format!("relq: {warning}"));
        }),
        Err(error) => tracing::debug!(%error, "the server is not checked"),
    }
}

fn warnings(check: &ServerCheck) -> Vec<String> {
    let mut warnings = Vec::new();
    if check.has_append_only_file == Some(false) {
        warnings.push(
            "warning: the server has no append-only file: if it crashes, the jobs since its \
             last snapshot are lost; set `appendonly yes`"
                .to_owned(),
        );
    }
    let apart =
        check.clock_difference.filter(|it| it.length().as_secs() >= FAR_APART_S);
    if let Some(apart) = apart {
        let (by, direction) = match apart {
            ClockDifference::Ahead(by) => (by, "ahead of"),
            ClockDifference::Behind(by) => (by, "behind"),
        };
        warnings.push(format!(
            "warning: the clock of this machine is {} {direction} the server's: times given \
             by `relq push --at` are wrong by as much; leases and delays are not, because \
             the server keeps their time",
            age(by)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn said(difference: Option<ClockDifference>) -> Vec<String> {
        let mut check = ServerCheck::default();
        check.has_append_only_file = Some(true);
        check.clock_difference = difference;
        warnings(&check)
    }

    #[test]
    fn clocks_that_are_far_apart_are_warned_of() {
        let seconds = Duration::from_secs;
        assert!(said(None).is_empty());
        assert!(said(Some(ClockDifference::Ahead(seconds(9)))).is_empty());
        let ahead = said(Some(ClockDifference::Ahead(seconds(3600))));
        assert!(ahead[0].contains("is 1h ahead of the server's"), "{ahead:?}");
        let behind = said(Some(ClockDifference::Behind(seconds(11))));
        assert!(behind[0].contains("is 11s behind the server's"), "{behind:?}");
    }

    #[test]
    fn a_server_without_an_append_only_file_is_warned_of() {
        let mut check = ServerCheck::default();
        assert!(warnings(&check).is_empty(), "the server does not say");
        check.has_append_only_file = Some(false);
        assert!(warnings(&check)[0].contains("appendonly yes"));
    }
}
