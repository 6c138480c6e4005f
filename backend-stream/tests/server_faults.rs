//! Faults of the server, and their effect on this backend and on its waiting claims.

use relq_conformance::own::Stream;

relq_conformance::server_faults!(Stream);
