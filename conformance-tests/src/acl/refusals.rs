//! Finds calls that a server should refuse to a user but allows. `ACL DRYRUN` tells
//! whether the server would allow a call, without running it.

use std::{io, num::NonZeroU32, time::Duration};

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, NewJob, Queue, QueueName, Settlement,
    WorkerId,
};

use super::{
    commands::{Commands, Description, LIST},
    restricted::Restricted,
    user::User,
};
use crate::{
    Subject,
    harness::room::strings,
    proxy::{Upstream, is_error},
    server::Server,
};

/// The names for the checks: the user's queue, a key of that queue, and keys of other
/// queues.
const QUEUE: &str = "mine";
const OWN_KEY: &str = "{mine}:key";
const FOREIGN_KEYS: [&str; 4] = ["other", "mine2", "{other}:key", "{mine2}:key"];

/// Returns the commands that the server lets the user run although the user's rules do
/// not name them. Commands that need no user (`AUTH`, `HELLO`) are left out, because no
/// rule can forbid them.
///
/// # Panics
/// When the server does not answer.
pub fn allowed_beside(user: &User) -> Vec<String> {
    on_a_server(user, async |server| {
        let named = user.commands();
        let mut allowed = Vec::new();
        for name in server.commands.that_run().filter(|name| !named.contains(*name)) {
            let description = server.description(name).await?;
            let is_refused = async |call: &[String]| {
                Ok::<_, io::Error>(server.answer_to(call).await?.contains("to run the"))
            };
            if !description.needs_no_user
                && !is_refused(&description.shortest(name)).await?
            {
                allowed.push(name.to_owned());
            }
        }
        Ok(allowed)
    })
}

/// Returns the calls by which the user's commands could reach a key of another queue.
///
/// # Panics
/// When the server does not answer.
pub fn foreign_keys_reached(user: &User) -> Vec<String> {
    on_a_server(user, async |server| {
        let mut reached = Vec::new();
        for name in &user.commands() {
            let description = server.description(name).await?;
            for foreign in FOREIGN_KEYS {
                for call in description.with_key(name, OWN_KEY, foreign) {
                    if !server.answer_to(&call).await?.contains("to access") {
                        reached.push(call.join(" "));
                    }
                }
            }
        }
        Ok(reached)
    })
}

/// Returns those of the user's commands that the server classifies as dangerous. The
/// names are in the form that a README uses: `CLIENT UNBLOCK` for `client|unblock`.
///
/// # Panics
/// When the server does not answer.
pub(super) fn dangerous(user: &User) -> Vec<String> {
    on_a_server(user, async |server| {
        let answer = server.ask(&["ACL", "CAT", "dangerous"]).await?;
        let named = user.commands();
        let names =
            strings(&answer).into_iter().filter_map(|it| String::from_utf8(it).ok());
        let dangerous = names.filter(|name| named.contains(name));
        Ok(dangerous.map(|name| name.replace('|', " ").to_uppercase()).collect())
    })
}

/// Returns the error that the user of one queue gets when it pushes to another queue.
///
/// # Panics
/// When the push succeeds, or when the server does not accept the user.
pub fn trespass<S: Subject + Default>(user: &User) -> Error {
    let runtime = tokio::runtime::Runtime::new().expect("the system gives a runtime");
    let server = Server::start();
    let restricted = Restricted::new(S::default(), user.clone());
    let other = QueueName::new("other").expect("a valid name");
    runtime.block_on(async {
        let introduced = restricted.introduce(&server.url(), &mine()).await;
        let endpoint = introduced.expect("the server takes the user");
        match restricted.open(&endpoint, &other).await {
            Ok(queue) => {
                let pushed = queue.push(&[NewJob::new("x")], None).await;
                pushed.expect_err("the push is refused")
            }
            Err(error) => error,
        }
    })
}

