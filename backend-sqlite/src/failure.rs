//! Turns SQLite's errors into errors that a caller can act on (R21).

use std::{error, fmt, sync::Arc};

use relq_core::{
    Error, JobId,
    error::{BoxError, ErrorContext, Operation},
    followers::CannotFollow,
};
use rusqlite::{ErrorCode, ffi};

/// The backend's name in its URL and in error messages.
pub(crate) const BACKEND: &str = "sqlite";

/// Why a call failed. It is `Clone`, because one failed commit fails many calls.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    kind: Kind,
    cause: Cause,
    /// What kind of failure ended a call that was done in part.
    part: Option<Kind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Invalid,
    CannotFollow { leader: JobId, why: CannotFollow },
    Unavailable,
    Interrupted,
    Full,
    Denied,
    Unusable,
}

/// The parts of an error message: its text, and SQLite's own error if there is one.
#[derive(Debug, Clone)]
struct Cause {
    words: Arc<str>,
    source: Option<Arc<SqliteMessage>>,
}

impl Failure {
    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::of(Kind::Invalid, words)
    }

    /// Refuses a push of a job that cannot follow the job that it names (R30).
    pub(crate) fn cannot_follow(leader: &JobId, why: CannotFollow) -> Self {
        let kind = Kind::CannotFollow { leader: leader.clone(), why };
        Self::of(kind, why.to_string())
    }

    pub(crate) fn unavailable(words: impl Into<String>) -> Self {
        Self::of(Kind::Unavailable, words)
    }

    pub(crate) fn interrupted(words: impl Into<String>) -> Self {
        Self::of(Kind::Interrupted, words)
    }

    pub(crate) fn denied(words: impl Into<String>) -> Self {
        Self::of(Kind::Denied, words)
    }

    pub(crate) fn unusable(words: impl Into<String>) -> Self {
        Self::of(Kind::Unusable, words)
    }

    /// Classifies the failure of a COMMIT. After an I/O error it is unknown whether the
    /// transaction was committed. After any other error it was not.
    pub(crate) fn of_commit(error: rusqlite::Error) -> Self {
        let is_lost = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
        let failure = Self::from(error);
        if is_lost { Self { kind: Kind::Interrupted, ..failure } } else { failure }
    }

    /// Turns the failure of one page into the failure of a call that was done in part.
    /// Keeps the failure of the page as the cause, so that a caller can see whether it heals.
    pub(crate) fn in_part(self) -> Self {
        Self { kind: Kind::Interrupted, part: self.part.or(Some(self.kind)), ..self }
    }

    /// Whether the call may have taken effect although it failed.
    pub(crate) fn is_unknown(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// Turns the failure into the error of `operation`.
    pub(crate) fn at(self, operation: Operation) -> Error {
        let at = ErrorContext { backend: BACKEND, operation };
        let source: BoxError = match self.part {
            Some(kind) if kind != Kind::Interrupted => {
                Box::new(Self { kind, part: None, cause: self.cause }.at(operation))
            }
            _ => Box::new(self.cause),
        };
        match self.kind {
            Kind::Invalid => Error::Invalid { at, reason: source.to_string() },
            Kind::CannotFollow { leader, why } => {
                Error::CannotFollow { at, leader, why }
            }
            Kind::Unavailable => Error::Unavailable { at, source },
            Kind::Interrupted => Error::Interrupted { at, source },
            Kind::Full => Error::Full { at, source },
            Kind::Denied => Error::Denied { at, source },
            Kind::Unusable => Error::Unusable { at, source },
        }
    }

    fn of(kind: Kind, words: impl Into<String>) -> Self {
        let words: String = words.into();
        Self { kind, cause: Cause { words: words.into(), source: None }, part: None }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let (kind, words) = classify(&error);
        let cause =
            Cause { words: words.into(), source: Some(Arc::new(SqliteMessage(error))) };
        Self { kind, cause, part: None }
    }
}

/// Returns the kind of an SQLite error, and advice for the user. The advice is added to
/// the error message.
fn classify(error: &rusqlite::Error) -> (Kind, &'static str) {
    match error.sqlite_error() {
        Some(found) => classify_code(found),
        None => {
            (Kind::Unusable, "the file has data that relq never writes; run an audit")
        }
    }
}

fn classify_code(found: &ffi::Error) -> (Kind, &'static str) {
    use ErrorCode as Code;
    match found.code {
        Code::DatabaseBusy | Code::DatabaseLocked => (Kind::Unavailable, LOCKED),
        Code::FileLockingProtocolFailed => (Kind::Unavailable, LOCKED),
        Code::DiskFull => (Kind::Full, FULL),
        Code::SystemIoFailure if is_about_space(found) => (Kind::Full, FULL),
        Code::SystemIoFailure => {
            (Kind::Unavailable, "the disk failed to read or write; check it")
        }
        Code::OutOfMemory => (Kind::Unavailable, "this process is out of memory"),
        Code::ReadOnly => (Kind::Denied, READ_ONLY),
        Code::PermissionDenied | Code::AuthorizationForStatementDenied => {
            (Kind::Denied, "allow this user to read and write the file")
        }
        Code::CannotOpen => (Kind::Denied, CANNOT_OPEN),
        Code::DatabaseCorrupt => (Kind::Unusable, DAMAGED),
        Code::NotADatabase => (Kind::Unusable, "the file is not a SQLite database"),
        Code::TooBig => (Kind::Invalid, "it is larger than SQLite can store"),
        _ => (Kind::Unusable, "SQLite refused a statement of relq's"),
    }
}

