//! What a server may do to this backend, and to who waits at it.

use conformance_tests::own::Stream;

conformance_tests::server_faults!(Stream);
