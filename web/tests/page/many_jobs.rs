//! The cost of a page for the store and this process when a million jobs wait.
//!
//! Other work on the machine spoils the figures, so it runs only when it is asked for:
//!
//! ```sh
//! cargo test --workspace --all-features --test page -- --ignored --nocapture many_jobs
//! ```

use std::time::Duration;

use relq::{NewJob, ReliableQueueExt as _};

use crate::site::Site;

const JOBS: u32 = 1_000_000;

/// How often each page is asked for. The kernel counts processor time in steps of 10 ms.
const TIMES: u32 = 20;

/// The largest work of the process and the store for one page.
const MOST: Duration = Duration::from_millis(50);

const PAGES: [&str; 10] = [
    "/",
    "/queue/emails",
    "/queue/emails/jobs/ready",
    "/queue/emails/jobs/ready?text=payload-999999",
    "/queue/emails/jobs/leased",
    "/queue/emails/jobs/dead",
    "/queue/emails/dead",
    "/queue/emails/workers",
    "/queue/emails/batches",
    "/queue/emails/job?id=emails-unknown",
];

/// The processor time that this process has used: fields 14 and 15 of its status.
/// <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
fn of_process() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = status.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|it| it.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// The processor time that the server has used, if there is one.
fn of_server(site: &Site) -> Duration {
    let Some(server) = &site.server else { return Duration::ZERO };
    let info = server.command(&[b"INFO", b"cpu"]);
    let info = String::from_utf8(info).unwrap();
    let seconds = info.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        matches!(name, "used_cpu_sys" | "used_cpu_user")
            .then(|| value.trim().parse::<f64>())
    });
    Duration::from_secs_f64(seconds.map(Result::unwrap).sum())
}

async fn check(site: &Site) {
    for first in (0..JOBS).step_by(1000) {
        let jobs = first..first + 1000;
        let jobs: Vec<_> =
            jobs.map(|at| NewJob::new(format!("payload-{at}"))).collect();
        site.queue.push_all(&jobs).await.unwrap();
    }
    for page in PAGES {
        let began = of_process() + of_server(site);
        for _ in 0..TIMES {
            let answer = site.get(page).await;
            assert!(matches!(answer.status, 200 | 404), "{page}: {}", answer.body);
        }
        let work = (of_process() + of_server(site) - began) / TIMES;
        println!("{page}: {work:?}");
        assert!(work < MOST, "{page} takes {work:?} of work");
    }
}

#[tokio::test]
#[ignore = "measures processor time"]
async fn sqlite() {
    check(&Site::with(|page| page.sample_every(Duration::from_secs(5))).await).await;
}

#[tokio::test]
#[ignore = "measures processor time"]
async fn zset() {
    check(&Site::redis("zset").await).await;
}
