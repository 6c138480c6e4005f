//! Hides parts of jobs from the visitors of the page.

use std::str::FromStr;

use relq_core::operator::{JobView, StateDetail};
use serde_json::Value;

/// The text that is shown in place of a hidden value.
const HIDDEN: &str = "[redacted]";

/// The largest payload that is read as JSON to hide parts of it, in bytes.
const MAX_JSON: usize = 1024 * 1024;

/// The headers that are hidden by default: they carry credentials.
const CREDENTIALS: [&str; 5] =
    ["authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"];

/// Which parts of jobs the page hides. It hides them wherever it would show them, and a
/// search does not find them.
///
/// | rule | hides |
/// |---|---|
/// | `header:NAME` | the value of this header, in small or capital letters |
/// | `/a/b` | what a JSON pointer names in payloads, results, progress and metadata; `*` as a step names all members or elements |
/// | `payload` | payloads, results, progress and metadata of batches |
/// | `errors` | the errors of jobs and the reasons why they are dead |
///
/// With a pointer, a payload that is not JSON, or larger than 1 MiB, is hidden whole: the
/// rule cannot be applied to it. The rest of the JSON is written anew: with its members
/// sorted, and with large numbers rounded. With a rule for a header, as by default, the
/// bytes of an entry that cannot be read are hidden whole, because its headers may be in
/// them.
///
/// ```
/// use relq_web::Redaction;
///
/// let rules = ["header:x-session", "/user/email", "/cards/*/number"];
/// let redaction = Redaction::default().rules(rules)?;
/// # Ok::<(), relq_web::InvalidRule>(())
/// ```
#[derive(Debug, Clone)]
pub struct Redaction {
    headers: Vec<String>,
    pointers: Vec<Pointer>,
    hides_payloads: bool,
    hides_errors: bool,
}

impl Default for Redaction {
    /// Hides the headers that carry credentials: `authorization`, `cookie`,
    /// `proxy-authorization`, `set-cookie` and `x-api-key`.
    fn default() -> Self {
        Self { headers: CREDENTIALS.map(str::to_owned).into(), ..Self::none() }
    }
}

/// Why a rule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule {0:?} is not header:NAME, /a/json/pointer, payload or errors")]
pub struct InvalidRule(String);

impl Redaction {
    /// Hides nothing.
    pub fn none() -> Self {
        Self {
            headers: Vec::new(),
            pointers: Vec::new(),
            hides_payloads: false,
            hides_errors: false,
        }
    }

    /// Adds rules.
    ///
    /// # Errors
    /// [`InvalidRule`] for the first rule that cannot be read.
    pub fn rules<R: AsRef<str>>(
        mut self,
        rules: impl IntoIterator<Item = R>,
    ) -> Result<Self, InvalidRule> {
        for rule in rules {
            let rule = rule.as_ref();
            match rule.split_once(':') {
                Some(("header", name)) if !name.is_empty() => {
                    self.headers.push(name.to_lowercase());
                }
                _ if rule == "payload" => self.hides_payloads = true,
                _ if rule == "errors" => self.hides_errors = true,
                _ => self.pointers.push(rule.parse()?),
            }
        }
        Ok(self)
    }

    /// Whether the errors of jobs are hidden.
    pub(crate) fn hides_errors(&self) -> bool {
        self.hides_errors
    }

    /// Hides the parts of a job.
    pub(crate) fn apply(&self, mut job: JobView) -> ShownJob {
        if self.hides_errors {
            job.last_error = job.last_error.map(|_| HIDDEN.to_owned());
            job.unreadable = job.unreadable.map(|_| HIDDEN.to_owned());
            if let StateDetail::Dead { reason, .. } = &mut job.detail {
                HIDDEN.clone_into(reason);
            }
        }
        // A copy of the headers of each listed job would take long if they are large.
        let is_hidden = |name: &str| self.headers.contains(&name.to_lowercase());
        if job.headers.iter().any(|(name, _)| is_hidden(name)) {
            let headers = job.headers.iter().map(|(name, value)| {
                let shown = if is_hidden(name) { HIDDEN } else { value };
                (name.to_owned(), shown.to_owned())
            });
            job.headers = headers.collect();
        }
        let payload = match &job.unreadable {
            Some(_) if !self.headers.is_empty() => {
                Err("hidden: it cannot be read, so its headers cannot be hidden")
            }
            _ => self.bytes(&job.payload),
        };
        let hidden = match payload {
            Ok(shown) => {
                if let Some(shown) = shown {
                    job.payload = shown.into();
                }
                None
            }
            Err(why) => {
                job.payload = relq_core::Bytes::new();
                Some(why)
            }
        };
        ShownJob { job, hidden }
    }

    /// Hides parts of a payload, a result or metadata. Returns `None` if nothing is to be
    /// hidden.
    ///
    /// # Errors
    /// The reason why nothing of it may be shown.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<Option<String>, &'static str> {
        if self.hides_payloads {
            return Err("hidden by a rule");
        }
        if self.pointers.is_empty() || bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() > MAX_JSON {
            return Err("hidden: it is too large to hide parts of it");
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else {
            return Err("hidden: it is not JSON, so no part of it can be hidden");
        };
        for pointer in &self.pointers {
            pointer.hide(&mut value);
        }
        Ok(Some(value.to_string()))
    }
}

