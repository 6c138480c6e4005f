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

use crate::mutant::{Mutant, Opening};

/// The script that is sent with the first write of a queue.
const FIRST_WRITE: &str = "write_marker";

/// A mutant as a backend under test.
struct Mutated {
    mutant: Mutant,
    overrides: Option<Arc<dyn Override>>,
    fitted: Mutex<Vec<Fitted>>,
}

impl Mutated {
    fn new(mutant: Mutant) -> Self {
        let overrides = mutant.overrides.map(|overrides| overrides());
        Self { mutant, overrides, fitted: Mutex::default() }
    }
}

#[async_trait]
impl Subject for Mutated {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        let patches = self.mutant.patches.iter();
        let fitted = patches
            .map(|it| (it.script, proxy.patch_script(it.script, it.from, it.to)));
        // This script is sent only with the first write, so `connect` cannot check it.
        let at_once = fitted.filter(|(script, _)| *script != FIRST_WRITE);
        *self.fitted.lock().unwrap() = at_once.map(|(_, fitted)| fitted).collect();
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
        // All other scripts have been sent by now, so all their patches must have been
        // applied.
        let is_fitted = self.fitted.lock().unwrap().iter().all(Fitted::get);
        assert!(is_fitted, "patches of {:?}", self.mutant);
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
    judge_case(Mutated::new(mutant), Profile::Redis, case)
}

/// Returns the failures when every fault is injected at every step of the act.
pub(crate) fn inject(mutant: Mutant, act: &str) -> Vec<String> {
    sweep::failures(Mutated::new(mutant), act)
}

/// Returns the message of the reference model if it catches the mutant.
pub(crate) fn compare(mutant: Mutant) -> Result<(), String> {
    spec::judge(Mutated::new(mutant), Profile::Redis).map(drop)
}
