//! What a server may do to this backend, and to who waits at it.

mod subject;

use subject::Stream;

conformance_tests::server_faults!(Stream);
