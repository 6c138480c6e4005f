//! Signals that ask the program to end: the first asks, a second may insist.

mod ignored;

use rustix::process::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::failure::{CommandResult, Failure};

/// Those that end a process which does not handle them, and that a program is sent when
/// it should end. SIGKILL cannot be handled, and the others tell of a fault.
pub const SIGNALS: [Signal; 8] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::ALARM,
    Signal::USR1,
    Signal::USR2,
    Signal::XCPU,
];

/// Those of which a second one insists. A person or a supervisor sends them. The others
/// come again by themselves: a terminal that goes away sends two hangups, and the kernel
/// tells of too much processor time each second.
const INSISTING: [Signal; 3] = [Signal::INT, Signal::QUIT, Signal::TERM];

/// What the program was told by signals.
#[derive(Clone, Debug)]
pub struct Interrupts(watch::Receiver<Told>);

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    is_asked: bool,
    /// How many of the signals were insisting ones.
    insisting: u32,
}

impl Interrupts {
    /// Takes note from now on, in place of being ended by the signal.
    ///
    /// A hangup that is ignored at the start stays ignored: that is how `nohup` has a
    /// program outlive its terminal.
    pub fn listen() -> CommandResult<Self> {
        let cannot = |error| Failure::Failed(format!("cannot handle signals: {error}"));
        let (tell, told) = watch::channel(Told::default());
        for kind in SIGNALS {
            if kind == Signal::HUP && ignored::is_hangup_ignored().map_err(cannot)? {
                continue;
            }
            let mut signals = handle(kind).map_err(cannot)?;
            let tell = tell.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    tell.send_modify(|told| told.note(kind));
                }
            });
        }
        Ok(Self(told))
    }

    /// Completes once the program was told to stop.
    pub async fn first(&self) {
        self.reached(|told| told.is_asked).await;
    }

    /// Completes once it was told so by a second signal that insists.
    pub async fn second(&self) {
        self.reached(|told| told.insisting >= 2).await;
    }

    /// Whether the program was told to stop.
    pub fn any(&self) -> bool {
        self.0.borrow().is_asked
    }

    async fn reached(&self, condition: impl Fn(&Told) -> bool) {
        let mut told = self.0.clone();
        if told.wait_for(condition).await.is_err() {
            // The tasks that listen ended with the runtime: no signal will come.
            std::future::pending::<()>().await;
        }
    }
}

impl Told {
    fn note(&mut self, signal: Signal) {
        self.is_asked = true;
        self.insisting += u32::from(INSISTING.contains(&signal));
    }
}

/// Handles a signal from now on, for as long as the process lives.
pub fn handle(kind: Signal) -> std::io::Result<tokio::signal::unix::Signal> {
    signal(SignalKind::from_raw(kind.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(signals: &[Signal]) -> (bool, bool) {
        let mut told = Told::default();
        signals.iter().for_each(|signal| told.note(*signal));
        (told.is_asked, told.insisting >= 2)
    }

    #[test]
    fn a_signal_asks_and_a_second_of_a_person_insists() {
        assert_eq!(told(&[]), (false, false));
        for signal in SIGNALS {
            assert_eq!(told(&[signal]), (true, false), "{signal:?}");
        }
        assert_eq!(told(&[Signal::HUP, Signal::HUP, Signal::XCPU]), (true, false));
        assert_eq!(told(&[Signal::TERM, Signal::HUP]), (true, false));
        assert_eq!(told(&[Signal::INT, Signal::TERM]), (true, true));
        assert_eq!(told(&[Signal::QUIT, Signal::QUIT]), (true, true));
    }
}
