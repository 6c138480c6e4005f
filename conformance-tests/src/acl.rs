//! A backend with the rights that its README asks for, and no others.
//!
//! A README names a user in one line, as in a server's ACL file: `user NAME RULE…`. In
//! its patterns of keys and channels `Q` stands for the name of the queue. This is a
//! whole test that the line is enough:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use conformance_tests::{Subject, async_trait};
//! # use queue_core::{Environment, Error, Queue, QueueName};
//! # #[derive(Default)]
//! # struct Mine;
//! # #[async_trait]
//! # impl Subject for Mine {
//! #     async fn connect(
//! #         &self,
//! #         _: &str,
//! #         _: &QueueName,
//! #         _: &Environment,
//! #     ) -> Result<Arc<dyn Queue>, Error> { panic!("any backend's own") }
//! # }
//! use conformance_tests::acl::{User, denied};
//!
//! let user = User::in_readme("# mine\n\nuser mine on >secret ~Q +@all").unwrap();
//! assert_eq!(denied::<Mine>(&user, |_| true), [""; 0]);
//! ```

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use queue_core::{At, Environment, Error, NewJob, Operation, Queue, QueueName};

use crate::{
    Case, Profile, Room, Scope, Subject, cases,
    fault::{Address, Gate, Upstream, is_error},
    parallel::in_parallel,
    server::Server,
    verdict,
};

/// A user of a Redis server, as an ACL line describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    rules: Vec<String>,
}

impl User {
    /// The one that a README names, if it names one.
    pub fn in_readme(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let line =
            lines.find(|line| line.starts_with("user ") && line.contains(" on "));
        let rules = line?.split_whitespace().skip(2).map(str::to_owned).collect();
        Some(Self { rules })
    }

    /// Its rules, one by one.
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// The same user without that rule.
    #[must_use]
    pub fn without(&self, rule: &str) -> Self {
        let mut rules = self.rules.clone();
        rules.retain(|known| known != rule);
        Self { rules }
    }

    fn password(&self) -> &str {
        self.rules.iter().find_map(|rule| rule.strip_prefix('>')).unwrap_or_default()
    }

    /// What makes it the user of that queue.
    fn command(&self, name: &str, queue: &QueueName) -> Vec<String> {
        let begin = ["ACL", "SETUSER", name, "reset"].map(str::to_owned);
        let queue = literal(queue.as_str());
        let is_pattern = |rule: &str| rule.starts_with(['~', '%', '&']);
        let rules = self.rules.iter().map(|rule| {
            if is_pattern(rule) { rule.replace('Q', &queue) } else { rule.clone() }
        });
        begin.into_iter().chain(rules).collect()
    }
}

/// A pattern that matches this text and no other, but for spaces: a rule has none, and
/// any byte stands for one.
fn literal(text: &str) -> String {
    let mut pattern = String::new();
    for symbol in text.chars() {
        match symbol {
            ' ' => pattern.push('?'),
            '*' | '?' | '[' | ']' | '\\' => pattern.extend(['\\', symbol]),
            _ => pattern.push(symbol),
        }
    }
    pattern
}

/// A backend that connects as a user with these rights: one of each queue, so that no
/// queue has the rights to another.
pub struct Restricted<S> {
    subject: S,
    user: User,
    queues: Mutex<Vec<QueueName>>,
}

impl<S> fmt::Debug for Restricted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Restricted({:?})", self.user)
    }
}

impl<S: Subject> Restricted<S> {
    /// The backend with the rights of `user`.
    pub fn new(subject: S, user: User) -> Self {
        Self { subject, user, queues: Mutex::default() }
    }

    /// The user's name for that queue.
    fn name_for(&self, queue: &QueueName) -> String {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let number = queues.iter().position(|known| known == queue);
        let number = number.unwrap_or_else(|| {
            queues.push(queue.clone());
            queues.len() - 1
        });
        format!("restricted-{number}")
    }

    /// Makes the server know the user, and answers where it connects to.
    async fn introduce(&self, endpoint: &str, queue: &QueueName) -> io::Result<String> {
        let name = self.name_for(queue);
        let mut server = Upstream::open(&address(endpoint)?).await?;
        let answer = server.ask(&self.user.command(&name, queue)).await?;
        if is_error(&answer) {
            return Err(io::Error::other(
                String::from_utf8_lossy(&answer).into_owned(),
            ));
        }
        Ok(as_user(endpoint, &name, self.user.password()))
    }
}

#[async_trait]
impl<S: Subject> Subject for Restricted<S> {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let introduced = self.introduce(endpoint, queue).await;
        let endpoint = introduced.map_err(|error| Error::Invalid {
            at: At { backend: "restricted", operation: Operation::Connect },
            reason: format!("the user cannot be made: {error}"),
        })?;
        self.subject.connect(&endpoint, queue, environment).await
    }

    async fn prepare(&self, gate: &Gate) -> io::Result<()> {
        self.subject.prepare(gate).await
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        self.subject.plain_push(queue, payload)
    }

    fn plain_pushes_wake(&self) -> bool {
        self.subject.plain_pushes_wake()
    }

    fn room(&self) -> Room {
        self.subject.room()
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        self.subject.owns(queue, key)
    }

    fn scripts(&self) -> Vec<String> {
        self.subject.scripts()
    }
}

/// Cases in which one queue pushes to another, which the user of one queue may not.
const ACROSS_QUEUES: [&str; 2] = [
    "batches::a_completion_goes_to_another_queue",
    "batches::whatever_completes_tells_another_queue",
];

