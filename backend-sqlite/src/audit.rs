//! Audit: proves that each job is in exactly one place (R23).
//!
//! That a job has one state, that a unique key has one holder and that each state
//! has what it needs are constraints of the schema. SQLite's own check of the file
//! proves those, and that every index agrees with its table; the rest is asked here.

use relq_core::Audit;

use crate::call::Call;
use crate::failure::Failure;
use crate::headers;
use crate::store::Store;

/// A look at everything.
pub(crate) struct Inspect;

impl Call for Inspect {
    type Answer = Audit;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Audit>, Failure> {
        inspect(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Audit, Failure> {
        inspect(store)
    }
}

fn inspect(store: &Store<'_>) -> Result<Audit, Failure> {
    let mut problems = store.check_file()?;
    problems.extend(store.check_tables()?);
    store.each_headers(|id, bytes| {
        if headers::decode(Some(bytes)).is_none() {
            problems.push(format!("job {id} has damaged headers"));
        }
    })?;
    Ok(Audit { jobs: store.count_jobs()?, problems })
}
