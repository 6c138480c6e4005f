//! Repeats the calls of a queue in a cluster that a node refused because the queue
//! belongs to another node.

use std::io;

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, OptionFuture},
};
use redis::{Cmd, Value};
use relq_core::{Error, error::ErrorContext, error::Operation};
use tokio::time::timeout;

use super::{Conn, Failed, all_steps::has_shortfall, command};
use crate::{
    Call, error,
    link::Link,
    topology::{Address, Patience, Redirect},
};

/// The request of a call: a single command, or a call of a script.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    Cmd(&'a Cmd),
    Call(&'a Call<'a>),
}

impl<'a> Request<'a> {
    pub(super) fn cmd(self) -> &'a Cmd {
        match self {
            Self::Cmd(cmd) => cmd,
            Self::Call(call) => call.by_digest(),
        }
    }
}

impl Conn {
    /// Sends the request on the connection for `operation`.
    pub(super) async fn attempt(
        &self,
        operation: Operation,
        request: Request<'_>,
    ) -> Result<Value, Failed> {
        let link = self.link_for(operation).await.map_err(Failed::BeforeSend)?;
        self.attempt_on(link, operation, request).await
    }

    /// Sends the request on an open connection, behind a question for the server's time if
    /// that is due. The server replies to the question first.
    pub(super) async fn attempt_on(
        &self,
        link: Link,
        operation: Operation,
        request: Request<'_>,
    ) -> Result<Value, Failed> {
        let reading = OptionFuture::from(self.reading_time(&link, operation));
        let sending = self.send_request(link, request);
        let (_, answer) = tokio::join!(biased; reading, sending);
        answer
    }

    async fn send_request(
        &self,
        mut link: Link,
        request: Request<'_>,
    ) -> Result<Value, Failed> {
        if let (Some(replication), Some(owner)) = (self.0.replication, &self.0.owner)
            && !has_shortfall()
        {
            return self.attempt_confirmed(replication, owner, link, request).await;
        }
        let limit = self.response_timeout();
        let answer = match request {
            Request::Cmd(cmd) => link.ask(cmd, limit).await,
            Request::Call(call) => link.run(call, limit).await,
        };
        self.judged(link, answer).await
    }

    /// Repeats a failed call of a queue in a cluster as long as nodes refuse it because
    /// the queue belongs to another node. Repeating is safe, because no node ran the
    /// call. Returns every other failure unchanged.
    ///
    /// The future is boxed, because calls outside a cluster never need its space.
    pub(super) fn follow<'a>(
        &'a self,
        operation: Operation,
        request: Request<'a>,
        failed: Failed,
    ) -> BoxFuture<'a, Result<Value, Failed>> {
        if self.0.config.cluster().is_none() {
            return std::future::ready(Err(failed)).boxed();
        }
        self.follow_in_cluster(operation, request, failed).boxed()
    }

    async fn follow_in_cluster(
        &self,
        operation: Operation,
        request: Request<'_>,
        mut failed: Failed,
    ) -> Result<Value, Failed> {
        let mut patience = Patience::new(self.response_timeout());
        loop {
            let Some(error) = failed.error() else { return Err(failed) };
            let Some(redirect) = Redirect::of(error) else { return Err(failed) };
            redirect.note(&self.0.config);
            let outcome = match (redirect, &failed) {
                // Not for a call that waits for replicas: the queue's marker may not have
                // moved yet, so such a call waits until the whole slot has moved.
                (Redirect::Ask(node), Failed::AfterSend(_))
                    if self.0.replication.is_none() =>
                {
                    self.ask_there(&node, request).await
                }
                _ if patience.pause().await => self.attempt(operation, request).await,
                _ => {
                    return Err(Failed::BeforeSend(error::unsettled(error)));
                }
            };
            match outcome {
                Err(again) => failed = again,
                done => return done,
            }
        }
    }

    /// Sends the request to the node to which the cluster is moving the queue's slot.
    async fn ask_there(
        &self,
        node: &Address,
        request: Request<'_>,
    ) -> Result<Value, Failed> {
        let config = &self.0.config;
        let connecting = Link::connect(config, node, config.info.redis_settings());
        let connected = timeout(config.connect_timeout, connecting).await;
        let connected =
            connected.unwrap_or_else(|late| Err(io::Error::from(late).into()));
        let mut link = connected.map_err(Failed::BeforeSend)?;
        let mut asking = redis::pipe();
        if let Request::Call(call) = request {
            asking.add_command(call.script().loading());
        }
        asking.add_command(command("ASKING")).add_command(request.cmd().clone());
        let answers = link.ask_all(asking, self.response_timeout()).await;
        let answer = answers.map_err(Failed::AfterSend)?.pop();
        let answer = answer.unwrap_or_else(|| {
            let what = "a call got no reply";
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, what).into())
        });
        self.judged(link, answer).await
    }

    /// Returns the error for a blocking command that the server refused.
    pub(crate) fn refused(&self, at: ErrorContext, error: redis::RedisError) -> Error {
        if self.0.config.cluster().is_some() && Redirect::of(&error).is_some() {
            return error::before_send(at, error::unsettled(&error));
        }
        error::after_send(at, error)
    }
}
