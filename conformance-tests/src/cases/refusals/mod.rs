//! Each kind of error with which a server refuses a command: at each call, and in a
//! worker (R21).
//!
//! A refused command did nothing, so the error of the call must say so, and the store
//! must be as before. The kind of the error decides whether a person must help.

mod calls;
mod worker;

/// Whether the cause of an error ends by itself or needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heals {
    /// The cause ends without a person's help, such as a dataset that is still loading.
    ByItself,
    /// A person has to change something, such as a password or a permission.
    ByAPerson,
}
use Heals::{ByAPerson, ByItself};

/// The errors with which a Redis server refuses a command of relq without executing it,
/// and whether each ends by itself. The texts are those of Redis 7.0.
const REFUSALS: [(&str, Heals); 16] = [
    ("LOADING Redis is loading the dataset in memory", ByItself),
    ("BUSY Redis is busy running a script.", ByItself),
    ("MASTERDOWN Link with MASTER is down.", ByItself),
    ("MISCONF Redis is configured to save RDB snapshots.", ByItself),
    ("NOREPLICAS Not enough good replicas to write.", ByItself),
    ("TRYAGAIN Multiple keys request during rehashing of slot", ByItself),
    ("OOM command not allowed when used memory > 'maxmemory'.", ByItself),
    ("ERR max number of clients reached", ByItself),
    ("NOSCRIPT No matching script.", ByItself),
    ("READONLY You can't write against a read only replica.", ByAPerson),
    ("CLUSTERDOWN The cluster is down", ByAPerson),
    ("MOVED 3999 127.0.0.1:6381", ByAPerson),
    ("NOAUTH Authentication required.", ByAPerson),
    ("NOPERM this user has no permissions to run the command", ByAPerson),
    ("WRONGTYPE Operation against a key of the wrong kind of value", ByAPerson),
    ("ERR unknown command 'EVALSHA', with args beginning with: ", ByAPerson),
];
