//! The faults of the servers and the calls of an operator, which a soak on several
//! servers has beside the kills of workers and producers.

use relq_core::{QueueName, environment::Environment};

use super::{
    deployment::{Deployment, FaultCounts, FaultSchedule, Faults},
    operator::Operating,
    site::Site,
};
use crate::SuiteResult;

pub(super) struct Several {
    faults: Faults,
    operating: Operating,
}

impl Several {
    /// Starts the operator and the faults. Returns `None` if the site has only one server.
    pub(super) async fn begin(
        site: &mut Site,
        name: &QueueName,
        schedule: impl FnOnce() -> FaultSchedule,
        environment: &Environment,
    ) -> SuiteResult<Option<Self>> {
        let Some(deployment) = site.take_deployment() else { return Ok(None) };
        let queue = relq::connect(site.url(), name).await?;
        let operating = Operating::start(queue, environment.clone());
        Ok(Some(Self { faults: Faults::start(deployment, schedule()), operating }))
    }

    /// Whether all faults have happened, or the faults or the operator have failed.
    pub(super) fn is_over(&self) -> bool {
        self.faults.are_over() || self.operating.has_ended()
    }

    /// Waits for the last fault and for the operator. Returns the servers, which end
    /// when they are dropped.
    pub(super) async fn end(self) -> SuiteResult<(Box<dyn Deployment>, FaultCounts)> {
        let ended = self.faults.end().await;
        let operated = self.operating.end().await;
        let ended = ended.map_err(|error| format!("the servers: {error}"))?;
        operated.map_err(|error| format!("the operator: {error}"))?;
        Ok(ended)
    }
}
