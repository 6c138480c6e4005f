//! The suite that proves a backend of relq reliable.
//!
//! A backend plugs in with one [`Subject`] and one line, and gets one named test a
//! case under `cargo test`:
//!
//! ```text
//! struct MySubject { directory: TempDir }
//!
//! #[async_trait]
//! impl Subject for MySubject {
//!     async fn start() -> Self { … }
//!     async fn connect(&self, queue, environment) -> Result<Arc<dyn Queue>, Error> { … }
//! }
//!
//! conformance_tests::conformance!(MySubject, embedded);
//! ```
//!
//! Each case has a private store, judges one promise, and names the rules of the
//! contract that it judges ([`cases`]). After each case an audit must find every job
//! in exactly one place.
//!
//! Nothing passes by not running. A case that needs an option that the backend does
//! not claim is replaced by a probe that the option is refused and nothing stored. A
//! case that does not concern the kind of store ([`Profile`]) is shown as ignored,
//! with the reason.
//!
//! No case relies on luck with time. What a case means to lose has a short lease and
//! what it means to keep a long one; time passes by one method, which moves the
//! injected clock of an embedded store and waits for a server's.

mod bad_input;
mod cases;
mod checks;
mod clock;
mod clocks;
#[cfg(feature = "containers")]
mod containers;
mod dead_letters;
mod delay;
mod dropped;
mod environment;
mod expiry;
pub mod fault;
mod figures;
mod idempotence;
mod leases;
mod leaving;
pub mod model;
mod neighbours;
mod no_loss;
mod one_holder;
mod operator;
mod order;
mod place;
mod plug;
mod probe;
pub mod processes;
mod races;
mod recovery;
mod registry;
pub mod report;
mod run;
pub mod server;
pub mod steps;
mod store;
mod subject;
mod turns;
mod unique;
mod unique_expiry;
mod unique_moves;
mod waiting;

pub use async_trait::async_trait;
pub use probe::Need;
pub use registry::{Case, Scope, cases};
pub use run::run;
pub use subject::{Profile, Subject};
