//! Scripts that read the proxy's clock.
//!
//! ```text
//!  client   EVALSHA a1… 1 key arg               TIME in a1… is the server's
//!  server   EVALSHA b2… 1 key arg 41024448 0    b2… is a1… behind a shim
//! ```
//!
//! The shim takes the time off the end of `ARGV` and shadows `redis` with a table
//! whose `call` and `pcall` answer `TIME` from it; the rest is the real one. It is
//! one line, put in front of the script's first line (behind `#!lua …`), so the
//! numbers of lines stay. `KEYS`, `ARGV` and the flags are what the client meant.
//!
//! A digest that the proxy does not know passes as it is, and so does one that the
//! server forgot: both answer NOSCRIPT, as they would without the proxy.

use std::{collections::HashMap, sync::LazyLock};

use bytes::{Bytes, BytesMut};
use sha1_smol::Sha1;

use super::patch::{Patch, patched};

/// The shim as one line, so that the script behind it keeps its numbers of lines.
static SHIM: LazyLock<String> = LazyLock::new(|| {
    include_str!("time_shim.lua").lines().flat_map(|line| [line.trim(), " "]).collect()
});

/// The scripts that went through the proxy.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// By the digest that the client knows, and by that of the shimmed one too.
    known: HashMap<String, Known>,
    labels: HashMap<String, String>,
    patches: Vec<Patch>,
}

#[derive(Debug, Clone)]
struct Known {
    /// What the server gets in its place, and its digest.
    source: Bytes,
    shimmed: String,
    label: String,
}

impl Scripts {
    /// Says what a script is called in the record of steps.
    pub(crate) fn name(&mut self, digest: &str, label: &str) {
        self.labels.insert(digest.to_ascii_lowercase(), label.to_owned());
    }

    /// Changes a script that is yet to come through.
    pub(crate) fn patch(&mut self, patch: Patch) {
        self.patches.push(patch);
    }

    /// Takes note of a script; answers its digest and what to send in its place.
    pub(crate) fn learn(&mut self, source: &[u8]) -> (String, Bytes) {
        let digest = digest(source);
        if let Some(known) = self.known.get(&digest) {
            return (digest, known.source.clone());
        }
        let shimmed = shim(&patched(&self.patches, source));
        let known = Known {
            shimmed: self::digest(&shimmed),
            label: label(source, &digest),
            source: shimmed.clone(),
        };
        self.known.insert(known.shimmed.clone(), known.clone());
        self.known.insert(digest.clone(), known);
        (digest, shimmed)
    }

    /// The digest to send in place of a client's, if the proxy knows the script.
    pub(crate) fn shimmed(&self, digest: &[u8]) -> Option<&str> {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        self.known.get(&digest).map(|known| known.shimmed.as_str())
    }

    /// What each script is called that went through.
    pub(crate) fn all_labels(&self) -> Vec<String> {
        let named = |digest: &String| self.label(digest.as_bytes());
        self.known.keys().map(named).collect()
    }

    /// What this script is called.
    pub(crate) fn label_of_source(&self, source: &[u8]) -> String {
        let digest = digest(source);
        let given = self.labels.get(&digest);
        given.cloned().unwrap_or_else(|| label(source, &digest))
    }

    /// What the script of that digest is called.
    pub(crate) fn label(&self, digest: &[u8]) -> String {
        let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
        let known = || self.known.get(&digest).map(|known| &known.label);
        match self.labels.get(&digest).or_else(known) {
            Some(label) => label.clone(),
            None => short(&digest),
        }
    }
}

/// The digest by which Redis knows a script.
pub(crate) fn digest(source: &[u8]) -> String {
    Sha1::from(source).digest().to_string()
}

fn shim(source: &[u8]) -> Bytes {
    // A first line that is not whole is refused by the server, in its own words.
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

/// The script's first comment, which says what it is, and the digest's beginning:
/// scripts that begin alike are told apart.
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
