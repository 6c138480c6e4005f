//! `relq batch submit`: creates one batch for each line of a file.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use relq::{
    NewJob, Queue, QueueName,
    batch::{BatchId, BatchPriority, NewBatch, OnComplete},
    environment::Environment,
};
use serde::Serialize;

use super::{calls, known::batches_of, request, request::Request};
use crate::{
    failure::{CommandResult, Failure, unless_closed},
    format::{Format, Records},
    interrupts::Interrupts,
    output::Output,
    piped_input,
    push::Sender,
    target::Target,
    values::{batch_priority, positive_duration},
};

/// The placeholder for the batch's id in the payload of `--on-complete`.
const ID: &str = "{}";

/// Submit one batch for each line of a file
///
/// A line is a JSON object, {"limit": 4, "pieces": ["one", "two"]}: how many of the pieces
/// may run at once (0 or no limit for any number), and the payload of each. It may also have
/// "id", "priority", "on_complete", "on_complete_queue" and "retention", which take the place
/// of the options of these names. A piece with options is an object, with "payload" or
/// "payload_base64", "headers", "max_attempts", "lease" and "keep_result".
///
/// A line may also be `limit:piece:piece:…`, for payloads without colons. Empty lines and
/// lines that begin with # are skipped. All lines are read before the first batch is created,
/// and must fit into memory. Without --file, standard input is read if it is a pipe or a file.
///
/// Prints the id of each batch when all of its pieces are stored and it is sealed. With
/// -o json it prints an array of objects {"id", "pieces"}, and with -o jsonl one object a
/// line. If the reader of the output closes it, the other batches are submitted all the same.
/// A signal to stop ends the command after the batch under way, and it says which batch is the
/// last one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file that has the lines; - is standard input
    #[arg(short, long)]
    file: Option<PathBuf>,

    /// The priority, from 0 to 99; a larger one is served sooner [default: 50]
    #[arg(long, value_parser = batch_priority, value_name = "N")]
    priority: Option<BatchPriority>,

    /// The id of the first batch; further batches get -2, -3 and so on appended. If a
    /// batch of that id exists, it does not change and the submission fails
    #[arg(long)]
    id: Option<BatchId>,

    /// Push a job of this payload when a batch completes; {} stands for its id
    #[arg(long, value_name = "PAYLOAD")]
    on_complete: Option<String>,

    /// Push that job to another queue of the same store
    #[arg(long, value_name = "NAME", requires = "on_complete")]
    on_complete_queue: Option<QueueName>,

    /// How long the status of a batch can be read after its completion [default: 1day]
    #[arg(long, value_parser = positive_duration, value_name = "DURATION")]
    retention: Option<Duration>,

    #[command(flatten)]
    format: Format,
}

const NOTHING: &str = "\
nothing to submit: give a file of lines with --file (- is standard input)";

