//! Has a mutant judged: by one case, or struck in one act.

use std::{
    io,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::{
    Profile, Subject,
    fault::{Fitted, Gate},
    steps, verdict,
};
use queue_core::{Environment, Error, Queue, QueueName};

use crate::{
    mutant::Mutant,
    twist::{Right, Twist, Twisted},
};

/// A mutant as a backend under test.
struct Mutated {
    mutant: Mutant,
    twist: Option<Arc<dyn Twist>>,
    fitted: Mutex<Vec<Fitted>>,
}

impl Mutated {
    fn new(mutant: Mutant) -> Self {
        let twist = mutant.twist.map(|twist| twist());
        Self { mutant, twist, fitted: Mutex::default() }
    }
}

#[async_trait]
impl Subject for Mutated {
    async fn prepare(&self, gate: &Gate) -> io::Result<()> {
        for patch in self.mutant.patches {
            let fitted = gate.patch_script(patch.script, patch.from, patch.to);
            self.fitted.lock().unwrap().push(fitted);
        }
        if !self.mutant.server.is_empty() {
            gate.tell(self.mutant.server).await?;
        }
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = ZsetConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        let healthy = Arc::new(ZsetQueue::connect(config, queue.clone()).await?);
        // All scripts went through: a mutant must be one by now.
        let fitted = self.fitted.lock().unwrap().iter().filter(|one| one.get()).count();
        assert_eq!(fitted, self.mutant.patches.len(), "patches of {:?}", self.mutant);
        Ok(match self.twist.clone() {
            Some(twist) => {
                let environment = environment.clone();
                Arc::new(Twisted {
                    right: Right { queue: healthy, environment },
                    twist,
                })
            }
            None => healthy,
        })
    }
}

/// What the case says of the mutant.
pub(crate) fn judge(mutant: Mutant, case: &str) -> Result<(), String> {
    verdict(Mutated::new(mutant), Profile::Redis, case)
}

/// What goes wrong when the mutant is struck at every step of the act.
pub(crate) fn strike(mutant: Mutant, act: &str) -> Vec<String> {
    steps::failures(Mutated::new(mutant), act)
}
