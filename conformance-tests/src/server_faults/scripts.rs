//! A server that forgets its scripts.

use queue_core::{Settled, Settlement, Verdict};

use super::stage::{Stage, ask, is_sound, push_plain, take};
use crate::server::Server;

/// R21: a server that lost its script cache gets the scripts again, also in a turn.
pub(super) async fn flushed_scripts_are_sent_again(stage: &Stage) {
    let server = Server::start();
    let queue = stage.connect(&server).await;
    push_plain(&*queue, &["a", "b", "c"]).await;
    let first = take(&*queue, 1).await.remove(0);
    server.command(&[b"SCRIPT", b"FLUSH"]);

    let done = [Settlement::new(first.receipt, Verdict::Done)];
    let turn = queue.turn(&done, &ask(1)).await;

    assert_eq!(turn.settled.expect("settled"), [Settled::Applied]);
    assert_eq!(turn.claimed.expect("claimed").len(), 1);
    is_sound(&*queue).await;
}
