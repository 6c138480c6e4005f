//! A victim in a process of its own, killed at a step.

use std::{
    env, io,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use bytes::Bytes;
use queue_core::Clock as _;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout},
    sync::watch,
    time::timeout,
};

use super::{
    act::LIMIT,
    child::{CHILD, SAYS},
    order::{self, Order, Spot},
    start::{Start, Trouble},
};
use crate::{
    fault::VirtualClock,
    steps::{Again, Knowledge, Outcome, Sight, Stage, Victim, bring_back, settle_up},
};

/// What became of a run.
pub(super) struct Ran {
    /// The labels of the child's steps, when they were counted.
    pub(super) steps: Vec<String>,
    pub(super) fired: bool,
    pub(super) found: Result<Outcome, String>,
}

/// What was heard of a child.
#[derive(Debug, Default)]
struct Heard {
    steps: Vec<String>,
    ran: Vec<Bytes>,
    struck: bool,
    answer: Option<Result<(), String>>,
}

/// Has a child act, kills it at that spot, and judges what is left.
pub(super) async fn run(start: &Start, spot: Option<Spot>) -> Ran {
    let folder = start.lay_out();
    let clock = start.clock();
    let acted = timeout(LIMIT, have_acted(start, folder.path(), &clock, spot)).await;
    let (heard, early) = match acted {
        Ok(Ok(acted)) => acted,
        Ok(Err(error)) => return Ran::failed(format!("the child: {error}")),
        Err(_) => return Ran::failed(format!("the act hangs for {LIMIT:?}")),
    };
    // Whoever opens it now finds it as the dead left it.
    drop(early);
    let found = judge(start, folder.path(), &clock, (spot, &heard)).await;
    Ran { steps: heard.steps, fired: heard.struck, found }
}

impl Ran {
    fn failed(wrong: String) -> Self {
        Self { steps: Vec::new(), fired: false, found: Err(wrong) }
    }
}

async fn have_acted(
    start: &Start,
    folder: &Path,
    clock: &VirtualClock,
    spot: Option<Spot>,
) -> io::Result<(Heard, Option<Stage>)> {
    let (scenario, elapsed) = (start.index, start.elapsed);
    Order { scenario, elapsed, held: start.held.clone(), spot }.write(folder)?;
    // Only where something is done meanwhile does anybody else have the file open.
    let is_alone = start.scenario.is_steady || start.scenario.is_worker;
    let stage = match is_alone {
        true => None,
        false => Some(start.survivors(folder, clock).await.map_err(io::Error::other)?),
    };
    let mut child = spawn(start, folder)?;
    let (asleep, gone) = (watch::Sender::new(false), watch::Sender::new(false));
    let (held, gone_too) = (once(&asleep), once(&gone));
    let sight = Sight { held, gone: gone_too, room: Box::pin(async {}) };
    let listening = async {
        let heard = listen(&mut child, clock, &asleep).await;
        gone.send_replace(true);
        heard
    };
    let meanwhile = async {
        if let Some(stage) = &stage {
            (start.scenario.meanwhile)(stage, sight).await;
        }
    };
    let (heard, ()) = tokio::join!(listening, meanwhile);
    Ok((heard?, stage))
}

/// This program once more, as a child that dies with its parent's interest in it.
pub(super) fn spawn(start: &Start, folder: &Path) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    match start.subject.child {
        super::Child::Test(name) => {
            command.args([name, "--exact", "--include-ignored", "--test-threads=1"])
        }
        super::Child::Program(arguments) => command.args(arguments),
    };
    command.env(CHILD, folder).stdin(Stdio::null()).stdout(Stdio::piped());
    tokio::process::Command::from(command).kill_on_drop(true).spawn()
}

/// Hears the child to its end, and brings that about where it is struck.
async fn listen(
    child: &mut Child,
    clock: &VirtualClock,
    asleep: &watch::Sender<bool>,
) -> io::Result<Heard> {
    let mut heard = Heard::default();
    let out: ChildStdout = child.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(out).lines();
    while let Some(line) = lines.next_line().await? {
        let Some(said) = line.strip_prefix(SAYS) else { continue };
        match said.split_once(' ').unwrap_or((said, "")) {
            ("step", label) => heard.steps.push(label.to_owned()),
            ("ran", payload) => heard.ran.push(order::bytes(payload).into()),
            ("asleep", _) => drop(asleep.send_replace(true)),
            ("elapsed", ms) => go_on_to(clock, ms),
            ("struck", _) => {
                heard.struck = true;
                child.start_kill()?;
            }
            ("done", _) => heard.answer = Some(Ok(())),
            (_, error) => heard.answer = Some(Err(error.to_owned())),
        }
    }
    end(child.wait().await?, &heard)?;
    Ok(heard)
}

fn go_on_to(clock: &VirtualClock, ms: &str) {
    let elapsed = Duration::from_millis(ms.parse().expect("the child says a number"));
    clock.advance(elapsed.saturating_sub(clock.elapsed()));
}

/// A child that was struck was killed, and another ended well.
fn end(status: ExitStatus, heard: &Heard) -> io::Result<()> {
    let is_right = match heard.struck {
        true => status.code() != Some(0) && heard.answer.is_none(),
        false => status.success() && heard.answer.is_some(),
    };
    if is_right {
        return Ok(());
    }
    Err(io::Error::other(format!("it ended by {status}: {heard:?}")))
}

fn once(happened: &watch::Sender<bool>) -> crate::steps::BoxFuture<'static, ()> {
    let mut happened = happened.subscribe();
    Box::pin(async move {
        // The sender lives as long as the run.
        let _ = happened.wait_for(|it| *it).await;
    })
}

async fn judge(
    start: &Start,
    folder: &Path,
    clock: &VirtualClock,
    (spot, heard): (Option<Spot>, &Heard),
) -> Result<Outcome, String> {
    let stage = start.survivors(folder, clock).await?;
    let known = match &heard.answer {
        Some(Ok(())) => Knowledge::Done,
        Some(Err(error)) => return Err(format!("the act failed: {error}")),
        None if start.scenario.again == Again::ByAnyone => again(start, &stage).await?,
        // Before its first step nobody can have done anything.
        None if spot.is_some_and(|spot| spot == Spot::FIRST) => Knowledge::Undone,
        None => Knowledge::Unknown,
    };
    bring_back(&stage).await?;
    let found = settle_up(&stage, &start.held).await?;
    let trouble = spot.map_or(Trouble::None, |_| Trouble::Some);
    start.judge(found, (heard.ran.clone(), known, trouble))
}

/// What may be repeated is repeated by a survivor, and then it is done.
pub(super) async fn again(start: &Start, stage: &Stage) -> Result<Knowledge, String> {
    let victim = Victim {
        queue: stage.hand.queue.clone(),
        clock: stage.clock.clone(),
        part: start.part(),
    };
    let repeated = (start.scenario.act)(victim).await;
    let said =
        |error: queue_core::Error| format!("the repetition: {}", error.full_message());
    repeated.map(|()| Knowledge::Done).map_err(said)
}
