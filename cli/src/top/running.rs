//! Runs the view: events change the state, effects start tasks, and the state is drawn.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::environment::{Clock as _, SystemClock};
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Instant as TokioInstant, sleep_until},
};

use super::{
    asks::{Answer, Effect},
    draw, reading,
    screen::{self, Screen},
    state::{Event, State},
};
use crate::{
    failure::{CommandResult, Failure},
    interrupts::Interrupts,
    source::StoreSource,
};

/// How often the screen is drawn although nothing has happened: it shows ages.
const REDRAW: Duration = Duration::from_secs(1);

/// Shows the queues until a key or a signal ends it.
pub(super) async fn run(
    state: &mut State,
    screen: &mut Screen,
    source: Arc<StoreSource>,
    interrupts: Interrupts,
) -> CommandResult {
    let mut keys = screen::keys();
    let (tell, mut answers) = mpsc::channel(64);
    let mut tasks = Tasks { source, tell, reading: None };
    let mut ticked = TokioInstant::now();
    state.size = screen.size()?;
    let mut effects = state.update(Event::Tick, Instant::now());
    loop {
        for effect in std::mem::take(&mut effects) {
            match effect {
                Effect::Quit => return Ok(()),
                Effect::Redraw => screen.forget()?,
                effect => tasks.start(effect),
            }
        }
        let mut status_lines = 1;
        screen.draw(|frame| {
            status_lines = draw::draw(frame, state, Instant::now(), SystemClock.now());
        })?;
        state.status_lines = status_lines;
        let next_tick = ticked + state.interval;
        let event = tokio::select! {
            () = interrupts.first() => return Ok(()),
            key = keys.recv() => key.unwrap_or_else(|| Err(no_keys())).map_err(|it| unread(&it))?,
            Some(answer) = answers.recv() => Event::Answer(answer),
            () = sleep_until(next_tick) => {
                ticked = TokioInstant::now();
                Event::Tick
            }
            () = sleep_until(TokioInstant::now() + REDRAW) => continue,
        };
        effects = state.update(event, Instant::now());
    }
}

fn no_keys() -> io::Error {
    io::Error::other("the thread that reads the keys has ended")
}

fn unread(error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot read the keys from the terminal: {error}"))
}

/// The tasks that ask the store.
struct Tasks {
    source: Arc<StoreSource>,
    tell: mpsc::Sender<Answer>,
    reading: Option<AbortHandle>,
}

impl Tasks {
    fn start(&mut self, effect: Effect) {
        let source = self.source.clone();
        match effect {
            Effect::Sample(names) => drop(self.tell_when_done(async move {
                Answer::Sampled(reading::sample(source, names).await)
            })),
            Effect::Read(read) => {
                if let Some(earlier) = self.reading.take() {
                    earlier.abort();
                }
                self.reading = Some(self.tell_when_done(async move {
                    let found = reading::read(&source, &read.queue, read.page).await;
                    Answer::Read { number: read.number, found }
                }));
            }
            // A change is never dropped: its answer says whether it was made.
            Effect::Change(queue, change) => drop(self.tell_when_done(async move {
                Answer::Changed(reading::change(&source, &queue, &change).await)
            })),
            Effect::Redraw | Effect::Quit => {}
        }
    }

    fn tell_when_done(
        &self,
        asking: impl Future<Output = Answer> + Send + 'static,
    ) -> AbortHandle {
        let tell = self.tell.clone();
        let task = tokio::spawn(async move {
            // The view has ended if nobody listens.
            let _ = tell.send(asking.await).await;
        });
        task.abort_handle()
    }
}
