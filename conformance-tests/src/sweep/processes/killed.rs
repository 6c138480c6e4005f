//! A victim in a process of its own, killed at a step.

use std::{
    env, io,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use bytes::Bytes;
use relq_core::environment::Clock as _;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout},
    sync::watch,
    time::timeout,
};

use super::{
    act::LIMIT,
    child::{CHILD, HIT, SAYS},
    order::{self, Order, Spot},
    start::{Start, VictimFault},
};
use crate::{
    proxy::VirtualClock,
    sweep::{
        Again, Knowledge, StoreContents, Survivors, Victim, VictimObserver, bring_back,
        settle_up,
    },
};

/// The result of a run.
pub(super) struct Ran {
    /// The labels of the child's steps, if they were counted.
    pub(super) steps: Vec<String>,
    pub(super) fired: bool,
    pub(super) found: Result<StoreContents, String>,
}

/// The output that a child sent to its parent.
#[derive(Debug, Default)]
struct ChildOutput {
    steps: Vec<String>,
    ran: Vec<Bytes>,
    injected: bool,
    answer: Option<Result<(), String>>,
}

/// Starts a child that runs the act, kills it at that spot, and judges what is left.
pub(super) async fn run(start: &Start, spot: Option<Spot>) -> Ran {
    let folder = start.lay_out();
    let clock = start.clock();
    let acted = timeout(LIMIT, have_acted(start, folder.path(), &clock, spot)).await;
    let (output, early) = match acted {
        Ok(Ok(acted)) => acted,
        Ok(Err(error)) => return Ran::failed(format!("the child: {error}")),
        Err(_) => return Ran::failed(format!("the act did not end within {LIMIT:?}")),
    };
    // The actors that judge must open the store as the killed child left it.
    drop(early);
    let found = judge(start, folder.path(), &clock, (spot, &output)).await;
    Ran { steps: output.steps, fired: output.injected, found }
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
) -> io::Result<(ChildOutput, Option<Survivors>)> {
    let (scenario, elapsed) = (start.index, start.elapsed);
    Order { scenario, elapsed, held: start.held.clone(), spot }.write(folder)?;
    // Open the store in this process only if the scenario has other actors that act
    // at the same time.
    let is_alone = start.scenario.is_steady || start.scenario.is_worker;
    let survivors = match is_alone {
        true => None,
        false => Some(start.survivors(folder, clock).await.map_err(io::Error::other)?),
    };
    let mut child = spawn(start, folder)?;
    let (asleep, gone) = (watch::Sender::new(false), watch::Sender::new(false));
    let (held, gone_too) = (once(&asleep), once(&gone));
    let observer = VictimObserver { held, gone: gone_too, room: Box::pin(async {}) };
    let listening = async {
        let output = listen(&mut child, clock, &asleep).await;
        gone.send_replace(true);
        output
    };
    let meanwhile = async {
        if let Some(survivors) = &survivors {
            (start.scenario.meanwhile)(survivors, observer).await;
        }
    };
    let (output, ()) = tokio::join!(listening, meanwhile);
    Ok((output?, survivors))
}

/// Starts this program again as a child. It is killed when the parent drops its handle.
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

/// Reads the child's output to its end, and kills the child if it reports its fault.
async fn listen(
    child: &mut Child,
    clock: &VirtualClock,
    asleep: &watch::Sender<bool>,
) -> io::Result<ChildOutput> {
    let mut output = ChildOutput::default();
    let out: ChildStdout = child.stdout.take().expect("the child's output is piped");
    let mut lines = BufReader::new(out).lines();
    while let Some(line) = lines.next_line().await? {
        let Some(said) = line.strip_prefix(SAYS) else { continue };
        match said.split_once(' ').unwrap_or((said, "")) {
            ("step", label) => output.steps.push(label.to_owned()),
            ("ran", payload) => output.ran.push(order::bytes(payload).into()),
            ("asleep", _) => drop(asleep.send_replace(true)),
            ("elapsed", ms) => go_on_to(clock, ms),
            (HIT, _) => {
                output.injected = true;
                child.start_kill()?;
            }
            ("done", _) => output.answer = Some(Ok(())),
            ("failed", error) => output.answer = Some(Err(error.to_owned())),
            _ => return Err(io::Error::other(format!("the child said {said:?}"))),
        }
    }
    end(child.wait().await?, &output)?;
    Ok(output)
}

fn go_on_to(clock: &VirtualClock, ms: &str) {
    let elapsed = Duration::from_millis(ms.parse().expect("the child prints a number"));
    clock.advance(elapsed.saturating_sub(clock.elapsed()));
}

/// Checks the exit: a child that was hit by a fault was killed, any other ended well.
fn end(status: ExitStatus, output: &ChildOutput) -> io::Result<()> {
    let is_right = match output.injected {
        true => status.code() != Some(0) && output.answer.is_none(),
        false => status.success() && output.answer.is_some(),
    };
    if is_right {
        return Ok(());
    }
    Err(io::Error::other(format!("the child ended with {status}: {output:?}")))
}

fn once(happened: &watch::Sender<bool>) -> crate::sweep::BoxFuture<'static, ()> {
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
    (spot, output): (Option<Spot>, &ChildOutput),
) -> Result<StoreContents, String> {
    let survivors = start.survivors(folder, clock).await?;
    let known = match &output.answer {
        Some(Ok(())) => Knowledge::Done,
        Some(Err(error)) => return Err(format!("the act failed: {error}")),
        None if start.scenario.again == Again::ByAnyone => {
            again(start, &survivors).await?
        }
        // Before its first step the child cannot have changed anything.
        None if spot.is_some_and(|spot| spot == Spot::FIRST) => Knowledge::Undone,
        None => Knowledge::Unknown,
    };
    bring_back(&survivors).await?;
    let found = settle_up(&survivors, &start.held).await?;
    let fault_of_victim = spot.map_or(VictimFault::None, |_| VictimFault::Some);
    start.judge(found, (output.ran.clone(), known, fault_of_victim))
}

/// A survivor repeats the act if it may be repeated, and then it must be done.
pub(super) async fn again(
    start: &Start,
    survivors: &Survivors,
) -> Result<Knowledge, String> {
    let victim = Victim {
        queue: survivors.healthy.queue.clone(),
        clock: survivors.clock.clone(),
        part: start.part(),
    };
    let repeated = (start.scenario.act)(victim).await;
    let said =
        |error: relq_core::Error| format!("the repetition: {}", error.full_message());
    repeated.map(|()| Knowledge::Done).map_err(said)
}
