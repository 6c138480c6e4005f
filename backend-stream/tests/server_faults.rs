//! What a server may do to this backend, and to who waits at it.

use relq_conformance::own::Stream;

relq_conformance::server_faults!(Stream);
