//! The rules that every backend keeps, judged on this one.

use relq_conformance::own::Zset;

relq_conformance::conformance!(Zset, redis);
