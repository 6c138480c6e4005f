//! A backend that connects to Redis as a user with only the rights of its README.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use relq_core::{
    Error, Queue, QueueName,
    environment::Environment,
    error::{ErrorContext, Operation},
};

use super::{
    user::User,
    watch::{Monitor, Seen, watch},
};
use crate::{
    Room, Subject,
    proxy::{Address, FaultProxy, Upstream, is_error},
};

/// A backend that connects with the rights of `user`. It creates one such user on the
/// server for each queue, and the user of one queue has no rights to other queues.
pub struct Restricted<S> {
    subject: S,
    user: User,
    queues: Mutex<Vec<QueueName>>,
    /// The commands that the server has run for the backend, if the backend is behind a
    /// proxy. `None` if the commands are not recorded.
    seen: Option<Seen>,
    watched: Mutex<Option<Watched>>,
}

/// A server behind a proxy, and the recorder of the commands that scripts call on it.
struct Watched {
    server: Address,
    _monitor: Monitor,
}

impl<S> fmt::Debug for Restricted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Restricted({:?})", self.user)
    }
}

impl<S: Subject> Restricted<S> {
    /// Wraps the backend `subject`, so that it connects with the rights of `user`.
    pub fn new(subject: S, user: User) -> Self {
        Self {
            subject,
            user,
            queues: Mutex::default(),
            seen: None,
            watched: Mutex::default(),
        }
    }

    /// Returns the same backend, which from now on adds to `seen` each command that the
    /// server runs for it behind a proxy. The set is complete once the subject is
    /// dropped.
    pub(super) fn watched(self, seen: Seen) -> Self {
        Self { seen: Some(seen), ..self }
    }

    /// Opens `queue` as the user of that queue.
    pub(super) async fn open(
        &self,
        endpoint: &str,
        queue: &QueueName,
    ) -> Result<Arc<dyn Queue>, Error> {
        self.subject.connect(endpoint, queue, &Environment::default()).await
    }

    /// Returns the name that the user of that queue has on the server.
    fn name_for(&self, queue: &QueueName) -> String {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let number = queues.iter().position(|known| known == queue);
        let number = number.unwrap_or_else(|| {
            queues.push(queue.clone());
            queues.len() - 1
        });
        format!("restricted-{number}")
    }

    /// Creates the user of that queue on the server. Returns the endpoint to connect to
    /// as that user.
    pub(super) async fn introduce(
        &self,
        endpoint: &str,
        queue: &QueueName,
    ) -> io::Result<String> {
        let name = self.name_for(queue);
        // A connection to the actor's endpoint would count as one of the actor's, so
        // the user is created on a connection to the server itself.
        let server = self.server().map_or_else(|| address(endpoint), Ok)?;
        let mut server = Upstream::open(&server).await?;
        let answer = server.ask(&self.user.command(&name, queue)).await?;
        if is_error(&answer) {
            return Err(io::Error::other(
                String::from_utf8_lossy(&answer).into_owned(),
            ));
        }
        Ok(as_user(endpoint, &name, self.user.password()))
    }

    /// Returns the address of the server whose commands are recorded, or `None` if none
    /// are recorded.
    fn server(&self) -> Option<Address> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.as_ref().map(|watched| watched.server.clone())
    }
}

#[async_trait]
impl<S: Subject> Subject for Restricted<S> {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let introduced = self.introduce(endpoint, queue).await;
        let endpoint = introduced.map_err(|error| Error::Invalid {
            at: ErrorContext { backend: "restricted", operation: Operation::Connect },
            reason: format!("the user cannot be made: {error}"),
        })?;
        self.subject.connect(&endpoint, queue, environment).await
    }

    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        self.subject.prepare(proxy).await?;
        let Some(seen) = &self.seen else { return Ok(()) };
        let (server, monitor) = (proxy.server().clone(), watch(proxy, seen).await?);
        let watched = Watched { server, _monitor: monitor };
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
        Ok(())
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        self.subject.plain_push(queue, payload)
    }

    fn plain_pushes_wake(&self) -> bool {
        self.subject.plain_pushes_wake()
    }

    fn room(&self) -> Room {
        self.subject.room()
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        self.subject.owns(queue, key)
    }

    fn scripts(&self) -> Vec<String> {
        self.subject.scripts()
    }
}

fn address(endpoint: &str) -> io::Result<Address> {
    if let Some(path) = endpoint.strip_prefix("unix://") {
        let path = path.split('?').next().unwrap_or(path);
        return Ok(Address::Unix(PathBuf::from(path)));
    }
    let address = endpoint.trim_start_matches("redis://").split('/').next();
    let address = address.unwrap_or_default().parse();
    Ok(Address::Tcp(address.map_err(io::Error::other)?))
}

fn as_user(endpoint: &str, name: &str, password: &str) -> String {
    if let Some(address) = endpoint.strip_prefix("redis://") {
        return format!("redis://{name}:{password}@{address}");
    }
    let sign = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{sign}user={name}&pass={password}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_named_in_the_endpoint() {
        assert_eq!(as_user("unix:///x", "a", "b"), "unix:///x?user=a&pass=b");
        assert_eq!(as_user("unix:///x?db=3", "a", "b"), "unix:///x?db=3&user=a&pass=b");
        assert_eq!(as_user("redis://h:1/3", "a", "b"), "redis://a:b@h:1/3");
    }
}
