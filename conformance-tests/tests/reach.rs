//! Tests the check COVERAGE: it reports a script of the backend that no scenario runs.

use std::sync::Arc;

use relq_conformance::{Subject, async_trait, own::Zset, sweep};
use relq_core::{Error, Queue, QueueName, environment::Environment};

#[derive(Default)]
struct WithOneMore;

#[async_trait]
impl Subject for WithOneMore {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        Zset.connect(endpoint, queue, environment).await
    }

    fn scripts(&self) -> Vec<String> {
        vec!["claim".to_owned(), "never_sent".to_owned()]
    }
}

#[test]
#[should_panic(expected = "no act reaches these scripts")]
fn a_script_that_no_act_reaches_is_reported() {
    sweep::reach::<WithOneMore>();
}
