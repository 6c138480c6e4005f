//! Handles the signals that ask the program to end: the first signal stops it
//! gracefully, and a second may stop it hard.

mod ignored;

use rustix::process::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::failure::{CommandResult, Failure};

/// The signals that ask a program to end. A process that does not handle them is ended
/// by them. SIGKILL is missing, because it cannot be handled. Signals that report a
/// fault of the program are missing too.
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

/// The signals that stop the program hard when a second one arrives. Only a person or a
/// supervisor sends them. Other signals can arrive twice without a request: a closed
/// terminal sends two hangups, and the kernel reports exceeded processor time each
/// second.
const INSISTING: [Signal; 3] = [Signal::INT, Signal::QUIT, Signal::TERM];

/// The signals that the program has received.
#[derive(Clone, Debug)]
pub struct Interrupts(watch::Receiver<Told>);

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    is_asked: bool,
    /// How many of the received signals are in [`INSISTING`].
    insisting: u32,
}

impl Default for Interrupts {
    /// Records no signals. They end the process as usual.
    fn default() -> Self {
        Self(watch::channel(Told::default()).1)
    }
}

impl Interrupts {
    /// Records signals from now on, so that they no longer end the process.
    ///
    /// A hangup that is ignored at the start stays ignored: this is how `nohup` lets a
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

    /// Waits until a signal has asked the program to stop.
    pub async fn first(&self) {
        self.reached(|told| told.is_asked).await;
    }

    /// Waits until a second signal asks the program to stop hard.
    pub async fn second(&self) {
        self.reached(|told| told.insisting >= 2).await;
    }

    /// Whether a signal has asked the program to stop.
    pub fn any(&self) -> bool {
        self.0.borrow().is_asked
    }

    async fn reached(&self, condition: impl Fn(&Told) -> bool) {
        let mut told = self.0.clone();
        if told.wait_for(condition).await.is_err() {
            // The tasks that listen for signals have ended with the runtime, so no
            // signal can arrive.
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

/// Installs a handler for a signal. The signal does not end the process any more, even
/// after the returned value is dropped.
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
