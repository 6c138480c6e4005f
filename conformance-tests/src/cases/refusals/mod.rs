//! Each kind of error with which a server refuses a command: at each call, and in a
//! worker (R21).
//!
//! The server did nothing, so the error of the call has to say so, and the store has to
//! be as before. The class of the error says whether it heals by itself.

mod calls;
mod worker;

/// Who can repair the cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heals {
    /// It ends without anybody's help.
    ByItself,
    /// A person has to change something.
    ByAPerson,
}
use Heals::{ByAPerson, ByItself};

/// The errors with which a server, as relq meets it, refuses a command and does nothing.
/// The texts are those of Redis 7.0.
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