/// Returns the errors that do not say that a right is missing, of calls that a user without
/// one of its commands makes. Scripts run most of the commands, so the refusal comes from
/// within a script.
///
/// # Panics
/// When the server does not accept a user, or no call fails.
pub fn untold<S: Subject + Default>(user: &User) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().expect("the system gives a runtime");
    let server = Server::start();
    let (mut untold, mut failures) = (Vec::new(), 0);
    for command in user.commands() {
        let restricted =
            Restricted::new(S::default(), user.without(&format!("+{command}")));
        let errors = runtime.block_on(async {
            let queue = QueueName::new(command.as_str()).expect("a valid name");
            let introduced = restricted.introduce(&server.url(), &queue).await;
            let endpoint = introduced.expect("the server takes the user");
            match restricted.open(&endpoint, &queue).await {
                Ok(queue) => errors_of_a_job(&*queue).await,
                Err(error) => vec![error],
            }
        });
        failures += errors.len();
        let others = errors.iter().filter(|error| !error.needs_help());
        untold
            .extend(others.map(|error| format!("{command}: {}", error.full_message())));
    }
    assert_ne!(failures, 0, "a call without a right fails");
    untold
}

/// Returns the errors of the calls that push a job, run it and end it.
async fn errors_of_a_job(queue: &dyn Queue) -> Vec<Error> {
    let worker = WorkerId::new("w").expect("a valid name");
    let ask = ClaimRequest::new(worker, Duration::from_secs(60));
    let mut errors = Vec::new();
    let pushed = queue.push(&[NewJob::new("x")], None).await;
    errors.extend(pushed.err());
    match queue.claim(&ask).await {
        Ok(claimed) => {
            let done = |it: Delivery| Settlement::new(it.receipt, Disposition::Done);
            let done: Vec<_> = claimed.into_iter().map(done).collect();
            errors.extend(queue.settle(&done).await.err());
        }
        Err(error) => errors.push(error),
    }
    errors.extend(queue.recover(NonZeroU32::MIN).await.err());
    errors
}

fn mine() -> QueueName {
    QueueName::new(QUEUE).expect("a valid name")
}

fn on_a_server(
    user: &User,
    ask: impl AsyncFnOnce(&mut Asked) -> io::Result<Vec<String>>,
) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().expect("the system gives a runtime");
    let server = Server::start();
    let asked = runtime.block_on(async {
        let mut asked = Asked::about(user, &server).await?;
        ask(&mut asked).await
    });
    asked.expect("the server answers")
}

/// A connection to a server on which the user exists. It asks the server which calls
/// the user may make.
struct Asked {
    server: tokio::sync::Mutex<Upstream>,
    commands: Commands,
}

impl Asked {
    /// The name under which the user exists on the server that is asked.
    const NAME: &str = "asked-about";

    async fn about(user: &User, server: &Server) -> io::Result<Self> {
        let mut server = Upstream::open(&server.address()).await?;
        let made = server.ask(&user.command(Self::NAME, &mine())).await?;
        if is_error(&made) {
            return Err(io::Error::other(String::from_utf8_lossy(&made).into_owned()));
        }
        let commands = Commands::listed(&server.ask(&LIST).await?);
        Ok(Self { server: tokio::sync::Mutex::new(server), commands })
    }

    async fn description(&self, name: &str) -> io::Result<Description> {
        Description::read(&self.ask(&["COMMAND", "INFO", name]).await?)
    }

    async fn ask<W: AsRef<[u8]>>(&self, words: &[W]) -> io::Result<Bytes> {
        self.server.lock().await.ask(words).await
    }

    /// Asks the server whether the user may make that call. Returns `OK` or the text of
    /// the refusal.
    async fn answer_to(&self, call: &[String]) -> io::Result<String> {
        let ask = ["ACL", "DRYRUN", Self::NAME].map(str::to_owned);
        let ask: Vec<_> = ask.iter().chain(call).collect();
        let answer = self.ask(&ask).await?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if is_error(answer.as_bytes()) {
            return Err(io::Error::other(format!("{}: {answer}", call.join(" "))));
        }
        Ok(answer)
    }
}
