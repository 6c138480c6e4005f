//! Live counts, as server-sent events.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    time::{Duration, Instant},
};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use relq_core::QueueName;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::{
    page_error::PageError,
    sampler::{Known, Sampler},
    text::{number, visible},
    view::View,
};

/// How long one stream lasts. The browser then asks again, and is checked again.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// Streams the counts of the queues that the query names.
pub(crate) async fn counts(view: View) -> Result<Response, PageError> {
    let busy = || {
        let why = "too many pages show live counts at once";
        PageError::new(StatusCode::SERVICE_UNAVAILABLE, why)
    };
    let permit = view.app.streams.clone().try_acquire_owned().map_err(|_| busy())?;
    let queue = view.query.read::<QueueName>("queue")?;
    let following = Following {
        sampled: view.app.sampler.sampled(),
        queue,
        began: Instant::now(),
        _permit: permit,
    };
    // The stream must not keep the page itself alive, or it would never end.
    let app = std::sync::Arc::downgrade(&view.app);
    drop(view);
    let events = stream::unfold((app, following), |(app, mut following)| async {
        if following.began.elapsed() > LONGEST {
            return None;
        }
        following.sampled.changed().await.ok()?;
        let event = Event::default().data(following.event(&app.upgrade()?.sampler));
        Some((Ok::<_, Infallible>(event), (app, following)))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// One stream.
struct Following {
    sampled: watch::Receiver<u64>,
    /// The queue of the page; `None` for all.
    queue: Option<QueueName>,
    began: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Following {
    /// The counts as JSON: for each queue the text of each count or, if they cannot be
    /// read, the error.
    fn event(&self, sampler: &Sampler) -> String {
        let all = sampler.all();
        let wanted = all
            .iter()
            .filter(|(name, _)| self.queue.as_ref().is_none_or(|queue| queue == *name));
        let counts: BTreeMap<_, _> =
            wanted.map(|(name, known)| (name.as_str(), texts(known))).collect();
        json!(counts).to_string()
    }
}

fn texts(known: &Known) -> Value {
    let stats = match &known.counts {
        Ok(stats) => stats,
        Err(error) => return json!({ "error": visible(error) }),
    };
    json!({
        "ready": number(stats.ready),
        "scheduled": number(stats.scheduled),
        "leased": number(stats.leased),
        "dead": number(stats.dead),
        "rate": rate(known),
    })
}

/// The rate of a queue as text.
pub(crate) fn rate(known: &Known) -> String {
    known
        .ended_per_second()
        .map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}/s"))
}
