//! Changes scripts on their way to the server, to turn a correct backend into a mutant.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A change of one script, or of a text that several scripts contain.
#[derive(Debug)]
pub(crate) struct Patch {
    /// The name of the script to change. `None` for every script that contains the
    /// text.
    script: Option<String>,
    from: String,
    to: String,
    fitted: Fitted,
}

/// Whether a patch has changed a script so far. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Fitted {
    fits: Arc<AtomicBool>,
    is_misfit: Arc<AtomicBool>,
}

impl Fitted {
    /// Whether the patch has changed a script so far.
    pub fn get(&self) -> bool {
        self.fits.load(Ordering::Relaxed)
    }

    /// Whether the script passed the proxy and the patch did not fit it, because the
    /// text to replace does not occur exactly once.
    pub fn is_misfit(&self) -> bool {
        self.is_misfit.load(Ordering::Relaxed)
    }
}

impl Patch {
    pub(crate) fn new(script: &str, from: &str, to: &str) -> Self {
        let script = Some(script.to_owned());
        Self { script, ..Self::everywhere(from, to) }
    }

    pub(crate) fn everywhere(from: &str, to: &str) -> Self {
        let [from, to] = [from, to].map(str::to_owned);
        Self { script: None, from, to, fitted: Fitted::default() }
    }

    /// The handle by which the suite learns whether the patch has changed a script.
    pub(crate) fn fitted(&self) -> Fitted {
        self.fitted.clone()
    }

    /// Whether the patch is for this script. The script's name is the comment in its
    /// first line, or in its second line if the first has the flags. The proxy's shim
    /// may stand before the comment in the same line.
    fn is_for(&self, source: &str) -> bool {
        let Some(script) = &self.script else { return source.contains(&self.from) };
        let mut lines = source.lines().skip_while(|line| line.starts_with("#!"));
        let name = format!("-- {script}");
        lines.next().is_some_and(|line| line.ends_with(&name))
    }

    /// Replaces the text if it occurs exactly once. Otherwise returns `None`: the patch
    /// was written for another version of the script, which must not run unpatched.
    fn apply(&self, source: &str) -> Option<String> {
        if source.matches(&self.from).count() != 1 {
            self.fitted.is_misfit.store(true, Ordering::Relaxed);
            return None;
        }
        self.fitted.fits.store(true, Ordering::Relaxed);
        Some(source.replacen(&self.from, &self.to, 1))
    }
}

/// The script with all patches that are for it. If one does not fit, a script that
/// fails at each call. Borrowed if no patch is for the script.
pub(crate) fn patched<'a>(patches: &[Patch], source: &'a [u8]) -> Cow<'a, [u8]> {
    let Ok(text) = std::str::from_utf8(source) else { return Cow::Borrowed(source) };
    let mut changed = Cow::Borrowed(text);
    for patch in patches.iter().filter(|patch| patch.is_for(text)) {
        match patch.apply(&changed) {
            Some(next) => changed = Cow::Owned(next),
            None => return Cow::Owned(refusal(patch)),
        }
    }
    match changed {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn refusal(patch: &Patch) -> Vec<u8> {
    let script = patch.script.as_deref().unwrap_or("all scripts");
    let words = format!("the patch of {script} does not fit it");
    format!("return redis.error_reply('ERR {}')", words.replace('\'', "")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: &str = "#!lua flags=allow-oom\n-- claim\nreturn 1 + 1";

    fn patch(script: &str, from: &str) -> [Patch; 1] {
        [Patch::new(script, from, "2")]
    }

    #[test]
    fn a_patch_changes_the_script_that_it_names() {
        let patches = patch("claim", "1 + 1");

        let changed = patched(&patches, CLAIM.as_bytes());

        assert_eq!(*changed, *CLAIM.replace("1 + 1", "2").as_bytes());
        assert!(patches[0].fitted().get());
    }

    #[test]
    fn a_patch_spares_other_scripts() {
        let patches = patch("aim", "1 + 1");

        assert_eq!(*patched(&patches, CLAIM.as_bytes()), *CLAIM.as_bytes());
        assert!(!patches[0].fitted().get());
    }

    #[test]
    fn a_patch_of_what_scripts_share_changes_them_all() {
        let patches = [Patch::everywhere("1 + 1", "2")];

        for script in [CLAIM, "-- other\nreturn {1 + 1}"] {
            let changed = patched(&patches, script.as_bytes());
            assert_eq!(*changed, *script.replace("1 + 1", "2").as_bytes());
        }
        assert_eq!(*patched(&patches, b"return 3"), *b"return 3");
    }

    #[test]
    fn a_patch_that_fits_nowhere_or_twice_makes_no_healthy_script() {
        for from in ["3", "1"] {
            let patches = patch("claim", from);

            let refused = patched(&patches, CLAIM.as_bytes());

            assert!(refused.starts_with(b"return redis.error_reply("), "{refused:?}");
            assert!(!patches[0].fitted().get());
        }
    }
}
