//! What a server may do to this backend and to the claims that wait on it.

use relq_conformance::own::Stream;

relq_conformance::server_faults!(Stream);
