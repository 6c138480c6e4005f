//! The store of a soak.

use std::path::Path;

use relq_conformance::server::Server;

use crate::{SuiteResult, backend::Backend};

/// A store that only the soak uses; it is removed when this is dropped.
pub(super) struct Site {
    url: String,
    server: Option<Server>,
}

impl Site {
    /// Opens a server that syncs every write, or a file in `folder`.
    pub(super) fn open(backend: Backend, folder: &Path) -> SuiteResult<Self> {
        match backend {
            Backend::Sqlite => {
                let file = folder.join("soak.db");
                let file = file.to_str().ok_or("the temporary folder is not UTF-8")?;
                Ok(Self { url: format!("sqlite:{file}"), server: None })
            }
            Backend::Zset
            | Backend::Circular
            | Backend::ProcessingList
            | Backend::ProcessingListShared
            | Backend::Keyspace
            | Backend::Stream => {
                let options = ["--appendonly", "yes", "--appendfsync", "always"];
                let server = Server::start_with(&options);
                let url = backend.on(&server.url());
                Ok(Self { url, server: Some(server) })
            }
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    /// The server, if there is one. It can be killed and restarted.
    pub(super) fn server(&mut self) -> Option<&mut Server> {
        self.server.as_mut()
    }
}
