//! Audit: checks that each job is in exactly one state (R23).
//!
//! Constraints of the schema ensure that a job has one state, that a unique key has one
//! holder, and that each state has the columns it needs. SQLite's own check of the file
//! verifies these constraints, and that every index agrees with its table. The
//! statements here check the rest.

use relq_core::operator::Audit;

use crate::call::Call;
use crate::failure::Failure;
use crate::headers;
use crate::store::Store;

/// The call that runs the audit on the database thread. It reads the whole file.
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
