//! Services of tower as handlers, and handlers as services of tower, so that layers work
//! around a handler.
//!
//! ```text
//!           ready_for(3)  +----------------+  poll_ready  +--------+    +---------+
//!  worker --------------> | ServiceHandler | -----------> | layers | -> | Handler |
//!     |     handle(job)   |  ready clones  |  call(job)   |        |    | Service |
//!     +-----------------> +----------------+ -----------> +--------+    +---------+
//! ```
//!
//! tower separates readiness from the call: a service reserves what a call needs in
//! `poll_ready`. The worker does this before it claims, so that a job that it could not
//! run stays in the queue, where another worker can claim it.

mod handler_service;
mod service_handler;
mod shared_service;

pub use handler_service::HandlerService;
pub use service_handler::{ServiceHandler, layered, service};
pub use shared_service::SharedService;
