//! SIGINT and SIGTERM, counted: the first asks, the second insists.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::failure::{Failure, Outcome};

/// How often the program was told to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts(watch::Receiver<u32>);

impl Interrupts {
    /// Counts from now on, in place of being ended by the signal.
    pub(crate) fn listen() -> Outcome<Self> {
        let cannot = |error| Failure::Failed(format!("cannot handle signals: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let (count, told) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    () = count.closed() => return,
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(told))
    }

    /// Completes once the program was told to stop.
    pub(crate) async fn first(&self) {
        self.reached(1).await;
    }

    /// Completes once it was told to stop a second time.
    pub(crate) async fn second(&self) {
        self.reached(2).await;
    }

    /// Whether the program was told to stop.
    pub(crate) fn any(&self) -> bool {
        *self.0.borrow() > 0
    }

    async fn reached(&self, times: u32) {
        let mut told = self.0.clone();
        if told.wait_for(|count| *count >= times).await.is_err() {
            // The counting task ended with the runtime: no signal will come.
            std::future::pending::<()>().await;
        }
    }
}
