//! The user that the README names has the rights that the backend needs, and no more.

use conformance_tests::own::Stream;

// For a database other than the first, and the connection's name.
conformance_tests::acl!(Stream, beside "+@connection");
