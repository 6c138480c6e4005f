//! The state that both directions of a connection share: the replies that are still to
//! come, and what to do with each of them.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use super::traffic::Traffic;

/// How the proxy treats one reply that is still to come.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The client gets the reply unchanged.
    Pass,
    /// The client gets this in place of the reply, unless the reply is an error.
    Replace(Bytes),
    /// The proxy keeps the reply, and the client does not get it.
    Keep(oneshot::Sender<Bytes>),
    /// The reply to `HELLO`. Unless it is an error, later replies use that protocol
    /// version.
    Hello(u8),
    /// The client gets the reply unchanged. The reply has numbers and times of the
    /// server itself, so it does not count when the states of two runs are compared.
    Unlisted,
    /// The next replies are this many confirmations of subscriptions.
    Confirmations(usize),
    /// The proxy made this reply itself, and the server sends none.
    Made(Bytes),
    /// Not a reply. The receiver is notified when all earlier replies were passed on.
    Mark(oneshot::Sender<()>),
}

/// The state that both directions of a connection share.
#[derive(Debug)]
pub(crate) struct Wire {
    replies: Mutex<VecDeque<Reply>>,
    protocol: AtomicU8,
    is_muted: AtomicBool,
    /// Notified when the proxy adds a reply of its own, which may be the next to send.
    changed: Notify,
    traffic: Arc<Traffic>,
}

impl Wire {
    pub(crate) fn new(traffic: &Arc<Traffic>) -> Self {
        Self {
            replies: Mutex::default(),
            protocol: AtomicU8::new(2),
            is_muted: AtomicBool::new(false),
            changed: Notify::new(),
            traffic: Arc::clone(traffic),
        }
    }

    pub(crate) fn expect(&self, reply: Reply) {
        let is_made_here = is_made_here(&reply);
        self.replies().push_back(reply);
        self.traffic.adds(1);
        if is_made_here {
            self.changed.notify_one();
        }
    }

    /// Removes and returns what to do with the next reply that the server sends.
    pub(crate) fn next(&self) -> Option<Reply> {
        let next = self.replies().pop_front();
        self.traffic.ends(isize::from(next.is_some()));
        next
    }

    /// Removes and returns the next reply if the proxy made it or marked its place.
    /// `None` if the next reply comes from the server.
    pub(crate) fn next_made_here(&self) -> Option<Reply> {
        let mut replies = self.replies();
        if replies.front().is_some_and(is_made_here) {
            self.traffic.ends(1);
            replies.pop_front()
        } else {
            None
        }
    }

    /// Counts one confirmation of a subscription, if the next expected reply is one.
    pub(crate) fn confirm(&self) {
        let mut replies = self.replies();
        match replies.front_mut() {
            Some(Reply::Confirmations(left)) if *left > 1 => *left -= 1,
            Some(Reply::Confirmations(_)) => {
                drop(replies.pop_front());
                self.traffic.ends(1);
            }
            _ => {}
        }
    }

    pub(crate) fn expects_confirmation(&self) -> bool {
        matches!(self.replies().front(), Some(Reply::Confirmations(_)))
    }

    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// From now on the client gets no more replies.
    pub(crate) fn mute(&self) {
        self.is_muted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_muted(&self) -> bool {
        self.is_muted.load(Ordering::Relaxed)
    }

    /// The version of the Redis protocol that replies use: 2 or 3.
    pub(crate) fn protocol(&self) -> u8 {
        self.protocol.load(Ordering::Relaxed)
    }

    pub(crate) fn set_protocol(&self, version: u8) {
        self.protocol.store(version, Ordering::Relaxed);
    }

    fn replies(&self) -> MutexGuard<'_, VecDeque<Reply>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let left = self.replies().len();
        self.traffic.ends(isize::try_from(left).unwrap_or(isize::MAX));
    }
}

fn is_made_here(reply: &Reply) -> bool {
    matches!(reply, Reply::Made(_) | Reply::Mark(_))
}
