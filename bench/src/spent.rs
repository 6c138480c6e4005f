//! The cost of some work for a Redis server, from its own statistics.

/// The cost of some work for the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spent {
    pub(crate) commands: u64,
    /// How often the server found something to read: one round trip each.
    pub(crate) reads: u64,
    /// Bytes received and sent.
    pub(crate) bytes: u64,
    /// User and system time, in microseconds.
    pub(crate) cpu_us: f64,
    /// The growth of the memory in use, in bytes.
    pub(crate) memory: f64,
}
