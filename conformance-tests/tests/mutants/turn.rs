//! Which mutants a run includes.

use std::{
    env,
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Of the checks on mutants, a run includes one in this many.
const TURNS: u64 = 3;

const DAY: Duration = Duration::from_hours(24);

/// The turn of a run: the number of the day. It is read once, so that a run that goes on past
/// midnight stays with its checks, and printed with the first test that fails.
static TODAY: LazyLock<u64> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let day = now.expect("it is after 1970").as_secs() / DAY.as_secs();
    println!("turn {} of {TURNS}; RELQ_THOROUGH=1 runs all", day % TURNS);
    day
});

/// Whether this is a whole run, for which `MUTANTS=check` or `MUTANTS=write` asks. It takes
/// minutes more. Most mutants then go through all checks, and not only through those that
/// they name. The healthy backend goes through each check that a mutant names, and else only
/// through the searches, because the conformance tests of zset run the other checks on it.
pub(crate) fn is_whole() -> bool {
    env::var_os("MUTANTS").is_some()
}

/// Whether the mutant at this place of its list runs through its cases, searches and random
/// sequences today.
///
/// These tests guard the suite, and the suite changes seldom. So a third of the mutants run
/// on each day, and all of them in three days. All run in a whole run, and with
/// `RELQ_THOROUGH=1`.
pub(crate) fn is_in_turn(place: usize) -> bool {
    let is_thorough = env::var_os("RELQ_THOROUGH").is_some();
    is_whole() || is_thorough || (place as u64 + *TODAY).is_multiple_of(TURNS)
}
