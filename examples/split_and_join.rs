//! Counts the words of a large file as a batch: splits it into parts, lets several
//! workers count one part each, and adds up the counts when the batch completes.
//!
//! ```sh
//! run='cargo run --features json,sqlite --example split_and_join'
//! $run                       # a file of its own
//! $run -- words.txt          # yours
//! $run -- words.txt URL      # on a store with batches
//! ```
//!
//! The result is right even if processes die in between. A part may be counted twice,
//! but still leaves one file. The batch completes once, and pushes the job that joins
//! the counts.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::Write,
    fs::{self, File},
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use relq::{
    NewJob, PushToken, QueueName,
    batch::{Added, BatchId, BatchOutcome, NewBatch, OnComplete},
    environment::Environment,
    worker::{CancellationToken, Failure, JobContext, Worker, json, json_job},
};
use serde::{Deserialize, Serialize};

const PART: u64 = 256 * 1024;
const WORKERS: usize = 4;

/// The payload of a piece: the start and the end of a part of the file, and the path of
/// the file that receives its counts.
#[derive(Serialize, Deserialize)]
struct Part {
    file: PathBuf,
    from: u64,
    to: u64,
    counts: PathBuf,
}

/// The payload of the completion job, which runs when all parts are counted.
#[derive(Serialize, Deserialize)]
struct Join {
    counts: Vec<PathBuf>,
    total: PathBuf,
}

type Counts = BTreeMap<String, u64>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut arguments = std::env::args().skip(1);
    let file = match arguments.next() {
        Some(file) => PathBuf::from(file).canonicalize()?,
        None => sample(folder.path())?,
    };
    let store = format!("sqlite:{}", folder.path().join("jobs.db").display());
    let url = arguments.next().unwrap_or(store);

    let total = folder.path().join("total");
    let batch = submit(&url, split(&file, folder.path())?, &total).await?;
    let stop = CancellationToken::new();
    let workers = start_workers(&url, &stop);
    completed(&url, &batch).await?;
    // The completion of the batch has pushed the joining job, which may still run.
    while !total.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    workers.join_all().await.into_iter().collect::<Result<(), _>>()?;
    for line in fs::read_to_string(&total)?.lines().take(10) {
        println!("{line}");
    }
    Ok(())
}

/// Creates the batch. The batch id and the token of each call are made before the first
/// call, so that every call can be repeated if its reply is lost.
async fn submit(
    url: &str,
    parts: Vec<Part>,
    total: &Path,
) -> Result<BatchId, Box<dyn Error>> {
    let queue = relq::connect(url, &QueueName::new("parts")?).await?;
    let batches = queue.batch_queue().ok_or("this store has no batches")?;
    let environment = Environment::default();
    let id = BatchId::random(environment.random());
    let counts = parts.iter().map(|part| part.counts.clone()).collect();
    let join = json_job(&Join { counts, total: total.to_owned() })?;
    let on_complete = OnComplete::new(join).queue(QueueName::new("joins")?);
    batches.create(&NewBatch::new(id.clone()).on_complete(on_complete)).await?;
    for page in
        parts.chunks(queue.capabilities().limits.max_jobs_per_call.get() as usize)
    {
        let jobs = page.iter().map(json_job).collect::<Result<Vec<NewJob>, _>>()?;
        let token = PushToken::random(environment.random());
        let added = batches.add(&id, &jobs, Some(&token)).await?;
        assert!(matches!(added, Added::Stored(_)), "nobody else closes this batch");
    }
    batches.seal(&id).await?;
    Ok(id)
}

/// Waits until the batch has completed, and prints the progress meanwhile.
async fn completed(url: &str, batch: &BatchId) -> Result<(), Box<dyn Error>> {
    let queue = relq::connect(url, &QueueName::new("parts")?).await?;
    let batches = queue.batch_queue().ok_or("this store has no batches")?;
    loop {
        let status = batches.wait_batch(batch, Duration::from_millis(200)).await?;
        let status = status.ok_or("the batch is gone")?;
        println!("{}: {} of {} parts", status.state, status.ended(), status.total);
        match status.outcome() {
            None => {}
            Some(BatchOutcome::Done) => return Ok(()),
            Some(_) => return Err("a part could not be counted".into()),
        }
    }
}

