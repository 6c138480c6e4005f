//! The queues of the store, listed from time to time and opened once each.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    ConnectError, Queue, QueueName,
    store::{self, StoreQueue},
};
use tokio::sync::Mutex;

/// How long a list of the queues is used.
const LISTED_FOR: Duration = Duration::from_secs(30);

/// The queues of a store.
#[derive(Debug)]
pub(crate) struct StoreSource {
    url: Url,
    /// The queues to show; empty for all.
    only: Vec<QueueName>,
    known: Mutex<Known>,
}

/// The URL of the store, which may have a password.
struct Url(String);

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Url(***)")
    }
}

#[derive(Debug, Default)]
struct Known {
    listed_at: Option<Instant>,
    listed: BTreeMap<QueueName, StoreQueue>,
    opened: BTreeMap<QueueName, Arc<dyn Queue>>,
}

impl StoreSource {
    /// Lists the queues once, so that a wrong URL is noticed before anything is shown.
    pub(crate) async fn open(
        url: String,
        only: Vec<QueueName>,
    ) -> Result<Self, ConnectError> {
        let known = Mutex::default();
        let source = Self { url: Url(url), only, known };
        match source.only.first() {
            Some(first) => drop(relq::connect_existing(&source.url.0, first).await?),
            None => source.list(&mut *source.known.lock().await).await?,
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
        let mut known = self.known.lock().await;
        self.list(&mut known).await?;
        Ok(known.listed.keys().cloned().collect())
    }

    /// Lists the queues again when they are next asked for.
    #[cfg(feature = "top")]
    pub(crate) async fn forget_list(&self) {
        self.known.lock().await.listed_at = None;
    }

    /// The queue of this name; `None` if there is none.
    pub(crate) async fn open_queue(
        &self,
        name: &QueueName,
    ) -> Result<Option<Arc<dyn Queue>>, ConnectError> {
        let mut known = self.known.lock().await;
        self.open_known(&mut known, name).await
    }

    /// Lists the queues if the last list is too old.
    async fn list(&self, known: &mut Known) -> Result<(), ConnectError> {
        if known.listed_at.is_some_and(|at| at.elapsed() < LISTED_FOR) {
            return Ok(());
        }
        let (mut listed, mut after) = (BTreeMap::new(), None);
        loop {
            let page = store::queues(&self.url.0, after.as_ref()).await?;
            listed.extend(page.queues.into_iter().map(|it| (it.name.clone(), it)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        known.opened.retain(|name, _| listed.contains_key(name));
        (known.listed, known.listed_at) = (listed, Some(Instant::now()));
        Ok(())
    }

    async fn open_known(
        &self,
        known: &mut Known,
        name: &QueueName,
    ) -> Result<Option<Arc<dyn Queue>>, ConnectError> {
        if let Some(opened) = known.opened.get(name) {
            return Ok(Some(opened.clone()));
        }
        let opened = if self.only.contains(name) {
            relq::connect_existing(&self.url.0, name).await?
        } else if self.only.is_empty() {
            self.list(known).await?;
            let Some(listed) = known.listed.get(name) else { return Ok(None) };
            store::open(&self.url.0, listed).await?
        } else {
            return Ok(None);
        };
        known.opened.insert(name.clone(), opened.clone());
        Ok(Some(opened))
    }
}
