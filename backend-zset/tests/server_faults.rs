//! Faults of the server, and what they mean for this backend and its waiting claims.

use relq_conformance::own::Zset;

relq_conformance::server_faults!(Zset);
