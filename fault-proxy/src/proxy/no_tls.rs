//! Replaces `tls.rs` when the feature `tls` is off.

use std::{io, path::Path};

use super::stream::Stream;

/// An empty type: without the feature there is no TLS connection.
#[derive(Clone)]
pub(crate) enum Tls {}

impl Tls {
    pub(crate) fn new(_: &str, _: Option<&Path>) -> io::Result<Self> {
        Err(io::Error::other("TLS needs --features relq-conformance/tls"))
    }

    #[expect(clippy::unused_async, reason = "as where the feature is on")]
    pub(crate) async fn over(&self, _: Stream) -> io::Result<Stream> {
        match *self {}
    }
}
