//! Compares the content of a store after a power cut with the content that it must
//! have.

use std::{
    collections::HashSet,
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::RangeInclusive,
    path::Path,
};

use relq_core::{Operator as _, QueueName};
use relq_power_cut::{Disk, Image, sample};
use relq_sqlite::{Durability, SqliteConfig, SqliteQueue};
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::model::Model;
use crate::run::{History, MARKS, Run};

/// How many failures one test reports at most.
const SHOWN: usize = 3;

/// Opens some of the files that power cuts can leave, chosen at random. Returns a
/// message for each file that breaks a promise.
pub(crate) fn judge(
    run: &Run,
    histories: &[History],
    runtime: &Runtime,
) -> Vec<String> {
    let recording = run.disk.recording();
    let only = env::var("RELQ_POWER_CUT_ONLY").ok();
    let cuts = match &only {
        Some(only) => {
            let all = recording.cuts().into_iter();
            all.filter(|cut| cut.to_string() == *only).collect()
        }
        None => sample(&recording, run.images, run.seed),
    };
    assert!(!cuts.is_empty(), "a run has power cuts");
    let mut known = HashSet::new();
    let mut failures = Vec::new();
    for image in recording.images(cuts) {
        if !known.insert(digest(&image)) {
            continue;
        }
        if let Err(words) = judge_one(run, histories, &image, runtime) {
            failures.push(told(run, &image, &words));
        }
        if failures.len() == SHOWN {
            break;
        }
    }
    failures
}

fn digest(image: &Image) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&image.files, &image.marks).hash(&mut hasher);
    hasher.finish()
}

fn told(run: &Run, image: &Image, words: &str) -> String {
    let Run { test, durability, seed, .. } = run;
    let cut = image.cut;
    format!(
        "{durability:?}, cut {cut}: {words}; replay: RELQ_POWER_CUT_SEED={seed} \
         RELQ_POWER_CUT_ONLY='{cut}' scripts/test -p relq-sqlite --test power_cut {test}"
    )
}

fn judge_one(
    run: &Run,
    histories: &[History],
    image: &Image,
    runtime: &Runtime,
) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let _disk = Disk::without_syncs(folder.path()).unwrap();
    image.files.write(folder.path()).unwrap();
    let seen = open(&folder.path().join("queue.db"), runtime)?;
    let mut places = Vec::new();
    for (number, history) in (0..).zip(histories) {
        let known = Known::of(number, &image.marks);
        places.push(place(run.durability, history, &known, &seen)?);
    }
    in_order(histories, &places, &image.marks)
}

/// Opens the file as a restarted process does, audits it, and reads its content.
fn open(file: &Path, runtime: &Runtime) -> Result<Model, String> {
    let whole = |words: String| format!("WHOLE (R1): {words}");
    let problems = runtime
        .block_on(async {
            let config = SqliteConfig::file(file);
            let queue =
                SqliteQueue::open(config, QueueName::new("jobs").unwrap()).await?;
            queue.audit().await
        })
        .map_err(|error| {
            whole(format!("relq cannot open it: {}", error.full_message()))
        })?
        .problems;
    if !problems.is_empty() {
        return Err(format!("AUDIT (R23): {problems:?}"));
    }
    let read = || {
        let conn = Connection::open(file)?;
        let sound: String =
            conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok((sound, Model::read(&conn)?))
    };
    let (sound, model) =
        read().map_err(|error: rusqlite::Error| whole(error.to_string()))?;
    if sound != "ok" {
        return Err(whole(format!("integrity_check: {sound}")));
    }
    assert!(fs::metadata(file).is_ok());
    Ok(model)
}

/// How many calls of one caller had begun when the power failed, and how many of these
/// had returned.
struct Known {
    begun: usize,
    answered: usize,
}

impl Known {
    fn of(caller: u64, marks: &[u64]) -> Self {
        let own = || marks.iter().filter(|mark| **mark / MARKS == caller);
        let begun = own().filter(|mark| *mark % 2 == 0).count();
        let answered = own().filter(|mark| *mark % 2 == 1).count();
        Self { begun, answered }
    }

    /// The range of calls that may be the last one in the store. Its content must be
    /// the expected content after one of them.
    fn allowed(&self, durability: Durability) -> RangeInclusive<usize> {
        match durability {
            Durability::Full => self.answered..=self.begun,
            Durability::Normal => 0..=self.begun,
        }
    }
}

/// Finds the calls of this caller after which the model has the same content as the
/// store. Fails if no call in the allowed range is one of them.
fn place(
    durability: Durability,
    history: &History,
    known: &Known,
    seen: &Model,
) -> Result<RangeInclusive<usize>, String> {
    let seen = seen.part(&history.caller);
    let allowed = known.allowed(durability);
    let is_here = |at: &usize| history.calls[*at].1.part(&history.caller) == seen;
    let mut here = allowed.clone().filter(is_here);
    if let Some(first) = here.next() {
        return Ok(first..=here.next_back().unwrap_or(first));
    }
    let (name, expected) = &history.calls[known.answered];
    let expected = expected.part(&history.caller);
    let difference = expected.difference(&seen);
    let earlier = (0..known.answered).rev().find(is_here);
    Err(match earlier {
        Some(earlier) => format!(
            "ACKNOWLEDGED (R1, R8): answered up to call {} ({name}), found only up to \
             call {earlier}: {difference}",
            known.answered
        ),
        None => format!(
            "PREFIX (R5): it is the store after none of the calls {allowed:?}; after \
             call {} ({name}): {difference}",
            known.answered
        ),
    })
}

/// Fails if the store lost a call but kept a later one: a call that began after the
/// lost call had returned.
fn in_order(
    histories: &[History],
    places: &[RangeInclusive<usize>],
    marks: &[u64],
) -> Result<(), String> {
    let at = |caller: usize, call: usize, end: u64| {
        let mark = caller as u64 * MARKS + call as u64 * 2 + end;
        marks.iter().position(|it| *it == mark)
    };
    for (lost, lost_place) in places.iter().enumerate() {
        let Some(answered) = at(lost, lost_place.end() + 1, 1) else { continue };
        for (kept, kept_place) in places.iter().enumerate() {
            let begun = at(kept, *kept_place.start(), 0);
            if kept != lost && begun.is_some_and(|begun| begun > answered) {
                let (lost, kept) = (&histories[lost].caller, &histories[kept].caller);
                return Err(format!(
                    "ORDER (R1): call {} of {lost} is lost, and call {} of {kept}, \
                     which began after its answer, is there",
                    lost_place.end() + 1,
                    kept_place.start(),
                ));
            }
        }
    }
    Ok(())
}
