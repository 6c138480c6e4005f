//! The queues of the store, listed from time to time and opened once each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use relq::{
    ConnectError, Queue, QueueName,
    store::{self, StoreQueue},
};
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

/// How long a list of the queues is used.
const LISTED_FOR: Duration = Duration::from_secs(30);

/// The queues of a store.
#[derive(Debug)]
pub(crate) struct StoreSource {
    url: Url,
    /// The queues to show; empty for all.
    only: Vec<QueueName>,
    listed: AsyncMutex<Listed>,
    /// Each queue is opened on its own, so that none waits for the server of another.
    opened: Mutex<BTreeMap<QueueName, Handle>>,
}

/// A queue that a page has asked for, once it is open.
type Handle = Arc<OnceCell<Arc<dyn Queue>>>;

/// The URL of the store, which may have a password.
struct Url(String);

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Url(***)")
    }
}

#[derive(Debug, Default)]
struct Listed {
    at: Option<Instant>,
    queues: BTreeMap<QueueName, StoreQueue>,
}

impl StoreSource {
    /// Lists the queues once, so that a wrong URL is noticed before anything is shown.
    pub(crate) async fn open(
        url: String,
        only: Vec<QueueName>,
    ) -> Result<Self, ConnectError> {
        let (listed, opened) = (AsyncMutex::default(), Mutex::default());
        let source = Self { url: Url(url), only, listed, opened };
        match source.only.first() {
            Some(first) => drop(relq::connect_existing(&source.url.0, first).await?),
            None => source.list(&mut *source.listed.lock().await).await?,
        }
        Ok(source)
    }

    /// The names of the queues, in order. The list may be some seconds old.
    pub(crate) async fn names(&self) -> Result<Vec<QueueName>, ConnectError> {
        if !self.only.is_empty() {
            let mut names = self.only.clone();
            names.sort();
            return Ok(names);
        }
        let mut listed = self.listed.lock().await;
        self.list(&mut listed).await?;
        Ok(listed.queues.keys().cloned().collect())
    }

    /// Lists the queues again when they are next asked for.
    #[cfg(feature = "top")]
    pub(crate) async fn forget_list(&self) {
        self.listed.lock().await.at = None;
    }

    /// Lists the queues if the last list is too old.
    async fn list(&self, listed: &mut Listed) -> Result<(), ConnectError> {
        if listed.at.is_some_and(|at| at.elapsed() < LISTED_FOR) {
            return Ok(());
        }
        let (mut queues, mut after) = (BTreeMap::new(), None);
        loop {
            let page = store::queues(&self.url.0, after.as_ref()).await?;
            queues.extend(page.queues.into_iter().map(|it| (it.name.clone(), it)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.handles(|opened| opened.retain(|name, _| queues.contains_key(name)));
        *listed = Listed { at: Some(Instant::now()), queues };
        Ok(())
    }

    /// The queue of this name as the list has it.
    async fn find(&self, name: &QueueName) -> Result<Option<StoreQueue>, ConnectError> {
        let mut listed = self.listed.lock().await;
        self.list(&mut listed).await?;
        Ok(listed.queues.get(name).cloned())
    }

    fn handles<T>(
        &self,
        read: impl FnOnce(&mut BTreeMap<QueueName, Handle>) -> T,
    ) -> T {
        read(&mut self.opened.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The queue of this name; `None` if there is none.
    pub(crate) async fn open_queue(
        &self,
        name: &QueueName,
    ) -> Result<Option<Arc<dyn Queue>>, ConnectError> {
        if let Some(opened) = self.handles(|all| all.get(name)?.get().cloned()) {
            return Ok(Some(opened));
        }
        let listed = if self.only.is_empty() { self.find(name).await? } else { None };
        if listed.is_none() && !self.only.contains(name) {
            return Ok(None);
        }
        let handle = self.handles(|all| all.entry(name.clone()).or_default().clone());
        let opened = handle.get_or_try_init(|| async {
            match &listed {
                Some(listed) => store::open(&self.url.0, listed).await,
                None => relq::connect_existing(&self.url.0, name).await,
            }
        });
        Ok(Some(opened.await?.clone()))
    }
}
