//! Faults of the server, and their effect on this backend and on its waiting claims.

use relq_conformance::own::Zset;

relq_conformance::server_faults!(Zset);
