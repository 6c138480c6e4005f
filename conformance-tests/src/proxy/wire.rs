//! The state shared by the two directions of a connection: the replies still to come,
//! and what to do with each.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

/// One reply to come.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The client gets the reply unchanged.
    Pass,
    /// The client gets this in place of the reply, unless the reply is an error.
    Replace(Bytes),
    /// The client does not get the reply.
    Keep(oneshot::Sender<Bytes>),
    /// The reply decides whether later replies use that protocol version.
    Hello(u8),
    /// The next replies are this many confirmations of subscriptions.
    Confirmations(usize),
    /// The proxy made this reply without the server.
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
    /// Notified when the proxy makes a reply that may be the next one.
    stirred: Notify,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            replies: Mutex::default(),
            protocol: AtomicU8::new(2),
            is_muted: AtomicBool::new(false),
            stirred: Notify::new(),
        }
    }

    pub(crate) fn expect(&self, reply: Reply) {
        let is_made_here = is_made_here(&reply);
        self.replies().push_back(reply);
        if is_made_here {
            self.stirred.notify_one();
        }
    }

    /// The next reply that comes from the server.
    pub(crate) fn next(&self) -> Option<Reply> {
        self.replies().pop_front()
    }

    /// The next reply, if the proxy made it.
    pub(crate) fn next_made_here(&self) -> Option<Reply> {
        let mut replies = self.replies();
        if replies.front().is_some_and(is_made_here) {
            replies.pop_front()
        } else {
            None
        }
    }

    /// Counts one confirmation, if the next expected reply is one.
    pub(crate) fn confirm(&self) {
        let mut replies = self.replies();
        match replies.front_mut() {
            Some(Reply::Confirmations(left)) if *left > 1 => *left -= 1,
            Some(Reply::Confirmations(_)) => drop(replies.pop_front()),
            _ => {}
        }
    }

    pub(crate) fn expects_confirmation(&self) -> bool {
        matches!(self.replies().front(), Some(Reply::Confirmations(_)))
    }

    pub(crate) async fn stirred(&self) {
        self.stirred.notified().await;
    }

    /// From now on the client gets no replies.
    pub(crate) fn mute(&self) {
        self.is_muted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_muted(&self) -> bool {
        self.is_muted.load(Ordering::Relaxed)
    }

    /// The protocol version of replies, 2 or 3.
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

fn is_made_here(reply: &Reply) -> bool {
    matches!(reply, Reply::Made(_) | Reply::Mark(_))
}