/// Splits the file into parts of about the same size. Each part ends at the end of a
/// line.
fn split(file: &Path, folder: &Path) -> Result<Vec<Part>, Box<dyn Error>> {
    let size = fs::metadata(file)?.len();
    let mut reader = BufReader::new(File::open(file)?);
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < size {
        let mut to = reader.seek(SeekFrom::Start((from + PART).min(size)))?;
        to += reader.read_until(b'\n', &mut Vec::new())? as u64;
        let counts = folder.join(format!("part-{}", parts.len()));
        parts.push(Part { file: file.to_owned(), from, to, counts });
        from = to;
    }
    Ok(parts)
}

type Workers = tokio::task::JoinSet<Result<(), String>>;

/// Starts the workers that count and one worker that joins. The counting workers could
/// run on several machines that share a file system.
fn start_workers(url: &str, stop: &CancellationToken) -> Workers {
    let mut workers = Workers::new();
    for _ in 0..WORKERS {
        workers.spawn(run_worker(url.to_owned(), "parts", json(count), stop.clone()));
    }
    workers.spawn(run_worker(url.to_owned(), "joins", json(join), stop.clone()));
    workers
}

async fn run_worker(
    url: String,
    queue: &'static str,
    work: impl relq::worker::Handler,
    stop: CancellationToken,
) -> Result<(), String> {
    let name = QueueName::new(queue).map_err(|error| error.to_string())?;
    let queue = relq::connect(&url, &name).await.map_err(|error| error.to_string())?;
    let worker =
        Worker::new(queue).concurrency(NonZeroU32::MIN).stop_on(stop.cancelled_owned());
    let summary =
        Box::pin(worker.run(work)).await.map_err(|error| error.to_string())?;
    println!("a worker of {name}: {} done", summary.done);
    Ok(())
}

async fn count(part: Part, _: JobContext) -> Result<(), Failure> {
    let mut file = File::open(&part.file)?;
    file.seek(SeekFrom::Start(part.from))?;
    let mut text = Vec::new();
    file.take(part.to - part.from).read_to_end(&mut text)?;
    let mut counts = Counts::new();
    for word in String::from_utf8_lossy(&text).split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    Ok(write(&part.counts, counts.iter())?)
}

async fn join(join: Join, _: JobContext) -> Result<(), Failure> {
    let mut total = Counts::new();
    for part in &join.counts {
        for line in fs::read_to_string(part)?.lines() {
            let (count, word) = line.split_once(' ').ok_or("no count")?;
            *total.entry(word.to_owned()).or_default() += count.parse::<u64>()?;
        }
    }
    let mut total: Vec<_> = total.iter().collect();
    total.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    Ok(write(&join.total, total.into_iter())?)
}

/// Writes a file completely or not at all, even if the process dies: the file is
/// written under another name, and renamed at the end.
fn write<'a>(
    to: &Path,
    counts: impl Iterator<Item = (&'a String, &'a u64)>,
) -> std::io::Result<()> {
    let mut text = String::new();
    for (word, count) in counts {
        writeln!(text, "{count} {word}").map_err(std::io::Error::other)?;
    }
    let unique = relq::PushToken::random(Environment::default().random());
    let new = to.with_extension(unique.as_str());
    fs::write(&new, text)?;
    fs::rename(new, to)
}

fn sample(folder: &Path) -> std::io::Result<PathBuf> {
    let file = folder.join("sample.txt");
    let lines =
        (0..100_000).map(|n| format!("the {} job of {n}\n", ["small", "large"][n % 2]));
    fs::write(&file, lines.collect::<String>())?;
    Ok(file)
}
