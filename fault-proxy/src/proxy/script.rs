//! Lets scripts read the proxy's clock in place of the server's.
//!
//! ```text
//! client   EVALSHA a1… 1 key arg                       TIME would be the server's
//! server   EVALSHA b2… 1 key arg 41024448 0 named 2.0  b2… is a1… with a shim
//! ```
//!
//! The shim is Lua code that the proxy inserts before the script. It removes the
//! proxy's words from the end of `ARGV`, and hides `redis` behind a table. The table's
//! `call` and `pcall` reply to `TIME` with the proxy's time, and pass everything else to
//! the real `redis`. If the word after the time is `named`, entries that the script adds
//! to streams get ids made from that time. Commands with random results (`RANDOMKEY`,
//! `SRANDMEMBER`, `ZRANDMEMBER`, `SCAN`) then reply as the suite's [`Draws`] say, and
//! the idle times in the reply to `XPENDING` are 0, because the server measures them by
//! its own clock. The shim is in the same line as the script's first line after
//! `#!lua …`, so that line numbers stay the same. `KEYS`, `ARGV` and the flags are those
//! of the client.
//!
//! A digest that the proxy does not know passes unchanged, and so does one that the
//! server forgot. The server replies NOSCRIPT to both, as it would without the proxy.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use bytes::{Bytes, BytesMut};
use sha1_smol::Sha1;

use super::{
    chance::{Draws, DrawsFrom},
    patch::{Patch, patched},
};

/// The shim in one line, so that the script after it keeps its line numbers.
static SHIM: LazyLock<String> = LazyLock::new(|| {
    include_str!("time_shim.lua").lines().flat_map(|line| [line.trim(), " "]).collect()
});

/// The scripts that passed the proxy.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// The scripts, by the client's digest and also by the digest of the script with
    /// the shim.
    known: HashMap<String, Known>,
    labels: HashMap<String, String>,
    patches: Vec<Patch>,
    names_entries: bool,
    /// The draws of the script that the server runs next.
    draws: Draws,
}

#[derive(Debug, Clone)]
struct Known {
    /// The script with the shim, which the server gets. `shimmed` is its digest.
    source: Bytes,
    shimmed: String,
    label: String,
    draws_from: DrawsFrom,
}

impl Scripts {
    /// Sets the name of the script with that digest in the record of steps.
    pub(crate) fn name(&mut self, digest: &str, label: &str) {
        self.labels.insert(digest.to_ascii_lowercase(), label.to_owned());
    }

    /// From now on new entries of streams get ids made from the proxy's time.
    pub(crate) fn name_entries(&mut self) {
        self.names_entries = true;
    }

    pub(crate) fn names_entries(&self) -> bool {
        self.names_entries
    }

    /// The arguments that the proxy appends to a script's `ARGV` for the shim, which
    /// removes them before the script itself runs.
    pub(crate) fn for_shim(&mut self, [seconds, micros]: [String; 2]) -> [String; 4] {
        let word = if self.names_entries { "named" } else { "unnamed" };
        let draws = std::mem::take(&mut self.draws);
        [seconds, micros, word.to_owned(), draws.to_string()]
    }

    /// Sets the draws of the script that the server runs next. The scripts after it run
    /// without draws.
    pub(super) fn draw(&mut self, draws: Draws) {
        self.draws = draws;
    }

    /// The lists that the script with that digest draws from.
    pub(super) fn draws_from(&self, digest: &[u8]) -> DrawsFrom {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        self.known.get(&digest).map(|known| known.draws_from).unwrap_or_default()
    }

    /// Applies `patch` to each script that it is meant for and that a client sends from
    /// now on. A script that was sent before stays as it is.
    pub(crate) fn patch(&mut self, patch: Patch) {
        self.patches.push(patch);
    }

    /// Stores a script. Returns its digest, and the script to send to the server in its
    /// place.
    pub(crate) fn learn(&mut self, source: &[u8]) -> (String, Bytes) {
        let digest = digest(source);
        if let Some(known) = self.known.get(&digest) {
            return (digest, known.source.clone());
        }
        let known = match patched(&self.patches, source) {
            Cow::Borrowed(_) => Known::unpatched(&digest, source),
            Cow::Owned(patched) => Known::of(&digest, source, &patched),
        };
        let shimmed = known.source.clone();
        self.known.insert(known.shimmed.clone(), known.clone());
        self.known.insert(digest.clone(), known);
        (digest, shimmed)
    }