/// What goes wrong when the cases that are chosen are judged with the rights of that
/// user: each case that fails, with its words. Those that go from one queue to another
/// are left out: they need the rights to both.
pub fn denied<S: Subject + Default>(
    user: &User,
    is_chosen: impl Fn(&Case) -> bool,
) -> Vec<String> {
    let chosen: Vec<_> = cases()
        .iter()
        .filter(|case| case.scope != Scope::Embedded && is_chosen(case))
        .filter(|case| !ACROSS_QUEUES.contains(&case.id))
        .collect();
    let judged = in_parallel(&chosen, |case| {
        let subject = Restricted::new(S::default(), user.clone());
        let judged = verdict(subject, Profile::Redis, case.id);
        judged.err().map(|words| format!("{}: {words}", case.id))
    });
    judged.into_iter().flatten().collect()
}

/// Cases by which each right of a user's is told to be needed.
const TELLING: [&str; 3] = [
    "neighbours::plain_pushes_are_jobs",
    "no_loss::a_leased_job_is_kept",
    "waiting::a_push_wakes",
];

/// The rights without which nothing fails. Those of `beside` are not asked for: what
/// they are for is no case's matter.
pub fn needless<S: Subject + Default>(user: &User, beside: &[&str]) -> Vec<String> {
    let rights = user.rules().iter();
    let rights = rights.filter(|rule| rule.starts_with(['~', '&', '%', '+']));
    let rights = rights.filter(|right| !beside.contains(&right.as_str()));
    let is_telling = |case: &Case| TELLING.contains(&case.id);
    let is_needless =
        |right: &&String| denied::<S>(&user.without(right), is_telling).is_empty();
    rights.filter(is_needless).cloned().collect()
}

/// What the user of one queue is answered when it pushes to another.
///
/// # Panics
/// When it is let in, or when the server does not take the user.
pub fn trespass<S: Subject + Default>(user: &User) -> Error {
    let runtime = tokio::runtime::Runtime::new().expect("the system gives a runtime");
    let server = Server::start();
    let restricted = Restricted::new(S::default(), user.clone());
    let [mine, other] =
        ["mine", "other"].map(|name| QueueName::new(name).expect("a valid name"));
    runtime.block_on(async {
        let introduced = restricted.introduce(&server.url(), &mine).await;
        let endpoint = introduced.expect("the server takes the user");
        let environment = Environment::default();
        let opened = restricted.subject.connect(&endpoint, &other, &environment).await;
        match opened {
            Ok(queue) => {
                let pushed = queue.push(&[NewJob::new("x")], None).await;
                pushed.expect_err("the queue is another's")
            }
            Err(error) => error,
        }
    })
}

/// Makes the tests that the user in a package's README may do all that its backend
/// needs, and no more. Rights whose need no case can tell are named behind `beside`.
#[macro_export]
macro_rules! acl {
    ($subject:ty $(, beside $beside:literal)*) => {
        fn user() -> $crate::acl::User {
            let readme = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
            $crate::acl::User::in_readme(readme).expect("the README names a user")
        }

        /// Every case of the suite passes with the rights of that user.
        #[test]
        fn the_readmes_user_may_do_all_that_is_needed() {
            assert_eq!($crate::acl::denied::<$subject>(&user(), |_| true), [""; 0]);
        }

        /// Each of the user's rights is needed: without it, something fails.
        #[test]
        fn the_readmes_user_may_do_no_more() {
            let needless = $crate::acl::needless::<$subject>(&user(), &[$($beside),*]);
            assert_eq!(needless, [""; 0], "nothing fails without these");
        }

        /// The rights are those to one queue.
        #[test]
        fn the_readmes_user_is_kept_out_of_other_queues() {
            let refused = $crate::acl::trespass::<$subject>(&user());
            let is_told = matches!(refused, queue_core::Error::Denied { .. });
            assert!(is_told, "{}", refused.full_message());
        }
    };
}

fn address(endpoint: &str) -> io::Result<Address> {
    if let Some(path) = endpoint.strip_prefix("unix://") {
        let path = path.split('?').next().unwrap_or(path);
        return Ok(Address::Unix(PathBuf::from(path)));
    }
    let address = endpoint.trim_start_matches("redis://").split('/').next();
    let address = address.unwrap_or_default().parse();
    Ok(Address::Tcp(address.map_err(io::Error::other)?))
}

fn as_user(endpoint: &str, name: &str, password: &str) -> String {
    if let Some(address) = endpoint.strip_prefix("redis://") {
        return format!("redis://{name}:{password}@{address}");
    }
    let sign = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{sign}user={name}&pass={password}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str =
        "Its user:\n```text\nuser relq on >secret ~Q ~{Q}:* +@read\n```\n";

    #[test]
    fn a_readme_names_its_user() {
        let user = User::in_readme(README).unwrap();

        assert_eq!(user.rules(), ["on", ">secret", "~Q", "~{Q}:*", "+@read"]);
        assert_eq!(user.password(), "secret");
        assert_eq!(user.without("~Q").rules().len(), 4);
        assert_eq!(User::in_readme("The user comes on Monday."), None);
    }

    #[test]
    fn a_queue_gets_its_own_keys_and_no_others() {
        let user = User::in_readme(README).unwrap();
        let queue = QueueName::new("a*").unwrap();

        let command = user.command("name", &queue);

        let rules = ["on", ">secret", "~a\\*", "~{a\\*}:*", "+@read"];
        assert_eq!(command[..4], ["ACL", "SETUSER", "name", "reset"]);
        assert_eq!(command[4..], rules);
    }

    #[test]
    fn the_user_is_named_in_the_endpoint() {
        assert_eq!(as_user("unix:///x", "a", "b"), "unix:///x?user=a&pass=b");
        assert_eq!(as_user("unix:///x?db=3", "a", "b"), "unix:///x?db=3&user=a&pass=b");
        assert_eq!(as_user("redis://h:1/3", "a", "b"), "redis://a:b@h:1/3");
    }
}
