//! Calls of the application's code on a task of the worker, which a panic must not end.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Returns the result of `call`.
///
/// # Errors
/// The message of the panic, if `call` panics.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(&*panic).to_owned())
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message")
}
