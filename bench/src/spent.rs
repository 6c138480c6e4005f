//! The resources that a Redis server spent on some work, by its own statistics.

/// The resources that a Redis server spent on some work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spent {
    pub(crate) commands: u64,
    /// How often the server read data from a connection. Each read is one round trip.
    pub(crate) reads: u64,
    /// How many bytes the server received and sent.
    pub(crate) bytes: u64,
    /// The user and system time of the server in microseconds.
    pub(crate) cpu_us: f64,
    /// By how many bytes the server's used memory grew.
    pub(crate) memory: f64,
}
