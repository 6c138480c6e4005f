//! The bounds of the buckets of a histogram.

/// Upper bounds of histogram buckets in seconds, for jobs that take between a millisecond
/// and four hours. Each is two to five times the one before it.
pub const DURATION_BUCKETS: [f64; 16] = [
    0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 900.0,
    1800.0, 3600.0, 14_400.0,
];
