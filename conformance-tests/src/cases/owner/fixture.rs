//! The marker of the case's queue, and calls on a queue that has no marker.

use std::num::NonZeroU32;

use relq_core::Error;

use crate::harness::{
    actor::Actor,
    calls::{Known, reads},
    checks::eventually,
    room::SUITES_SCRIPT,
    store::Store,
};

/// The value of a marker that names a backend which does not exist.
pub(super) const ANOTHERS: &[u8] = b"relq 4 another mode=odd";

impl Store {
    /// Returns the marker of the case's queue, or an empty string if there is none.
    pub(super) async fn marker(&self) -> String {
        let answer = self.tell(&[b"GET", b"{jobs}:marker"]).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        answer.split("\r\n").nth(1).unwrap_or_default().to_owned()
    }

    pub(super) async fn mark(&self, marker: &[u8]) {
        self.tell(&[b"SET", b"{jobs}:marker", marker]).await;
    }

    /// Returns the whole content of the database, byte for byte.
    pub(super) async fn contents(&self) -> String {
        let script = "local keys, all = redis.call('KEYS', '*'), {} \
            table.sort(keys) for _, key in ipairs(keys) do \
            all[#all + 1] = key .. ' ' .. redis.call('DUMP', key) end \
            return table.concat(all, '\\n')";
        let script = format!("{SUITES_SCRIPT}{script}");
        let answer = self.tell(&[b"EVAL", script.as_bytes(), b"0"]).await;
        let text = answer.escape_ascii().to_string();
        text.strip_prefix("$0").map_or(text.clone(), |_| String::new())
    }

    /// Returns the error that a new actor gets when it opens the queue.
    pub(super) async fn refusal(&self, name: &str) -> String {
        let refused = self.try_actor(name).await.err();
        let refused = refused.expect("opening the queue must fail");
        assert!(
            matches!(refused, Error::Unusable { .. }),
            "{}",
            refused.full_message()
        );
        refused.full_message()
    }
}

pub(super) fn assert_unusable(error: &Error, words: &str) {
    let message = error.full_message();
    assert!(matches!(error, Error::Unusable { .. }), "{message}");
    assert!(message.contains(words), "{message}");
}

pub(super) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("not zero")
}

/// The names of jobs, of a batch and of a schedule for calls on a queue that does not
/// have them: they are stored, and then the whole store is emptied.
pub(super) async fn unknown_names(store: &Store) -> Known {
    let known = Known::prepare(&store.actor("earlier").await).await;
    store.tell(&[b"FLUSHALL"]).await;
    known
}

/// Makes each call that only reads the queue.
pub(super) async fn look(actor: &Actor, known: &Known) {
    for (name, call) in reads(actor, known) {
        let answer = call.await;
        answer.unwrap_or_else(|error| panic!("{name}: {}", error.full_message()));
    }
}

/// Closes every client's connection to the server.
pub(super) async fn cut_connections(store: &Store) {
    store.tell(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]).await;
}

/// Waits until the actor, whose connection was closed, has a new one. Returns the
/// result of its first call on the new connection.
pub(super) async fn after_the_cut(actor: &Actor) -> Result<(), Error> {
    eventually("an answer on a new connection", || async {
        match actor.stats().await {
            Err(Error::Interrupted { .. } | Error::Unavailable { .. }) => None,
            answer => Some(answer.map(drop)),
        }
    })
    .await
}
