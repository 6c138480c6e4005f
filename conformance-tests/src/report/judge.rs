//! Runs the suite on a backend, and turns each panic into a failed result.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use relq_core::capabilities::Capabilities;

use super::{CaseResult, Judged, Report};
use crate::{
    Case, Need, Profile, Subject, cases,
    explore::{self, Explored},
    harness::{parallel::in_parallel, store::Store},
    spec,
    sweep::{self, Injection, Tally},
};

/// Which cases a report runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// All cases that apply to the kind of store.
    All,
    /// The cases whose ids begin with this text.
    Only(String),
}

impl Chosen {
    fn has(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(start) => id.starts_with(start),
        }
    }
}

/// Judges the backend by all chosen cases that apply to it, by every act that supports
/// faults, by the model, and by every order of the commands of each scene.
///
/// # Panics
/// When the backend cannot be opened at all, or the operating system gives no runtime.
pub fn judge<S: Subject + Default>(profile: Profile, chosen: &Chosen) -> Report {
    let capabilities = capabilities::<S>(profile);
    let mut tasks = tasks::<S>(profile);
    tasks.retain(|task| chosen.has(&task.id()));
    let run = |task: &Task| task.judge::<S>(profile, &capabilities);
    Report { backend: capabilities.backend, cases: in_parallel(&tasks, run) }
}

/// The report that the backend gets if it keeps all its promises. It reads the
/// backend's capabilities and runs no case. After the tests have passed, it shows
/// whether a document is up to date.
///
/// # Panics
/// When [`judge`] panics.
pub fn expected<S: Subject + Default>(profile: Profile) -> Report {
    let capabilities = capabilities::<S>(profile);
    let tasks = tasks::<S>(profile);
    let cases = tasks.iter().map(|task| task.expected(&capabilities)).collect();
    Report { backend: capabilities.backend, cases }
}

fn tasks<S: Subject + Default>(profile: Profile) -> Vec<Task> {
    let subject = S::default();
    let applies = |case: &&Case| case.not_concerned(profile, &subject).is_none();
    let concerned = cases().iter().filter(applies);
    let mut tasks: Vec<Task> = concerned.map(Task::Case).collect();
    if let Some(injection) = injection::<S>(profile) {
        tasks.extend(sweep::names().map(|name| Task::Act(name, injection)));
    }
    tasks.push(Task::Model);
    if explore::can_explore(&subject, profile) {
        tasks.extend(explore::scenes_on(profile).map(Task::Scene));
    }
    tasks
}

/// How faults are injected into the backend's acts. `None` if the backend does not
/// support that.
fn injection<S: Subject + Default>(profile: Profile) -> Option<Injection> {
    match profile {
        Profile::Redis => Some(Injection::AtTheProxy),
        Profile::Embedded => S::default().processes().map(Injection::ToProcesses),
        Profile::Bare => None,
    }
}

fn capabilities<S: Subject + Default>(profile: Profile) -> Capabilities {
    let runtime = tokio::runtime::Runtime::new().expect("the system gives a runtime");
    runtime.block_on(async {
        let store = Store::start(S::default(), profile);
        store.actor("judge").await.capabilities().clone()
    })
}

/// One part of a report: a case, an act, the reference model or a scene.
enum Task {
    Case(&'static Case),
    Act(&'static str, Injection),
    Model,
    Scene(&'static str),
}

impl Task {
    fn id(&self) -> String {
        match self {
            Self::Case(case) => case.id.to_owned(),
            Self::Act(name, _) => format!("steps::{name}"),
            Self::Model => format!("model::{}", spec::NAME),
            Self::Scene(name) => format!("interleavings::{name}"),
        }
    }

    fn judge<S: Subject + Default>(
        &self,
        profile: Profile,
        capabilities: &Capabilities,
    ) -> Judged {
        match self {
            Self::Case(case) => {
                let run = || crate::run::<S>(profile, case.id);
                match caught(run) {
                    Ok(()) => self.expected(capabilities),
                    Err(words) => {
                        let result = CaseResult::Failed(words);
                        self.judged(case.rules, result, &Tally::default())
                    }
                }
            }
            Self::Act(name, injection) => {
                match caught(|| sweep::tally::<S>(name, *injection)) {
                    Ok(tally) => self.judged(sweep::RULES, of_tally(&tally), &tally),
                    Err(words) => {
                        let result = CaseResult::Failed(words);
                        self.judged(sweep::RULES, result, &Tally::default())
                    }
                }
            }
            Self::Model => {
                let subject: Arc<dyn Subject> = Arc::new(S::default());
                self.played(caught(|| spec::judge(&subject, profile)))
            }
            Self::Scene(name) => {
                let subject: Arc<dyn Subject> = Arc::new(S::default());
                let result = of_scene(caught(|| explore::explore(&subject, name, 0)));
                self.judged(spec::RULES, result, &Tally::default())
            }
        }
    }

    /// The result that a backend with these capabilities gets if it keeps the promise.
    fn expected(&self, capabilities: &Capabilities) -> Judged {
        let are_met =
            |needs: &[Need]| needs.iter().all(|need| need.is_met_by(capabilities));
        let (rules, is_met) = match self {
            Self::Case(case) => (case.rules, are_met(case.needs)),
            Self::Act(name, _) => (sweep::RULES, are_met(sweep::needs(name))),
            Self::Model => (spec::RULES, true),
            Self::Scene(name) => {
                let mut needs = explore::needs(name).iter();
                (spec::RULES, needs.all(|option| capabilities.supports(*option)))
            }
        };
        let result = if is_met { CaseResult::Passed } else { CaseResult::Unsupported };
        self.judged(rules, result, &Tally::default())
    }

    fn played(&self, ended: Result<Result<spec::Summary, String>, String>) -> Judged {
        let (result, played) = match ended.flatten() {
            Ok(summary) => (CaseResult::Passed, Some(summary)),
            Err(words) => (CaseResult::Failed(words), None),
        };
        Judged { played, ..self.judged(spec::RULES, result, &Tally::default()) }
    }

    fn judged(
        &self,
        rules: &'static [&'static str],
        result: CaseResult,
        tally: &Tally,
    ) -> Judged {
        let Tally { steps, faults_fired, .. } = *tally;
        Judged { id: self.id(), rules, result, steps, faults_fired, played: None }
    }
}

fn of_tally(tally: &Tally) -> CaseResult {
    if !tally.failures.is_empty() {
        CaseResult::Failed(tally.failures.join("\n"))
    } else if !tally.unsupported.is_empty() {
        CaseResult::Unsupported
    } else if tally.faults_fired == 0 {
        // FAULT-FIRED: an act that no fault hit was not tested.
        CaseResult::Failed("no fault fired".to_owned())
    } else {
        CaseResult::Passed
    }
}

fn of_scene(explored: Result<Result<Option<Explored>, String>, String>) -> CaseResult {
    match explored.flatten() {
        Ok(None) => CaseResult::Unsupported,
        Ok(Some(Explored { failure: None, .. })) => CaseResult::Passed,
        Ok(Some(Explored { failure: Some(words), .. })) | Err(words) => {
            CaseResult::Failed(words)
        }
    }
}

/// The result of `run`. If it panics, the error is the message of the panic.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked without a message").to_owned()
}
