//! The terminal: its modes are changed while the screen is open, and set back at every
//! end, also at a panic.

use std::{
    io::{self, Stdout},
    mem::ManuallyDrop,
    panic, process,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        event::{self, Event as TerminalEvent, KeyEventKind},
        execute,
        terminal::{
            EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
            enable_raw_mode,
        },
    },
    layout::Rect,
};
use tokio::sync::mpsc;

use super::state::Event;
use crate::failure::{CommandResult, Failure};

/// Whether the modes of the terminal are changed.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The terminal, on which the program draws. Dropping this value sets it back.
pub(super) struct Screen {
    /// When it is dropped it writes to standard error if the terminal is gone, and that
    /// write panics. This module restores all that it would restore.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    pub(super) fn open() -> CommandResult<Self> {
        enable_raw_mode().map_err(|error| cannot("change the modes of", &error))?;
        IS_OPEN.store(true, SeqCst);
        restore_at_panic();
        let opened = execute!(io::stdout(), EnterAlternateScreen, Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
            Err(error) => {
                restore();
                Err(cannot("draw on", &error))
            }
        }
    }

    /// The number of columns and of lines.
    pub(super) fn size(&self) -> CommandResult<(u16, u16)> {
        let size = self.terminal.size();
        let size = size.map_err(|error| cannot("find the size of", &error))?;
        Ok((size.width, size.height))
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> CommandResult {
        let drawn = self.terminal.draw(draw);
        drawn.map(drop).map_err(|error| cannot("draw on", &error))
    }

    /// Draws every cell again at the next time, also those that did not change.
    ///
    /// `Terminal::clear` would ask the terminal where its cursor is, and wait for an answer
    /// that the thread of the keys reads.
    pub(super) fn forget(&mut self) -> CommandResult {
        let (columns, lines) = self.size()?;
        let resized = self.terminal.resize(Rect::new(0, 0, columns, lines));
        resized.map_err(|error| cannot("clear", &error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn cannot(what: &str, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot {what} the terminal: {error}"))
}

/// Restores the terminal, once. An error is ignored: the terminal may be gone.
fn restore() {
    if IS_OPEN.swap(false, SeqCst) {
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// At a panic, restores the terminal, prints the message, and ends the program. After a
/// panic of one task, the screen would go on showing outdated figures.
fn restore_at_panic() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        restore();
        print(panic);
        process::exit(101);
    }));
}

/// Reads the keys in a thread, which ends with the program.
pub(super) fn keys() -> mpsc::Receiver<io::Result<Event>> {
    let (tell, told) = mpsc::channel(64);
    thread::spawn(move || {
        loop {
            let read = match event::read() {
                Ok(TerminalEvent::Key(key)) if key.kind != KeyEventKind::Release => {
                    Ok(Event::Key(key))
                }
                Ok(TerminalEvent::Resize(columns, lines)) => {
                    Ok(Event::Resized(columns, lines))
                }
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if tell.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    });
    told
}

#[cfg(test)]
mod tests {
    use std::{env, io::Read as _};

    use pty_process::blocking::{Command, open};
    use rustix::termios::{LocalModes, tcgetattr};
    use vt100::Parser;

    use super::*;

    #[test]
    #[ignore = "panics on a screen, for the test below"]
    fn panics_on_the_screen() {
        let _screen = Screen::open().unwrap();
        panic!("the reason of the panic");
    }

    #[test]
    fn a_panic_sets_the_terminal_back_before_its_message() {
        let (mut pty, pts) = open().unwrap();
        let before = tcgetattr(&pty).unwrap().local_modes;
        let test = "top::screen::tests::panics_on_the_screen";
        let command = Command::new(env::current_exe().unwrap());
        let command = command.args([test, "--exact", "--ignored", "--nocapture"]);
        let mut child = command.spawn(pts).unwrap();

        let (mut chunk, mut written) = ([0; 4096], Vec::new());
        // Reading fails when no process has the terminal open any more.
        while let Ok(length @ 1..) = pty.read(&mut chunk) {
            written.extend(&chunk[..length]);
        }

        assert_eq!(child.wait().unwrap().code(), Some(101));
        let written_text = String::from_utf8_lossy(&written).into_owned();
        assert!(written_text.contains("\x1b[?1049h"), "it was open: {written_text}");
        let mut parser = Parser::default();
        parser.process(&written);
        let screen = parser.screen();
        assert!(screen.contents().contains("the reason of the panic"));
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        let after = tcgetattr(&pty).unwrap().local_modes;
        assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
        assert_eq!(after, before);
    }
}
