//! The store on which a soak runs: a SQLite file, a Redis server, or several servers.

use std::path::Path;

use relq_conformance::server::Server;

use super::deployment::{Deployment, Kind};
use crate::{SuiteResult, backend::Backend};

/// A store that only the soak uses; it is removed when this is dropped.
pub(super) struct Site {
    url: String,
    server: Option<Server>,
    deployment: Option<Box<dyn Deployment>>,
}

impl Site {
    /// Starts a Redis server that syncs every write, or chooses a SQLite file in
    /// `folder`. `options` are those of the queue's URL.
    pub(super) fn open(
        backend: Backend,
        options: &[String],
        folder: &Path,
    ) -> SuiteResult<Self> {
        if backend == Backend::Sqlite {
            if let Some(option) = options.first() {
                return Err(format!("a SQLite file takes no {option}").into());
            }
            let file = folder.join("soak.db");
            let file = file.to_str().ok_or("the temporary folder is not UTF-8")?;
            let url = format!("sqlite:{file}");
            return Ok(Self { url, server: None, deployment: None });
        }
        let options_of_server = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = Server::start_with(&options_of_server);
        let url = backend.on(&server.url(), options);
        Ok(Self { url, server: Some(server), deployment: None })
    }

    /// Starts several servers for a queue whose parts have these names.
    pub(super) fn open_several(
        kind: Kind,
        backend: Backend,
        options: &[String],
        parts: &[String],
    ) -> SuiteResult<Self> {
        refuse_alone(backend, kind)?;
        let deployment = kind.start(parts)?;
        let url = backend.on(&deployment.url(), options);
        Ok(Self { url, server: None, deployment: Some(deployment) })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    /// The Redis server, which the soak kills and restarts. `None` for a SQLite file
    /// and for several servers, which have faults of their own.
    pub(super) fn server(&mut self) -> Option<&mut Server> {
        self.server.as_mut()
    }

    /// The several servers, if the soak runs on such.
    pub(super) fn take_deployment(&mut self) -> Option<Box<dyn Deployment>> {
        self.deployment.take()
    }
}

/// Fails if a queue of the backend cannot be on several servers.
fn refuse_alone(backend: Backend, kind: Kind) -> SuiteResult<()> {
    match (backend, kind) {
        (Backend::Sqlite, _) => Err("a SQLite file has no servers".into()),
        (Backend::Keyspace, Kind::Cluster) => {
            Err("keyspace needs a database of its own and refuses a cluster".into())
        }
        _ => Ok(()),
    }
}
