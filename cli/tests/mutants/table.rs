//! The table of the program's mutants, by the command that they break.

mod command;
mod cron;
mod demo;
mod followers;
mod inspect;
mod operator;
mod output;
mod push;
mod results;
mod signals;
mod top;

use crate::mutant::Mutant;

pub(crate) fn all() -> Vec<&'static Mutant> {
    let parts = [
        command::MUTANTS,
        signals::MUTANTS,
        output::MUTANTS,
        push::MUTANTS,
        operator::MUTANTS,
        cron::MUTANTS,
        demo::MUTANTS,
        results::MUTANTS,
        followers::MUTANTS,
        inspect::MUTANTS,
        top::MUTANTS,
    ];
    parts.into_iter().flatten().collect()
}