/// The JSON object that is printed for each submitted batch.
#[derive(Serialize)]
struct Submitted<'a> {
    id: &'a str,
    pieces: usize,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let file = self.file()?;
        let requests = read(&file)?;
        if requests.is_empty() && self.file.is_none() {
            return Err(Failure::Usage(NOTHING.to_owned()));
        }
        let ids = self.ids(&requests)?;
        let queue = target.open().await?;
        batches_of(&*queue)?;
        self.submit_all(&queue, &requests, &ids).await
    }

    /// Submits the batches one after the other. A first signal to stop lets the batch under
    /// way become complete, so that no batch stays open, and a second one does not.
    async fn submit_all(
        &self,
        queue: &Arc<dyn Queue>,
        requests: &[Request],
        ids: &[BatchId],
    ) -> CommandResult {
        let sender = Sender::new(Arc::clone(queue), Interrupts::listen()?);
        let mut shown = Shown::begin(self.format)?;
        let submitted =
            self.submit_each(queue, &sender, requests, ids, &mut shown).await;
        // A JSON array must be closed, so that the ids of the submitted batches can be read.
        let ended = shown.end();
        submitted.and(ended)
    }

    async fn submit_each(
        &self,
        queue: &Arc<dyn Queue>,
        sender: &Sender,
        requests: &[Request],
        ids: &[BatchId],
        shown: &mut Shown,
    ) -> CommandResult {
        let mut last = "no batch was submitted".to_owned();
        for (number, (request, id)) in (1..).zip(requests.iter().zip(ids)) {
            if sender.interrupts().any() {
                return Err(stopped("by a signal", &last));
            }
            tokio::select! {
                submitted = self.submit(queue, sender, id, request) => {
                    submitted.map_err(|failure| failure.after(&last))?;
                }
                () = sender.interrupts().second() => {
                    let open = format!("the batch {id} may be there, and {OPEN}");
                    return Err(stopped("by a second signal", &last).after(&open));
                }
            }
            last = format!("batch {number}, {id}, is the last submitted");
            let submitted = Submitted { id: id.as_str(), pieces: request.pieces.len() };
            unless_closed(shown.show(&submitted))
                .map_err(|failure| failure.after(&last))?;
        }
        Ok(())
    }

    fn file(&self) -> CommandResult<PathBuf> {
        let file = piped_input::or_input(self.file.as_deref());
        file.ok_or_else(|| Failure::Usage(NOTHING.to_owned()))
    }

    /// The ids of the batches. Fails if two lines have the same id.
    fn ids(&self, requests: &[Request]) -> CommandResult<Vec<BatchId>> {
        let mut ids = Vec::with_capacity(requests.len());
        let mut seen = HashSet::new();
        for (number, request) in (1..).zip(requests) {
            let id = match &request.id {
                Some(id) => id.clone(),
                None => self.id_of(number)?,
            };
            if request.on_complete_queue.is_some()
                && self.on_complete(request).is_none()
            {
                let problem = "\"on_complete_queue\" is the queue of \"on_complete\": give \
                               both";
                return Err(Failure::Usage(format!("batch {number}: {problem}")));
            }
            if !seen.insert(id.clone()) {
                let problem = format!("two batches of the file have the id {id}");
                return Err(Failure::Usage(problem));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    fn id_of(&self, number: usize) -> CommandResult<BatchId> {
        let random = Environment::default();
        match &self.id {
            None => Ok(BatchId::random(random.random())),
            Some(id) if number == 1 => Ok(id.clone()),
            Some(id) => BatchId::new(format!("{id}-{number}"))
                .map_err(|error| Failure::Usage(error.to_string())),
        }
    }

    fn batch(&self, id: &BatchId, request: &Request) -> NewBatch {
        let mut batch = NewBatch::new(id.clone()).limit(request.limit);
        batch.priority = request.priority.or(self.priority).unwrap_or(batch.priority);
        batch.retention =
            request.retention.or(self.retention).unwrap_or(batch.retention);
        batch.on_complete = self.on_complete(request).map(|payload| {
            let payload = payload.replace(ID, id.as_str());
            let mut on_complete = OnComplete::new(NewJob::new(payload));
            let queue =
                request.on_complete_queue.as_ref().or(self.on_complete_queue.as_ref());
            on_complete.queue = queue.cloned();
            on_complete
        });
        batch
    }

    fn on_complete<'a>(&'a self, request: &'a Request) -> Option<&'a String> {
        request.on_complete.as_ref().or(self.on_complete.as_ref())
    }

    /// Creates a batch, adds its pieces and seals it. Each of these calls is repeated until
    /// its reply arrives.
    async fn submit(
        &self,
        queue: &Arc<dyn Queue>,
        sender: &Sender,
        id: &BatchId,
        request: &Request,
    ) -> CommandResult {
        let batches = batches_of(&**queue)?;
        calls::create(batches, sender, &self.batch(id, request)).await?;
        let limits = &queue.capabilities().limits;
        let mut rest = &request.pieces[..];
        while !rest.is_empty() {
            let (page, after) = rest.split_at(limits.jobs_of_one_push(rest));
            calls::add(batches, sender, id, page).await?;
            rest = after;
        }
        calls::seal(batches, sender, id).await
    }
}

const OPEN: &str = "then stays open until `relq batch cancel`";

fn stopped(how: &str, last: &str) -> Failure {
    Failure::Failed(format!("the submission was stopped {how}; {last}"))
}

fn read(file: &Path) -> CommandResult<Vec<Request>> {
    let name = piped_input::in_words(file);
    if piped_input::is_name_of(file) {
        return request::read(io::stdin().lock(), &name);
    }
    let opened =
        File::open(file).map_err(|error| request::unreadable(&name, &error))?;
    request::read(BufReader::new(opened), &name)
}

/// The output: ids, or JSON objects, each printed when its batch is submitted.
enum Shown {
    Ids(Output),
    Json(Records),
}

impl Shown {
    fn begin(format: Format) -> CommandResult<Self> {
        if format.is_json() {
            return format.records().map(Self::Json);
        }
        Ok(Self::Ids(Output::new()))
    }

    fn show(&mut self, submitted: &Submitted<'_>) -> CommandResult {
        match self {
            Self::Ids(out) => {
                out.name(submitted.id)?;
                out.flush()
            }
            Self::Json(records) => {
                records.item(submitted)?;
                records.flush()
            }
        }
    }

    fn end(self) -> CommandResult {
        match self {
            Self::Ids(_) => Ok(()),
            Self::Json(records) => records.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: Args,
    }

    /// The result of the options and of the line: the priority, the retention, and the
    /// payload and the queue of the completion job.
    fn made_of(options: &Args, line: &str) -> [String; 4] {
        let id = BatchId::new("b").unwrap();
        let request = request::read(line.as_bytes(), "it").unwrap().remove(0);
        let batch = options.batch(&id, &request);
        let on_complete = batch.on_complete.expect("it is set");
        [
            batch.priority.to_string(),
            humantime::format_duration(batch.retention).to_string(),
            String::from_utf8(on_complete.job.payload.to_vec()).unwrap(),
            on_complete.queue.expect("it is set").to_string(),
        ]
    }

    /// A field of a line takes the place of its option, and of no other one.
    #[test]
    fn an_option_holds_for_the_lines_that_do_not_set_it() {
        let words = "submit --priority 11 --retention 12s --on-complete=end-of-{} \
                     --on-complete-queue of-options";
        let options = CommandLine::parse_from(words.split_whitespace()).args;
        let of_options = ["11", "12s", "end-of-b", "of-options"];
        assert_eq!(
            made_of(&options, r#"{"pieces":[]}"#),
            of_options,
            "no field is set"
        );
        for (at, (field, value)) in [
            (r#""priority":21"#, "21"),
            (r#""retention":"22s""#, "22s"),
            (r#""on_complete":"line {}""#, "line b"),
            (r#""on_complete_queue":"of-line""#, "of-line"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut expected = of_options;
            expected[at] = value;

            let made = made_of(&options, &format!(r#"{{"pieces":[],{field}}}"#));

            assert_eq!(made, expected, "the line sets {field}");
        }
    }
}
