//! Calls of the program in a pseudo-terminal, which a terminal in memory shows.

use std::{
    io::{Read as _, Write as _},
    process::Child,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use pty_process::{
    Size,
    blocking::{Command, Pty, open},
};
use rustix::{
    process::{Pid, Signal, kill_process},
    termios::{LocalModes, Termios, tcgetattr},
};
use vt100::Parser;

use crate::relq::{Store, eventually, wait_until};

/// The size of the terminal at the start, in lines and columns.
const SIZE: (u16, u16) = (24, 80);

/// A running call of the program with its terminal. Dropping this value kills it.
pub(crate) struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    shown: Arc<Mutex<Shown>>,
    reader: Option<JoinHandle<()>>,
    /// The modes of the terminal before the program started.
    modes: Termios,
}

/// The text that the program has written.
struct Shown {
    bytes: Vec<u8>,
    parser: Parser,
}

impl Store {
    /// Starts `relq top` with these options in a terminal.
    pub(crate) fn top(&self, options: &str) -> Terminal {
        self.in_terminal(&format!("top --interval 200ms {options}"), &[])
    }

    /// Starts the program in a terminal. Its arguments are the words of `line`.
    pub(crate) fn in_terminal(&self, line: &str, env: &[(&str, &str)]) -> Terminal {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(SIZE.0, SIZE.1)).unwrap();
        let modes = tcgetattr(&pty).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_relq"))
            .args(line.split_whitespace())
            .env("RELQ_URL", &self.url)
            .env("TERM", "xterm-256color")
            .env_remove("RELQ_LOG")
            .env_remove("NO_COLOR")
            .envs(env.iter().copied())
            .current_dir(self.folder.path());
        let child = command.spawn(pts).unwrap();
        Terminal::new(child, pty, modes)
    }
}

fn parser((lines, columns): (u16, u16)) -> Parser {
    Parser::new(lines.try_into().unwrap(), columns.try_into().unwrap(), 0)
}

impl Terminal {
    fn new(child: Child, pty: Pty, modes: Termios) -> Self {
        let shown = Shown { bytes: Vec::new(), parser: parser(SIZE) };
        let (pty, shown) = (Arc::new(pty), Arc::new(Mutex::new(shown)));
        let (from, to) = (pty.clone(), shown.clone());
        let reader = thread::spawn(move || {
            let mut chunk = [0; 8192];
            // Reading fails when no process has the terminal open any more.
            while let Ok(length @ 1..) = (&*from).read(&mut chunk) {
                let mut shown = to.lock().unwrap();
                shown.bytes.extend(&chunk[..length]);
                shown.parser.process(&chunk[..length]);
            }
        });
        Self { child, pty, shown, reader: Some(reader), modes }
    }

    /// Types these characters.
    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, lines: u16, columns: u16) {
        let (high, wide) = (lines.try_into().unwrap(), columns.try_into().unwrap());
        self.shown.lock().unwrap().parser.screen_mut().set_size(high, wide);
        self.pty.resize(Size::new(lines, columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// The text on the screen.
    pub(crate) fn text(&self) -> String {
        self.shown.lock().unwrap().parser.screen().contents()
    }

    /// All that the program has written.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.shown.lock().unwrap().bytes.clone()
    }

    /// The line of the screen that has these words.
    pub(crate) fn line(&self, words: &str) -> Option<String> {
        self.text().lines().find(|line| line.contains(words)).map(str::to_owned)
    }

    /// Waits until the screen has these words.
    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) {
        self.wait_while(words, false);
    }

    /// Waits until these words are not on the screen.
    #[track_caller]
    pub(crate) fn wait_for_no(&self, words: &str) {
        self.wait_while(words, true);
    }

    #[track_caller]
    fn wait_while(&self, words: &str, has_words: bool) {
        let mut last = String::new();
        let what = format!("{words:?} on the screen: {}", !has_words);
        let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(&what, || {
                last = self.text();
                last.contains(words) != has_words
            });
        }));
        assert!(came.is_ok(), "{what}\n{last}");
    }

    /// Presses the keys, and waits until the screen has these words.
    #[track_caller]
    pub(crate) fn press_for(&self, keys: &str, words: &str) {
        self.press(keys);
        self.wait_for(words);
    }

    /// Whether the program has the whole screen, without the cursor and with each key at
    /// once.
    pub(crate) fn is_taken(&self) -> bool {
        let modes = tcgetattr(&*self.pty).unwrap().local_modes;
        let shown = self.shown.lock().unwrap();
        let screen = shown.parser.screen();
        screen.alternate_screen()
            && screen.hide_cursor()
            && !modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end of the program, and checks that the terminal is as it was.
    /// Returns the exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let status = eventually("the program ends", || self.child.try_wait().unwrap());
        // Only then has all been read that was written.
        self.reader.take().unwrap().join().unwrap();
        let shown = self.shown.lock().unwrap();
        let screen = shown.parser.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        let modes = tcgetattr(&*self.pty).unwrap();
        assert_eq!(modes.local_modes, self.modes.local_modes);
        assert_eq!(modes.input_modes, self.modes.input_modes);
        assert_eq!(modes.output_modes, self.modes.output_modes);
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
