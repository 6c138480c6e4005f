//! What a server may do to this backend, and to who waits at it.

use relq_conformance::own::Zset;

relq_conformance::server_faults!(Zset);
