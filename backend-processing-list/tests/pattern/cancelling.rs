//! Cancels that search the list of leased jobs while workers change it.

use relq_conformance::{
    proxy::{Fault, FaultProxy, VirtualClock},
    server::Server,
};
use relq_core::{
    operator::{Cancelled, JobState},
    *,
};
use relq_processing_list::Mode;

use crate::fixture::*;

const JOBS: u32 = 60;

/// R31: jobs that are settled between two pages of a search hide no other job. Here two
/// searches in a row would pass by the job, because workers also claim jobs in between.
#[tokio::test]
async fn settlements_between_two_pages_hide_no_job() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let queue = open(&server, Mode::Shared).await;
    queue.push(&vec![NewJob::new("job"); JOBS as usize], None).await.unwrap();
    let held = queue.claim(&ask("w").max(many(JOBS))).await.unwrap();
    let operator = open_as(proxy.actor("operator").unwrap().url(), Mode::Shared).await;
    let steps = || proxy.steps_by("operator");
    // The first cancel loads the scripts.
    let unknown = JobId::new("unknown").unwrap();
    for _ in 0..2 {
        assert_eq!(operator.cancel(&unknown).await.unwrap(), Cancelled::NotFound);
    }
    let first = steps().len();
    assert_eq!(operator.cancel(&unknown).await.unwrap(), Cancelled::NotFound);
    let searches = steps().split_off(first);
    let steps_of_one = searches.len() / 2;
    let is_page = |at: &usize| searches[*at].command == "LRANGE";
    let third_page = (0..steps_of_one).rfind(is_page).unwrap();
    let plan = |at: usize, command: &str| {
        let step = u32::try_from(steps().len() + 1 + at).unwrap();
        let command = command.split(' ').map(str::to_owned).collect();
        proxy.plan("operator", step, Fault::Meanwhile(command));
    };
    plan(third_page, "LTRIM {q}:processing 4 -1");
    plan(steps_of_one, "LPUSH {q}:processing a b c d e");
    plan(steps_of_one + third_page, "LTRIM {q}:processing 4 -1");

    // The last job that was claimed is the first of the list, and this one is the first
    // behind the first two pages, which have 1 and 16 elements.
    let hidden = held[held.len() - 18].job();
    let cancelled = operator.cancel(hidden).await.unwrap();

    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased), "R31");
}
