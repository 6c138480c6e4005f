//! Only one backend may use a queue (R25). On Redis, a key of the queue, the marker,
//! names that backend.

mod fixture;
mod marking;
mod refusing;
mod rereading;
