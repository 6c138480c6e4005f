//! A page that is served for a test, on a store of its own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use relq::{
    ClaimRequest, Delivery, JobId, NewJob, Queue, QueueName, ReliableQueueExt as _,
    WorkerId,
};
use relq_conformance::{
    overrides::{OverriddenQueue, Override, Right},
    server::Server,
};
use relq_core::environment::Environment;
use relq_web::{Access, FixedQueues, WebPage};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    client::{Answer, Request},
    html,
};

/// A served page of one queue, which is called `emails`.
pub(crate) struct Site {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
    pub(crate) server: Option<Server>,
}

impl Site {
    pub(crate) async fn sqlite() -> Self {
        Self::with(|page| page).await
    }

    /// A page on SQLite, with other settings.
    pub(crate) async fn with(settings: impl FnOnce(WebPage) -> WebPage) -> Self {
        Self::serve("sqlite::memory:", None, Access::checked_by_caller(), settings)
            .await
    }

    /// A page on SQLite, for visitors who sign in.
    pub(crate) async fn guarded(access: Access) -> Self {
        Self::serve("sqlite::memory:", None, access, |page| page).await
    }

    /// A page on a server of its own.
    pub(crate) async fn redis(backend: &str) -> Self {
        let server = Server::start();
        let url = format!("{backend}+{}", server.url());
        Self::serve(&url, Some(server), Access::checked_by_caller(), |page| page).await
    }

    /// A page of a queue on SQLite, some of whose calls are replaced.
    pub(crate) async fn overridden(calls: Arc<dyn Override>) -> Self {
        let queue = relq::connect("sqlite::memory:", &name()).await.unwrap();
        let right = Right { queue, environment: Environment::default() };
        let queue = Arc::new(OverriddenQueue::new(right, calls));
        Self::of(queue, None, Access::checked_by_caller(), |page| page).await
    }

    async fn serve(
        url: &str,
        server: Option<Server>,
        access: Access,
        settings: impl FnOnce(WebPage) -> WebPage,
    ) -> Self {
        let queue = relq::connect(url, &name()).await.unwrap();
        Self::of(queue, server, access, settings).await
    }

    async fn of(
        queue: Arc<dyn Queue>,
        server: Option<Server>,
        access: Access,
        settings: impl FnOnce(WebPage) -> WebPage,
    ) -> Self {
        let queues = FixedQueues::new([(name(), queue.clone())]);
        let page = WebPage::new(queues, access).sample_every(Duration::from_millis(20));
        let (address, serving) = serve(settings(page).router()).await;
        Self { queue, address, serving, server }
    }

    pub(crate) async fn send(&self, request: &Request) -> Answer {
        request.send(self.address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(&Request::get(path)).await
    }

    /// A page that must be served.
    pub(crate) async fn page(&self, path: &str) -> String {
        self.get(path).await.page()
    }

    /// Presses the button of a page, and follows a redirect. Returns the next page.
    pub(crate) async fn press(&self, page: &str, label: &str) -> String {
        let form = html::form(page, label)
            .unwrap_or_else(|| panic!("no button {label} in {page}"));
        if form.method == "get" {
            return self.page(&format!("{}?{}", form.action, form.fields)).await;
        }
        let answer = self.send(&Request::post(&*form.action, form.fields)).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        self.page(answer.header("location").unwrap()).await
    }

    /// Presses a button that asks before it acts, and says yes.
    pub(crate) async fn press_and_confirm(&self, page: &str, label: &str) -> String {
        let asked = self.press(page, label).await;
        self.press(&asked, &format!("Yes: {}", label.to_lowercase())).await
    }

    pub(crate) async fn push(&self, id: &str, job: NewJob) {
        let pushed =
            self.queue.push_one(job.id(JobId::new(id).unwrap())).await.unwrap();
        assert!(matches!(pushed, relq::outcome::Pushed::Stored(_)), "{pushed:?}");
    }

    pub(crate) async fn claim(&self) -> Delivery {
        let worker = WorkerId::new("host:7:test").unwrap();
        let ask = ClaimRequest::new(worker, Duration::from_secs(600));
        self.queue.claim_one(&ask).await.unwrap().expect("a ready job")
    }

    /// Pushes a job that dies with an error.
    pub(crate) async fn bury(&self, id: &str, error: &str) {
        self.push(id, NewJob::new("dead payload")).await;
        self.bury_next(error).await;
    }

    /// Claims the next job and buries it.
    pub(crate) async fn bury_next(&self, error: &str) {
        let held = self.claim().await;
        self.queue.bury(&held.receipt, error).await.unwrap();
    }

    /// The numbers of ready, scheduled, leased and dead jobs.
    pub(crate) async fn counts(&self) -> [u64; 4] {
        let stats = self.queue.stats().await.unwrap();
        [stats.ready, stats.scheduled, stats.leased, stats.dead]
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn name() -> QueueName {
    QueueName::new("emails").unwrap()
}

/// Serves a router on a free port of this machine.
pub(crate) async fn serve(router: axum::Router) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        axum::serve(listener, router).await.unwrap();
    });
    (address, serving)
}
