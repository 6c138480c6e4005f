//! What a server may do to this backend, and to who waits at it.

use conformance_tests::own::Zset;

conformance_tests::server_faults!(Zset);
