//! The addresses of the pages. All begin with the base path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use relq_core::QueueName;

/// The characters of a path segment that are escaped.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Makes addresses below a base path, which is empty or begins with a slash.
#[derive(Debug, Clone)]
pub(crate) struct Links(String);

impl Links {
    pub(crate) fn new(base: String) -> Self {
        Self(base)
    }

    pub(crate) fn base(&self) -> &str {
        &self.0
    }

    /// The address of the overview.
    pub(crate) fn home(&self) -> String {
        if self.0.is_empty() { "/".to_owned() } else { self.0.clone() }
    }

    /// The address of a path, such as `/login`.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The address of a page of a queue, such as `/dead`; of the queue itself for an empty
    /// `page`.
    pub(crate) fn queue(&self, queue: &QueueName, page: &str) -> String {
        format!("{}/queue/{}{page}", self.0, segment(queue.as_str()))
    }
}

/// One segment of a path.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// Adds a query to an address. Fields without a value are left out.
pub(crate) fn with_query(address: &str, fields: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { address.to_owned() } else { format!("{address}?{query}") }
}
