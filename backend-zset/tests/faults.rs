//! Every step of this backend, struck by every fault.

use std::sync::Arc;

use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::steps::{Connect, every_step};
use queue_core::Queue;
use queue_redis::testing::Server;

#[tokio::test]
async fn every_step_bears_every_fault() {
    let server = Server::start();
    let connect: Connect = Arc::new(|url, queue, environment| {
        Box::pin(async move {
            let config = ZsetConfig::new(&url).expect("the suite gives a URL");
            let config = config.environment(environment);
            let queue: Arc<dyn Queue> =
                Arc::new(ZsetQueue::connect(config, queue).await?);
            Ok(queue)
        })
    });

    let tally = every_step(server.socket().into(), connect, || {
        server.command(&[b"FLUSHALL"]);
    })
    .await
    .expect("the gate runs");

    assert_eq!(tally.failures, [""; 0]);
    for script in scripts() {
        let is_it = |label: &String| label.split(' ').next() == Some(&script);
        let faults = tally.coverage.iter().find(|(label, _)| is_it(label));
        let (_, faults) = faults.unwrap_or_else(|| panic!("{script} was never struck"));
        assert!(faults.contains("before") && faults.contains("after"), "{script}");
    }
}

/// COVERAGE: the scripts that there are, by the names of their files.
fn scripts() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/lua");
    std::fs::read_dir(directory)
        .expect("the scripts are there")
        .map(|file| file.expect("a directory can be read").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "moves")
        .collect()
}
