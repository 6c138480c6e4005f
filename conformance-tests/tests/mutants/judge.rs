//! Runs a check on a mutant: one test case, or the calls of one scenario with injected
//! faults.

use std::{
    io,
    sync::{Arc, Mutex},
};

use relq_conformance::{
    Profile, Subject, async_trait, explore, judge_case,
    overrides::{OverriddenQueue, Override, Right},
    proxy::{FaultProxy, Fitted},
    spec, sweep,
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_zset::{ZsetConfig, ZsetQueue};

use crate::mutant::{Mutant, Opening, Patch};

/// A mutant as a backend under test. Its clones share the record of which patches fit.
#[derive(Clone)]
struct Mutated {
    mutant: Mutant,
    overrides: Option<Arc<dyn Override>>,
    fitted: PatchesFitted,
}

/// For each proxy, whether each patch of the mutant has changed a script there.
#[derive(Clone, Default)]
pub(crate) struct PatchesFitted(Arc<Mutex<Vec<Vec<Fitted>>>>);

impl PatchesFitted {
    /// Makes the proxy change the scripts that pass through it.
    pub(crate) fn patch(&self, proxy: &FaultProxy, patches: &[Patch]) {
        let patches = patches.iter();
        let fitted = patches.map(|it| proxy.patch_script(it.script, it.from, it.to));
        self.0.lock().unwrap().push(fitted.collect());
    }

    /// Whether the mutant differs from the healthy backend exactly as its patches say:
    /// at least one patch has changed a script, and none met a script that it does not
    /// fit. A script passes through the proxy when it is first called, so this is known
    /// only after the check has run.
    pub(crate) fn fit(&self) -> bool {
        let proxies = self.0.lock().unwrap();
        let mut patches = proxies.iter().flatten().peekable();
        let has_none = patches.peek().is_none();
        let (mut is_changed, mut is_misfit) = (false, false);
        for patch in patches {
            is_changed |= patch.get();
            is_misfit |= patch.is_misfit();
        }
        (has_none || is_changed) && !is_misfit
    }
}

impl Mutated {
    fn new(mutant: Mutant) -> Self {
        let overrides = mutant.overrides.map(|overrides| overrides());
        Self { mutant, overrides, fitted: PatchesFitted::default() }
    }

    /// Returns the message of a failed check, after [`UNFIT`] if the failure does not
    /// come from the mutant's patches.
    fn said(&self, words: String) -> String {
        if self.fitted.fit() {
            return words;
        }
        format!("{UNFIT} ({:?}): {words}", self.mutant)
    }
}

/// The beginning of the message of a check that failed although the mutant's patches
/// have changed no script, or one of them does not fit its script. Such a failure does
/// not show that the check catches the mutant.
pub(crate) const UNFIT: &str = "the patches do not fit, or no patched script ran";

#[async_trait]
impl Subject for Mutated {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        self.fitted.patch(proxy, self.mutant.patches);
        if !self.mutant.server.is_empty() {
            proxy.tell(self.mutant.server).await?;
        }
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let healthy = (self.mutant.open)(endpoint, queue, environment).await?;
        Ok(match self.overrides.clone() {
            Some(overrides) => {
                let environment = environment.clone();
                Arc::new(OverriddenQueue::new(
                    Right { queue: healthy, environment },
                    overrides,
                ))
            }
            None => healthy,
        })
    }
}

/// Opens a queue of relq-zset, the backend that most mutants change.
pub(crate) fn open_zset(
    endpoint: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Opening {
    let config = ZsetConfig::new(endpoint).expect("the suite gives a URL");
    let (config, queue) = (config.environment(environment.clone()), queue.clone());
    Box::pin(async move { Ok(Arc::new(ZsetQueue::connect(config, queue).await?) as _) })
}

/// Runs a case on the mutant. Fails with the case's message if the case catches it.
pub(crate) fn judge(mutant: Mutant, case: &str) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let judged = judge_case(mutated.clone(), Profile::Redis, case);
    judged.map_err(|words| mutated.said(words))
}

/// Runs the scenario of that name on the mutant, with every fault at every step.
/// Returns the failures.
pub(crate) fn inject(mutant: Mutant, act: &str) -> Vec<String> {
    let mutated = Mutated::new(mutant);
    let failures = sweep::failures(mutated.clone(), act);
    failures.into_iter().map(|words| mutated.said(words)).collect()
}

/// Compares the mutant with the reference model in random sequences. Fails with the
/// first difference.
pub(crate) fn compare(mutant: Mutant) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let judged = spec::judge_random(Arc::new(mutated.clone()), Profile::Redis);
    judged.map(drop).map_err(|words| mutated.said(words))
}

/// Compares the mutant with the reference model in sequences that combine every two
/// options. Fails with the first difference.
pub(crate) fn compare_pairs(mutant: Mutant) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let judged = spec::judge_crossed(Arc::new(mutated.clone()), Profile::Redis);
    judged.map(drop).map_err(|words| mutated.said(words))
}

/// Searches through every order of the commands of a scene, with at most one death.
/// Fails with the first difference from the reference model.
pub(crate) fn search(mutant: Mutant, scene: &str) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let subject: Arc<dyn Subject> = Arc::new(mutated.clone());
    let explored =
        explore::explore(&subject, scene, 1).map_err(|wrong| mutated.said(wrong))?;
    let failure = explored.expect("the backend supports the options").failure;
    failure.map_or(Ok(()), |words| Err(mutated.said(words)))
}
