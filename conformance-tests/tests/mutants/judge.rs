//! Judges a mutant by one case, or by injecting faults into one act.

use std::{
    io,
    sync::{Arc, Mutex},
};

use relq_conformance::{
    Profile, Subject, async_trait, judge_case,
    overrides::{OverriddenQueue, Override, Right},
    proxy::{FaultProxy, Fitted},
    spec, sweep,
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_zset::{ZsetConfig, ZsetQueue};

use crate::mutant::{Mutant, Opening, Patch};

/// A mutant as a backend under test. Clones share the state of its patches.
#[derive(Clone)]
struct Mutated {
    mutant: Mutant,
    overrides: Option<Arc<dyn Override>>,
    fitted: PatchesFitted,
}

/// Whether each patch has changed a script, on each proxy that was prepared.
#[derive(Clone, Default)]
pub(crate) struct PatchesFitted(Arc<Mutex<Vec<Vec<Fitted>>>>);

impl PatchesFitted {
    /// Patches the scripts that will pass the proxy.
    pub(crate) fn patch(&self, proxy: &FaultProxy, patches: &[Patch]) {
        let patches = patches.iter();
        let fitted = patches.map(|it| proxy.patch_script(it.script, it.from, it.to));
        self.0.lock().unwrap().push(fitted.collect());
    }

    /// Whether the mutant differs from the healthy backend, and only as its patches
    /// say: a patch has changed a script, and none met a script that it does not fit. A
    /// script passes the proxy when it is first called, so this is known once the
    /// mutant was judged, and some patches may have met no script.
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

    /// Replaces the words of a check by an error of the mutant if the check failed and
    /// the patches of the mutant do not fit.
    fn said(&self, words: String) -> String {
        if self.fitted.fit() {
            return words;
        }
        format!("the patches of {:?} do not fit the scripts", self.mutant)
    }
}

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

/// Opens the backend that most mutants change.
pub(crate) fn open_zset(
    endpoint: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Opening {
    let config = ZsetConfig::new(endpoint).expect("the suite gives a URL");
    let (config, queue) = (config.environment(environment.clone()), queue.clone());
    Box::pin(async move { Ok(Arc::new(ZsetQueue::connect(config, queue).await?) as _) })
}

/// Returns the message of the case if it catches the mutant.
pub(crate) fn judge(mutant: Mutant, case: &str) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let judged = judge_case(mutated.clone(), Profile::Redis, case);
    judged.map_err(|words| mutated.said(words))
}

/// Returns the failures when every fault is injected at every step of the act.
pub(crate) fn inject(mutant: Mutant, act: &str) -> Vec<String> {
    let mutated = Mutated::new(mutant);
    let failures = sweep::failures(mutated.clone(), act);
    failures.into_iter().map(|words| mutated.said(words)).collect()
}

/// Returns the message of the reference model if it catches the mutant by a random
/// sequence.
pub(crate) fn compare(mutant: Mutant) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let judged = spec::judge_random(Arc::new(mutated.clone()), Profile::Redis);
    judged.map(drop).map_err(|words| mutated.said(words))
}

/// Returns the message of the reference model if it catches the mutant by a pair of
/// options.
pub(crate) fn compare_pairs(mutant: Mutant) -> Result<(), String> {
    let mutated = Mutated::new(mutant);
    let judged = spec::judge_crossed(Arc::new(mutated.clone()), Profile::Redis);
    judged.map(drop).map_err(|words| mutated.said(words))
}