const FULL: &str = "the disk is full; free some space";
const LOCKED: &str =
    "another process holds the file's lock for too long; let it finish";
const READ_ONLY: &str =
    "the file or its folder is read-only; allow this user to write to both";
const CANNOT_OPEN: &str = "the file cannot be opened; check that its folder exists and \
    that this user may read and write both, and has file handles left";
const DAMAGED: &str = "the file is damaged; keep a copy and restore a backup, or try \
    the .recover command of the sqlite3 program";

/// Whether an I/O error means that the disk has no room for the `-shm` file.
fn is_about_space(error: &ffi::Error) -> bool {
    error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl error::Error for Cause {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|said| said as &(dyn error::Error + 'static))
    }
}

/// An SQLite error that is shown without its sources, because these repeat its message.
#[derive(Debug)]
struct SqliteMessage(rusqlite::Error);

impl fmt::Display for SqliteMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.sqlite_error() {
            Some(error) => write!(f, "{} (code {})", self.0, error.extended_code),
            None => self.0.fmt(f),
        }
    }
}

impl error::Error for SqliteMessage {}

#[cfg(test)]
mod tests {
    use relq_core::error::{Effect, RetryAdvice};

    use super::*;

    fn said(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("said".to_owned()))
    }

    fn push_failed(code: i32) -> Error {
        Failure::from(said(code)).at(Operation::Push)
    }

    /// R21: retryable errors are distinguished from permanent ones.
    #[test]
    fn errors_are_told_apart() {
        let cases = [
            (ffi::SQLITE_BUSY, RetryAdvice::Safe),
            (ffi::SQLITE_LOCKED, RetryAdvice::Safe),
            (ffi::SQLITE_PROTOCOL, RetryAdvice::Safe),
            (ffi::SQLITE_NOMEM, RetryAdvice::Safe),
            (ffi::SQLITE_FULL, RetryAdvice::Safe),
            (ffi::SQLITE_IOERR_SHMSIZE, RetryAdvice::Safe),
            (ffi::SQLITE_IOERR_READ, RetryAdvice::Safe),
            (ffi::SQLITE_READONLY, RetryAdvice::Never),
            (ffi::SQLITE_CANTOPEN, RetryAdvice::Never),
            (ffi::SQLITE_CORRUPT, RetryAdvice::Never),
            (ffi::SQLITE_NOTADB, RetryAdvice::Never),
            (ffi::SQLITE_PERM, RetryAdvice::Never),
            (ffi::SQLITE_AUTH, RetryAdvice::Never),
        ];

        for (code, advice) in cases {
            assert_eq!(push_failed(code).retry_advice(), advice, "{code}");
            assert_eq!(push_failed(code).effect(), Effect::No, "{code}");
        }
    }

    /// R21: only after an I/O error is it unknown whether a commit is in the log.
    #[test]
    fn a_commit_that_the_disk_failed_may_have_happened() {
        let commit = |code| Failure::of_commit(said(code)).at(Operation::Push);

        let unknown = commit(ffi::SQLITE_IOERR_FSYNC);
        assert_eq!(unknown.effect(), Effect::Maybe);
        assert_eq!(unknown.retry_advice(), RetryAdvice::MayRepeat);
        assert_eq!(commit(ffi::SQLITE_FULL).effect(), Effect::No);
        assert_eq!(commit(ffi::SQLITE_BUSY).effect(), Effect::No);
    }

    /// R21: an error that a retry does not repair says what to repair.
    #[test]
    fn a_lasting_error_says_what_to_do() {
        for (code, advice) in [
            (ffi::SQLITE_READONLY, READ_ONLY),
            (ffi::SQLITE_CANTOPEN, CANNOT_OPEN),
            (ffi::SQLITE_PERM, "allow this user to read and write the file"),
            (ffi::SQLITE_CORRUPT, DAMAGED),
            (ffi::SQLITE_NOTADB, "the file is not a SQLite database"),
            (ffi::SQLITE_TOOBIG, "it is larger than SQLite can store"),
        ] {
            let message = push_failed(code).full_message();
            assert!(message.contains(advice), "{code}: {message}");
        }
    }

    /// A message has advice for the user, and then SQLite's own message, once.
    #[test]
    fn a_message_says_what_to_do_and_what_sqlite_said() {
        assert_eq!(
            push_failed(ffi::SQLITE_FULL).full_message(),
            "sqlite push: the store is full: the disk is full; free some space: said \
             (code 13)",
        );
    }
}
