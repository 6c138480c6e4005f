//! A server that loses its script cache.

use relq_core::{Disposition, Settlement, outcome::Settled};

use super::fixture::{FaultFixture, ask, is_sound, push_plain, take};
use crate::server::Server;

/// R21: a client sends its scripts again when the server has lost them, also in
/// `settle_and_claim`.
pub(super) async fn flushed_scripts_are_sent_again(fixture: &FaultFixture) {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    push_plain(&*queue, &["a", "b", "c"]).await;
    let first = take(&*queue, 1).await.remove(0);
    server.command(&[b"SCRIPT", b"FLUSH"]);

    let done = [Settlement::new(first.receipt, Disposition::Done)];
    let both = queue.settle_and_claim(&done, &ask(1)).await;

    assert_eq!(both.settled.expect("settled"), [Settled::Applied]);
    assert_eq!(both.claimed.expect("claimed").len(), 1);
    is_sound(&*queue).await;
}
