//! The rules that every backend keeps, judged on this one.

use std::sync::Arc;

use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

#[derive(Default)]
struct Zset;

#[async_trait]
impl Subject for Zset {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = ZsetConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        Ok(Arc::new(ZsetQueue::connect(config, queue.clone()).await?))
    }

    fn scripts(&self) -> Vec<String> {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/lua"));
        let files = files.expect("the scripts are there");
        files
            .filter_map(|file| {
                file.expect("a directory can be read")
                    .path()
                    .file_stem()?
                    .to_str()
                    .map(str::to_owned)
            })
            // Not a script: functions that others begin with.
            .filter(|name| name != "moves")
            .collect()
    }
}

conformance_tests::conformance!(Zset, redis);

/// Depth 2: random sequences of operations, held against the reference model.
#[test]
fn every_sequence_goes_by_the_rules() {
    conformance_tests::model::run::<Zset>(conformance_tests::Profile::Redis);
}