    /// The digest of the script with the shim, given the client's digest. `None` if the
    /// proxy does not know the script.
    pub(crate) fn shimmed(&self, digest: &[u8]) -> Option<&str> {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        self.known.get(&digest).map(|known| known.shimmed.as_str())
    }

    /// The names of all scripts that passed the proxy.
    pub(crate) fn all_labels(&self) -> Vec<String> {
        let named = |digest: &String| self.label(digest.as_bytes());
        self.known.keys().map(named).collect()
    }

    /// The name of the script with this text.
    pub(crate) fn label_of_source(&self, source: &[u8]) -> String {
        let digest = digest(source);
        let given = self.labels.get(&digest);
        given.cloned().unwrap_or_else(|| label(source, &digest))
    }

    /// The name of the script with that digest.
    pub(crate) fn label(&self, digest: &[u8]) -> String {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        let known = || self.known.get(&digest).map(|known| &known.label);
        match self.labels.get(&digest).or_else(known) {
            Some(label) => label.clone(),
            None => short(&digest),
        }
    }
}

impl Known {
    fn of(digest: &str, source: &[u8], patched: &[u8]) -> Self {
        let shimmed = shim(patched);
        Self {
            shimmed: self::digest(&shimmed),
            label: label(source, digest),
            draws_from: DrawsFrom::script(patched),
            source: shimmed,
        }
    }

    /// Prepares each script once in this process, because a run of the suite starts
    /// thousands of proxies, to which the same few scripts are sent.
    fn unpatched(digest: &str, source: &[u8]) -> Self {
        static PREPARED: LazyLock<Mutex<HashMap<String, Known>>> =
            LazyLock::new(Mutex::default);
        let mut prepared = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = prepared.entry(digest.to_owned());
        known.or_insert_with(|| Self::of(digest, source, source)).clone()
    }
}

/// The digest by which Redis knows a script.
pub(crate) fn digest(source: &[u8]) -> String {
    Sha1::from(source).digest().to_string()
}

fn shim(source: &[u8]) -> Bytes {
    // A script whose first line `#!…` is incomplete is left to the server to refuse.
    let flags = match source.iter().position(|byte| *byte == b'\n') {
        Some(end) if source.starts_with(b"#!") => end + 1,
        None if source.starts_with(b"#!") => return Bytes::copy_from_slice(source),
        _ => 0,
    };
    let mut shimmed = BytesMut::with_capacity(source.len() + SHIM.len());
    shimmed.extend_from_slice(&source[..flags]);
    shimmed.extend_from_slice(SHIM.as_bytes());
    shimmed.extend_from_slice(&source[flags..]);
    shimmed.freeze()
}

/// The default name of a script: its first comment, and the beginning of its digest,
/// which distinguishes scripts with the same comment.
fn label(source: &[u8], digest: &str) -> String {
    let text = String::from_utf8_lossy(source);
    let mut lines = text.lines().map(str::trim);
    let comment = lines.find_map(|line| line.strip_prefix("--")).map(str::trim);
    match comment.filter(|comment| !comment.is_empty()) {
        Some(comment) => format!("{comment} [{}]", short(digest)),
        None => short(digest),
    }
}

fn short(digest: &str) -> String {
    digest.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_stay_the_first_line() {
        let shimmed = shim(b"#!lua flags=allow-oom\nreturn 1\nreturn 2");

        let text = std::str::from_utf8(&shimmed).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "#!lua flags=allow-oom");
        assert!(lines[1].ends_with("return 1") && lines[2] == "return 2");
    }

    #[test]
    fn a_script_is_called_by_its_first_comment_or_by_the_name_given() {
        let mut scripts = Scripts::default();
        let (digest, _) = scripts.learn(b"#!lua\n-- Lease a job.\nreturn 1");
        let own = format!("Lease a job. [{}]", &digest[..8]);
        assert_eq!(scripts.label(digest.as_bytes()), own);

        scripts.name(&digest, "claim");

        assert_eq!(scripts.label(digest.as_bytes()), "claim");
    }
}
