//! The connections between a server and its actors.

use async_trait::async_trait;

use crate::proxy::{Draws, StepRecord, When};

/// A command that the server holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Held {
    pub(in super::super) actor: String,
    pub(in super::super) command: String,
    /// A digest of its arguments.
    pub(in super::super) arguments: u64,
}

/// The connections of a store that is a server: it may hold the commands of claims that
/// wait, it may choose answers at random, and its connections may break.
#[async_trait]
pub(in super::super) trait Connections: Send + Sync {
    /// Completes once each actor waits: for a decision about its step, for a command
    /// that the server holds, or for the clock.
    async fn idle(&self) -> Result<(), String>;

    /// The commands that the server holds. Those that it held first, and therefore
    /// serves first, come first.
    fn held(&self) -> Vec<Held>;

    /// Ends the actor of that name, as the end of its process does.
    async fn close(&self, actor: &str);

    /// Ends the actor of that name. Its connections stay open, so the server does not
    /// notice.
    async fn freeze(&self, actor: &str);

    /// Ends the actor of a step. The step runs at the next call of [`Self::arrive`].
    async fn delay(&self, step: &StepRecord);

    /// Runs the delayed steps, in the order in which their actors died.
    async fn arrive(&self) -> Result<(), String>;

    /// Returns the draws of the server that lead to different answers of a waiting step.
    /// The first of them are those of [`SteppedStore::pass`](super::SteppedStore::pass).
    async fn draws(&self, step: &StepRecord) -> Result<Vec<Draws>, String>;

    /// Lets a waiting step run, with these draws of the server.
    fn pass_drawing(&self, step: &StepRecord, draws: Draws);

    /// Breaks the connection of a step, before the step runs or after it.
    fn cut(&self, step: &StepRecord, when: When);
}
