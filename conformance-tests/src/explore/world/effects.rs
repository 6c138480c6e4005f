//! The effect of a decision: a step runs or fails, time passes, or an actor dies.

use relq_core::environment::Clock as _;

use super::{Event, World, sorted};
use crate::{
    explore::{
        choice::{Choice, WaitingStep},
        store::Connections,
    },
    proxy::{StepRecord, When},
    spec::operation::{Act, Operation, Who},
};

impl World {
    /// Carries out a decision, and waits until every actor has reached its next command.
    pub(in super::super) async fn apply(
        &mut self,
        choice: Choice,
    ) -> Result<(), String> {
        let open = self.shared.state().history.open();
        let command = self.carry_out(choice).await?;
        self.faults_left.takes(choice);
        let (returned, jobs) = (Vec::new(), String::new());
        self.events.push(Event { choice, command, returned, jobs });
        self.settle_down().await?;
        self.store.check()?;
        let returned = self.shared.state().history.returned(&open);
        self.events.last_mut().expect("it was pushed").returned = returned;
        Ok(())
    }

    /// Carries out a decision. Returns the label of the command that it is about.
    async fn carry_out(&mut self, choice: Choice) -> Result<String, String> {
        Ok(match choice {
            Choice::Time => self.pass_time(),
            Choice::Pass(waiting) => {
                let step = self.next_step(waiting).await?;
                self.store.pass(&step)?;
                self.shared.state().sent.insert(waiting.0);
                step.label()
            }
            Choice::Draw(waiting, draws) => {
                let step = self.next_step(waiting).await?;
                self.connections()?.pass_drawing(&step, draws);
                self.shared.state().sent.insert(waiting.0);
                step.label()
            }
            Choice::Cut(waiting) => self.cut(waiting, When::Before).await?,
            Choice::Lose(waiting) => self.cut(waiting, When::After).await?,
            Choice::Die(who) | Choice::Freeze(who) | Choice::Late((who, _)) => {
                self.kill(who, choice).await?
            }
            Choice::Arrive => {
                self.connections()?.arrive().await?;
                self.late = 0;
                self.shared.state().history.late_arrives();
                "late commands run".to_owned()
            }
        })
    }

    fn connections(&self) -> Result<&dyn Connections, String> {
        let none = || "this store has no connections to break".to_owned();
        self.store.connections().ok_or_else(none)
    }

    async fn cut(
        &mut self,
        waiting: WaitingStep,
        when: When,
    ) -> Result<String, String> {
        let step = self.next_step(waiting).await?;
        self.connections()?.cut(&step, when);
        let mut state = self.shared.state();
        state.sent.insert(waiting.0);
        state.history.is_hit(waiting.0);
        Ok(step.label())
    }

    /// Lets time pass: the scene's next step of time, or the time until the next sleep
    /// ends.
    fn pass_time(&mut self) -> String {
        let clock = self.store.clock();
        let operation = self.time.pop().unwrap_or_else(|| Operation {
            who: Who::Nobody,
            act: Act::AdvanceBy(clock.next_in().unwrap_or_default()),
            fault: None,
        });
        let time = operation.time().expect("a step of time");
        clock.advance(time);
        let now = clock.elapsed();
        let mut state = self.shared.state();
        let number = state.history.begins(Who::Nobody, (operation, 0), now);
        state.history.ends(number, Vec::new());
        format!("{time:?} pass")
    }

    async fn next_step(&self, (who, at): WaitingStep) -> Result<StepRecord, String> {
        let step = self.steps_of(who).await.into_iter().nth(at);
        step.ok_or_else(|| {
            format!("DETERMINISTIC: {who:?} has no command that waits, and had one")
        })
    }

    async fn steps_of(&self, who: Who) -> Vec<StepRecord> {
        let name = format!("{who:?}");
        let mut parked = sorted(self.store.parked(0).await);
        parked.retain(|step| step.actor == name);
        parked
    }

    /// Ends an actor. Returns the labels of its waiting commands.
    async fn kill(&mut self, who: Who, death: Choice) -> Result<String, String> {
        let steps = self.steps_of(who).await;
        let has_sent = self.shared.state().sent.contains(&who);
        self.shared.state().dying.push(who);
        let task = self.actors.get_mut(&who).and_then(|actor| actor.task.take());
        // On a server, end the connections before the client is dropped, because the
        // client would close them itself.
        self.end_connections(who, death, &steps).await?;
        if let Some(task) = task {
            task.abort();
            // The result does not matter: the task was aborted or had ended.
            let _ = task.await;
        }
        let mut state = self.shared.state();
        if let Choice::Late(_) = death {
            state.history.dies_late(who, has_sent);
            self.late += 1;
        } else {
            state.history.dies(who, has_sent);
        }
        state.ended.push(who);
        let labels: Vec<_> = steps.iter().map(StepRecord::label).collect();
        Ok(if labels.is_empty() { "its reply".to_owned() } else { labels.join(", ") })
    }

    async fn end_connections(
        &mut self,
        who: Who,
        death: Choice,
        steps: &[StepRecord],
    ) -> Result<(), String> {
        let name = format!("{who:?}");
        let first = steps.first().ok_or("no command of the dying actor waits");
        match (death, self.store.connections()) {
            (Choice::Late((_, at)), Some(connections)) => {
                let step =
                    steps.get(at).ok_or("no command of the dying actor waits")?;
                connections.delay(step).await;
            }
            (Choice::Freeze(_), Some(connections)) => {
                self.frozen.push(connections.held());
                connections.freeze(&name).await;
            }
            (Choice::Die(_), Some(connections)) => connections.close(&name).await,
            (_, _) => self.store.kill(first?).await,
        }
        Ok(())
    }
}
