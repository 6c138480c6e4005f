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

/// How long the view waits at its end for the changes that its keys have started.
const LEAVING: Duration = Duration::from_secs(30);

const WAITING: &str = "a change is under way: q again leaves without its answer";

/// Where the events come from.
struct Inputs {
    keys: mpsc::Receiver<io::Result<Event>>,
    answers: mpsc::Receiver<Answer>,
    interrupts: Interrupts,
}

/// Shows the queues until a key or a signal ends it, and then waits for the changes that
/// keys have started.
pub(super) async fn run(
    state: &mut State,
    screen: &mut Screen,
    source: Arc<StoreSource>,
    interrupts: Interrupts,
) -> CommandResult {
    let (tell, answers) = mpsc::channel(64);
    let mut inputs = Inputs { keys: screen::keys(), answers, interrupts };
    let mut tasks = Tasks { source, tell, reading: None, changing: 0 };
    let shown = show(state, screen, &mut tasks, &mut inputs).await;
    let changed = finish_changes(state, screen, &mut tasks, &mut inputs).await;
    shown.and(changed)
}

async fn show(
    state: &mut State,
    screen: &mut Screen,
    tasks: &mut Tasks,
    inputs: &mut Inputs,
) -> CommandResult {
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
        redraw(state, screen)?;
        let next_tick = ticked + state.interval;
        let event = tokio::select! {
            () = inputs.interrupts.first() => return Ok(()),
            key = inputs.keys.recv() => {
                key.unwrap_or_else(|| Err(no_keys())).map_err(|it| unread(&it))?
            }
            Some(answer) = inputs.answers.recv() => {
                tasks.note(&answer);
                Event::Answer(answer)
            }
            () = sleep_until(next_tick) => {
                ticked = TokioInstant::now();
                Event::Tick
            }
            () = sleep_until(TokioInstant::now() + REDRAW) => continue,
        };
        effects = state.update(event, Instant::now());
    }
}

fn redraw(state: &mut State, screen: &mut Screen) -> CommandResult {
    let mut status_lines = 1;
    screen.draw(|frame| {
        status_lines = draw::draw(frame, state, Instant::now(), SystemClock.now());
    })?;
    state.status_lines = status_lines;
    Ok(())
}

/// Waits for the answers to the changes under way, unless the user asks to leave once more.
/// Fails if a change was not made, or may not have been made.
async fn finish_changes(
    state: &mut State,
    screen: &mut Screen,
    tasks: &mut Tasks,
    inputs: &mut Inputs,
) -> CommandResult {
    let give_up = TokioInstant::now() + LEAVING;
    let mut outcome = Ok(());
    while tasks.changing > 0 {
        state.say(WAITING);
        // Ignore an error: the terminal may be gone, and the change goes on.
        let _ = redraw(state, screen);
        tokio::select! {
            Some(answer) = inputs.answers.recv() => {
                tasks.note(&answer);
                if let Answer::Changed(Err(why)) = answer {
                    outcome = Err(Failure::Failed(why));
                }
            }
            Some(Ok(event)) = inputs.keys.recv() => {
                if state.update(event, Instant::now()).contains(&Effect::Quit) {
                    return Err(left_behind());
                }
            }
            () = inputs.interrupts.second() => return Err(left_behind()),
            () = sleep_until(give_up) => return Err(left_behind()),
        }
    }
    outcome
}

fn left_behind() -> Failure {
    let why = "a change had no answer yet, so it is not known whether it was made";
    Failure::Failed(why.to_owned())
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
    /// How many changes have no answer yet.
    changing: usize,
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
            Effect::Change(queue, change) => {
                self.changing += 1;
                drop(self.tell_when_done(async move {
                    Answer::Changed(reading::change(&source, &queue, &change).await)
                }));
            }
            Effect::Redraw | Effect::Quit => {}
        }
    }

    /// Notes that an answer has arrived.
    fn note(&mut self, answer: &Answer) {
        if let Answer::Changed(_) = answer {
            self.changing -= 1;
        }
    }

    fn tell_when_done(
        &self,
        asking: impl Future<Output = Answer> + Send + 'static,
    ) -> AbortHandle {
        let tell = self.tell.clone();
        let task = tokio::spawn(async move {
            // Ignore a failed send: the view has ended.
            let _ = tell.send(asking.await).await;
        });
        task.abort_handle()
    }
}