/// A job without what is hidden of it.
#[derive(Debug, Clone)]
pub(crate) struct ShownJob {
    pub(crate) job: JobView,
    /// Why the payload is hidden whole. It is empty then.
    pub(crate) hidden: Option<&'static str>,
}

/// A JSON pointer (RFC 6901) whose steps may be `*`.
#[derive(Debug, Clone)]
struct Pointer(Vec<String>);

impl FromStr for Pointer {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let steps =
            text.strip_prefix('/').ok_or_else(|| InvalidRule(text.to_owned()))?;
        let step = |step: &str| step.replace("~1", "/").replace("~0", "~");
        Ok(Self(steps.split('/').map(step).collect()))
    }
}

impl Pointer {
    fn hide(&self, value: &mut Value) {
        hide_at(value, &self.0);
    }
}

fn hide_at(value: &mut Value, steps: &[String]) {
    let Some((step, rest)) = steps.split_first() else {
        *value = Value::from(HIDDEN);
        return;
    };
    let fits = |name: &str| step == "*" || step == name;
    match value {
        Value::Object(members) => {
            for (_, member) in members.iter_mut().filter(|(name, _)| fits(name)) {
                hide_at(member, rest);
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter_mut().enumerate() {
                if fits(&at.to_string()) {
                    hide_at(element, rest);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rules: &[&str], payload: &str) -> Result<String, &'static str> {
        let redaction = Redaction::none().rules(rules).unwrap();
        let shown = redaction.bytes(payload.as_bytes())?;
        Ok(shown.unwrap_or_else(|| payload.to_owned()))
    }

    #[test]
    fn pointers_hide_parts_of_json() {
        let payload = r#"{"a":{"b":1,"c":2},"d/e":[{"f":1},{"f":2}]}"#;
        for (rule, expected) in [
            ("/a/b", r#"{"a":{"b":"[redacted]","c":2},"d/e":[{"f":1},{"f":2}]}"#),
            (
                "/d~1e/*/f",
                r#"{"a":{"b":1,"c":2},"d/e":[{"f":"[redacted]"},{"f":"[redacted]"}]}"#,
            ),
            ("/d~1e/1", r#"{"a":{"b":1,"c":2},"d/e":[{"f":1},"[redacted]"]}"#),
            ("/nothing/here", payload),
        ] {
            assert_eq!(shown(&[rule], payload).as_deref(), Ok(expected), "{rule}");
        }
    }

    /// A member whose name looks like an escape is named by an escape of its own.
    #[test]
    fn a_pointer_undoes_each_escape_once() {
        let payload = r#"{"/":1,"~":2,"~0":3,"~1":4}"#;
        for (rule, expected) in [
            ("/~1", r#"{"/":"[redacted]","~":2,"~0":3,"~1":4}"#),
            ("/~0", r#"{"/":1,"~":"[redacted]","~0":3,"~1":4}"#),
            ("/~00", r#"{"/":1,"~":2,"~0":"[redacted]","~1":4}"#),
            ("/~01", r#"{"/":1,"~":2,"~0":3,"~1":"[redacted]"}"#),
        ] {
            assert_eq!(shown(&[rule], payload).as_deref(), Ok(expected), "{rule}");
        }
    }

    #[test]
    fn what_is_not_json_is_hidden_if_there_are_pointers() {
        assert!(shown(&["/a"], "a=secret").is_err());
        assert!(shown(&["payload"], "{}").is_err());
        assert_eq!(shown(&["errors"], "a=open").as_deref(), Ok("a=open"));
        let large = format!("\"{}\"", "x".repeat(MAX_JSON));
        assert!(shown(&["/a"], &large).is_err());
    }

    #[test]
    fn headers_and_errors_are_hidden() {
        let since = relq_core::environment::Timestamp::from_unix_ms(0);
        let reason = "it failed with a secret".to_owned();
        let mut job = JobView::new(None, "", StateDetail::Dead { reason, since });
        job.headers = [("Cookie", "a"), ("kind", "mail")].into_iter().collect();
        job.last_error = Some("a secret".to_owned());

        let hidden = Redaction::default().rules(["errors"]).unwrap().apply(job).job;

        assert_eq!(hidden.headers.get("Cookie"), Some(HIDDEN));
        assert_eq!(hidden.headers.get("kind"), Some("mail"));
        assert!(!format!("{hidden:?}").contains("secret"));
    }

    /// The bytes of an entry that cannot be read may have all of its headers.
    #[test]
    fn an_unreadable_entry_is_hidden_if_headers_are() {
        let mut job = JobView::new(None, "authorization: secret", StateDetail::Ready);
        job.unreadable = Some("it cannot be read".to_owned());
        let shown = |redaction: Redaction| redaction.apply(job.clone());

        let ShownJob { job: hidden, hidden: why } = shown(Redaction::default());
        let open = shown(Redaction::none());

        assert!(hidden.payload.is_empty() && why.is_some(), "{hidden:?}");
        assert_eq!((open.job.payload, open.hidden), (job.payload.clone(), None));
    }

    #[test]
    fn a_rule_of_another_form_is_refused() {
        for rule in ["", "header:", "header", "a/b", "payloads"] {
            Redaction::none().rules([rule]).unwrap_err();
        }
    }
}
