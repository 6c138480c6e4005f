//! The database thread: it owns a connection and receives calls over a channel, so that
//! no async thread ever waits for a disk or a lock.
//!
//! The thread ends, and closes its connection, once its handle is dropped and the calls
//! that were sent are done.

use std::{
    path::PathBuf,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use relq_core::QueueName;
use tokio::sync::oneshot;

use crate::call::{Call, Pending, background_call, request};
use crate::config::SqliteConfig;
use crate::connection;
use crate::failure::Failure;
use crate::group_commit::GroupCommit;
use crate::statements;
use crate::store_files::StoreFiles;
use crate::wake::Notifier;

/// The total weight at which a group of calls is full: so many jobs, or 4 MiB. Without
/// this limit the first callers of a group would wait too long for its commit, and other
/// processes for the file's lock (R21).
const GROUP_WEIGHT: usize = 4096;

/// The database that a thread works on: the file, or a database in memory, with its
/// configuration and the name of the queue.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The path of the file. `None` for a store in memory.
    pub(crate) file: Option<PathBuf>,
    /// The files that the first connection opened. A later connection must open the
    /// same ones. `None` until then, and for a store in memory.
    pub(crate) opened: Option<StoreFiles>,
    pub(crate) queue: QueueName,
    pub(crate) notifier: Notifier,
    pub(crate) config: SqliteConfig,
}

impl Site {
    /// Finds the file that a configuration names. This blocks on the file system, so it
    /// runs on the database thread.
    pub(crate) fn find(
        config: SqliteConfig,
        queue: QueueName,
    ) -> Result<Self, Failure> {
        let file = connection::resolve(&config.location)?;
        let notifier = match &file {
            Some(file) => Notifier::of(file, &queue),
            None => Notifier::alone(),
        };
        Ok(Self { file, opened: None, queue, notifier, config })
    }

    /// Fails if a file of the store was deleted or replaced after it was opened. Data that
    /// is written to such a file is lost, so the call must not return Ok (R1). The thread
    /// does not switch to the new file, because SQLite might write the log of the old
    /// file into it.
    pub(crate) fn check_files(&self) -> Result<(), Failure> {
        self.opened.as_ref().map_or(Ok(()), StoreFiles::check)
    }
}

/// A handle that sends calls to a database thread.
#[derive(Debug)]
pub(crate) struct DbThread {
    inbox: Sender<Vec<Box<dyn Pending>>>,
}

impl DbThread {
    /// Starts a thread. On that thread, calls `find` to get the database's location,
    /// and then opens a connection to it.
    pub(crate) async fn start(
        find: impl FnOnce() -> Result<Site, Failure> + Send + 'static,
    ) -> Result<(Self, Site), Failure> {
        let (inbox, calls) = mpsc::channel();
        let (opened, answer) = oneshot::channel();
        thread::Builder::new()
            .name("relq-sqlite".to_owned())
            .spawn(move || match find().and_then(Keeper::open) {
                Ok((keeper, site)) => {
                    if opened.send(Ok(site)).is_ok() {
                        keeper.serve(&calls);
                    }
                }
                // Ignore a failed send: the caller may have stopped waiting.
                Err(failure) => drop(opened.send(Err(failure))),
            })
            .map_err(|error| {
                Failure::unavailable(format!("no thread can be started: {error}"))
            })?;
        let site = answer.await.unwrap_or_else(|_| Err(ended()))?;
        Ok((Self { inbox }, site))
    }

    /// Runs a call and waits for its result.
    pub(crate) async fn call<C: Call>(&self, call: C) -> Result<C::Answer, Failure> {
        let (pending, reply) = request(call);
        self.send(vec![pending])?;
        reply.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Runs two calls one after the other, in one group, and waits for both results.
    pub(crate) async fn call_both<A: Call, B: Call>(
        &self,
        first: A,
        second: B,
    ) -> (Result<A::Answer, Failure>, Result<B::Answer, Failure>) {
        let (first, first_reply) = request(first);
        let (second, second_reply) = request(second);
        if let Err(failure) = self.send(vec![first, second]) {
            return (Err(failure.clone()), Err(failure));
        }
        let first = first_reply.await.unwrap_or_else(|_| Err(ended()));
        let second = second_reply.await.unwrap_or_else(|_| Err(ended()));
        (first, second)
    }

    /// Runs a call whose result no caller waits for. If the thread has ended, the call is
    /// not run.
    pub(crate) fn call_in_background<C: Call>(&self, call: C) {
        drop(self.send(vec![background_call(call)]));
    }

    fn send(&self, calls: Vec<Box<dyn Pending>>) -> Result<(), Failure> {
        self.inbox.send(calls).map_err(|_| {
            Failure::unusable("the database thread has ended; open the queue again")
        })
    }
}

fn ended() -> Failure {
    Failure::interrupted("the database thread ended before it answered")
}

/// The state that only the database thread uses: its connection and its database.
struct Keeper {
    group_commit: GroupCommit,
    site: Site,
}

impl Keeper {
    fn open(mut site: Site) -> Result<(Self, Site), Failure> {
        site.check_files()?;
        let conn = connection::open(site.file.as_deref(), &site.config)?;
        let queue = statements::queue_key(&conn, &site.config.steps, &site.queue)?;
        // Check again: a file may have been replaced while the connection was opened.
        site.check_files()?;
        if let (Some(path), None) = (&site.file, &site.opened) {
            site.opened = Some(StoreFiles::of(path)?);
        }
        let environment = site.config.environment.clone();
        let (notifier, steps) = (site.notifier.clone(), site.config.steps.clone());
        let group_commit = GroupCommit { conn, queue, environment, notifier, steps };
        Ok((Self { group_commit, site: site.clone() }, site))
    }

    fn serve(&self, inbox: &Receiver<Vec<Box<dyn Pending>>>) {
        while let Ok(mut group_commit) = inbox.recv() {
            // Callers that have just received a result are about to send their next
            // call. The yield gives all of them time to join this group, not only the
            // first one. This raised the throughput by half.
            thread::yield_now();
            gather(&mut group_commit, inbox);
            if let Err(failure) = self.site.check_files() {
                for call in group_commit {
                    call.finish(Err(failure.clone()));
                }
                continue;
            }
            while !group_commit.is_empty() {
                group_commit = self.group_commit.serve(group_commit);
            }
        }
    }
}

/// Takes the calls that already wait in the channel, up to the weight of a group.
fn gather(
    group_commit: &mut Vec<Box<dyn Pending>>,
    inbox: &Receiver<Vec<Box<dyn Pending>>>,
) {
    let weight_of = |calls: &[Box<dyn Pending>]| {
        calls.iter().map(|call| call.weight()).sum::<usize>()
    };
    let mut weight = weight_of(group_commit);
    while weight < GROUP_WEIGHT {
        let Ok(more) = inbox.try_recv() else { return };
        weight += weight_of(&more);
        group_commit.extend(more);
    }
}
