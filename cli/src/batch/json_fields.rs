//! The fields of a JSON object, with errors that name the field.

use serde_json::{Map, Value, error::Category};

/// The fields that have not been read yet.
pub(super) struct Fields {
    left: Map<String, Value>,
    /// The names of the fields that were read, whether the object has them or not.
    known: Vec<&'static str>,
}

impl Fields {
    pub(super) fn new(object: Map<String, Value>) -> Self {
        Self { left: object, known: Vec::new() }
    }

    /// Parses a line that holds one JSON object.
    ///
    /// # Errors
    /// Why it is not JSON, and at which byte of the line.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map(Self::new).map_err(|error| {
            let why = error.to_string();
            match (error.classify(), why.split_once(" at line 1 column ")) {
                (Category::Eof, _) => "it is not JSON: it ends too early".to_owned(),
                (_, Some((what, byte))) => {
                    format!("it is not JSON: {what}, at byte {byte} of the line")
                }
                _ => format!("it is not JSON: {why}"),
            }
        })
    }

    pub(super) fn text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<String>, String> {
        self.take(name, "a string", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    pub(super) fn list(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Vec<Value>>, String> {
        self.take(name, "a list", |value| match value {
            Value::Array(list) => Some(list),
            _ => None,
        })
    }

    pub(super) fn object(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Map<String, Value>>, String> {
        self.take(name, "an object", |value| match value {
            Value::Object(object) => Some(object),
            _ => None,
        })
    }

    /// A whole number of 0 or more that fits into `N`. `kind` says which these are.
    pub(super) fn number<N: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        kind: &str,
    ) -> Result<Option<N>, String> {
        self.take(name, kind, |value| N::try_from(value.as_u64()?).ok())
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        kind: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let shown = value.to_string();
                let read = read(value);
                read.map(Some)
                    .ok_or_else(|| format!("{name:?} is {shown}, and not {kind}"))
            }
        }
    }

    /// Fails if the object has a field that was never read.
    pub(super) fn end(self) -> Result<(), String> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => {
                let known = self.known.join(", ");
                Err(format!("there is no field {name:?}, only {known}"))
            }
        }
    }
}
