//! A victim in a process of its own, which is killed at one of its steps.

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
        Again, Knowledge, Part, StoreContents, Survivors, Victim, VictimObserver,
        bring_back, settle_up,
    },
};

/// A step of the child.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) label: String,
    pub(super) only_reads: bool,
}

impl Step {
    fn new(label: &str, only_reads: bool) -> Self {
        Self { label: label.to_owned(), only_reads }
    }
}

/// The result of one run of a scenario.
pub(super) struct Ran {
    /// The child's steps. Empty if the steps were not counted.
    pub(super) steps: Vec<Step>,
    pub(super) fired: bool,
    pub(super) found: Result<StoreContents, String>,
}

/// The output that a child sent to its parent.
#[derive(Debug, Default)]
struct ChildOutput {
    steps: Vec<Step>,
    ran: Vec<Bytes>,
    injected: bool,
    answer: Option<Result<(), String>>,
}

/// Starts a child that makes the calls of the scenario, kills it at `spot`, and judges
/// what is left. Without a spot the child runs to its end and counts its steps.
pub(super) async fn run(start: &Start, spot: Option<Spot>) -> Ran {
    let folder = start.lay_out();
    let clock = start.clock();
    let acted = timeout(LIMIT, have_acted(start, folder.path(), &clock, spot)).await;
    let (output, early) = match acted {
        Ok(Ok(acted)) => acted,
        Ok(Err(error)) => return Ran::failed(format!("the child: {error}")),
        Err(_) => return Ran::failed(format!("the act did not end within {LIMIT:?}")),
    };
    // The survivors that judge open the store again, so that they see it as the killed
    // child left it.
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
    let Part { receipts, jobs, .. } = start.part();
    Order { scenario, elapsed, receipts, jobs, spot }.write(folder)?;
    // Only if the scenario has other actors that make calls, open the store in this
    // process while the child runs.
    let survivors = match start.scenario.has_others() {
        false => None,
        true => Some(start.survivors(folder, clock).await.map_err(io::Error::other)?),
    };
    let mut child = spawn(start, folder)?;
    let (asleep, gone) = (watch::Sender::new(false), watch::Sender::new(false));
    let (held, gone_too) = (once(&asleep), once(&gone));
    let (room, time_passes) = (Box::pin(async {}), watch::Sender::new(true));
    let observer = VictimObserver { held, gone: gone_too, room, time_passes };
    let listening = async {
        let output = listen(&mut child, clock, &asleep).await;
        gone.send_replace(true);
        output
    };
    let meanwhile = async {
        if let Some(survivors) = &survivors {
            start.scenario.meanwhile(survivors, observer).await;
        }
    };
    let (output, ()) = tokio::join!(listening, meanwhile);
    Ok((output?, survivors))
}

/// Starts this program again as a child process. The child is killed when the handle is
/// dropped.
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

/// Reads the child's output to its end, and kills the child when it reports that it has
/// reached its step.
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
            ("look", label) => output.steps.push(Step::new(label, true)),
            ("step", label) => output.steps.push(Step::new(label, false)),
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

/// Checks how the child ended: a child that reached its step must have been killed, and
/// any other must have ended without an error.
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
        // This wait cannot fail: the channel stays open, because its sender lives as
        // long as the run.
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
        // A child that is killed before its first step has changed nothing.
        None if spot.is_some_and(|spot| spot == Spot::FIRST) => Knowledge::Undone,
        None => Knowledge::Unknown,
    };
    bring_back(&survivors).await?;
    let found = settle_up(&survivors, &start.part().newest_receipts()).await?;
    let fault_of_victim = spot.map_or(VictimFault::None, |_| VictimFault::Some);
    start.judge(found, (output.ran.clone(), known, fault_of_victim))
}

/// Lets a survivor repeat the victim's calls. Afterwards the calls must have taken
/// effect.
pub(super) async fn again(
    start: &Start,
    survivors: &Survivors,
) -> Result<Knowledge, String> {
    let victim = Victim {
        queue: survivors.healthy.queue.clone(),
        clock: survivors.clock.clone(),
        part: start.part(),
    };
    let repeated = start.scenario.act(victim).await;
    let said =
        |error: relq_core::Error| format!("the repetition: {}", error.full_message());
    repeated.map(|()| Knowledge::Done).map_err(said)
}
