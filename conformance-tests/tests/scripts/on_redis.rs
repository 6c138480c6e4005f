//! Runs cases on a backend with a changed Lua script.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use relq_conformance::{
    Profile, Room, Subject, commands, judge_case_within,
    proxy::{FaultProxy, Fitted},
};
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::{change::Change, code::Judged};

type Settings = &'static [fn() -> Box<dyn Subject>];

/// Runs the case with each of the settings.
pub(crate) fn run_unchanged(settings: Settings, case: &str) -> BTreeSet<String> {
    let unchanged = |backend: fn() -> Box<dyn Subject>| Changed {
        backend: backend(),
        change: None,
        fitted: Arc::default(),
    };
    settings.iter().flat_map(|backend| commands(unchanged(*backend), case)).collect()
}

/// Runs the case with each of the settings, until it fails with one.
pub(crate) fn judge(
    settings: Settings,
    case: &str,
    change: &Change,
    limit: Duration,
) -> Judged {
    let mut judged = Judged { is_fitted: false, result: Ok(()) };
    for backend in settings {
        let fitted = Arc::default();
        let subject = Changed {
            backend: backend(),
            change: Some(change.clone()),
            fitted: Arc::clone(&fitted),
        };
        let result = judge_case_within(limit, subject, Profile::Redis, case);
        let is_fitted = fitted.lock().unwrap().as_ref().is_some_and(Fitted::get);
        if is_fitted || result.is_err() {
            judged = Judged { is_fitted, result };
        }
        if judged.is_fitted && judged.result.is_err() {
            break;
        }
    }
    judged
}

/// A backend, with one change of a script if there is one.
struct Changed {
    backend: Box<dyn Subject>,
    change: Option<Change>,
    fitted: Arc<Mutex<Option<Fitted>>>,
}

#[async_trait]
impl Subject for Changed {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        if let Some(change) = &self.change {
            let fitted = proxy.patch_scripts(&change.from, &change.to);
            *self.fitted.lock().unwrap() = Some(fitted);
        }
        self.backend.prepare(proxy).await
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        self.backend.connect(endpoint, queue, environment).await
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        self.backend.plain_push(queue, payload)
    }

    fn plain_pushes_wake(&self) -> bool {
        self.backend.plain_pushes_wake()
    }

    fn room(&self) -> Room {
        self.backend.room()
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        self.backend.owns(queue, key)
    }

    fn scripts(&self) -> Vec<String> {
        self.backend.scripts()
    }
}
