//! The fields of a JSON object, with errors that name the field.

use serde_json::{Value, error::Category};

use super::json::Json;

/// The fields that have not been read yet.
pub(super) struct Fields {
    left: Vec<(String, Json)>,
    /// The names of the fields that were read, whether the object has them or not.
    known: Vec<&'static str>,
}

impl Fields {
    pub(super) fn new(members: Vec<(String, Json)>) -> Self {
        Self { left: members, known: Vec::new() }
    }

    /// Parses a line that holds one JSON object.
    ///
    /// # Errors
    /// Why it is not JSON, and at which byte of the line.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let json: Json = serde_json::from_slice(text).map_err(|error| {
            let why = error.to_string();
            match (error.classify(), why.split_once(" at line 1 column ")) {
                (Category::Eof, _) => "it is not JSON: it ends too early".to_owned(),
                (_, Some((what, byte))) => {
                    format!("it is not JSON: {what}, at byte {byte} of the line")
                }
                _ => format!("it is not JSON: {why}"),
            }
        })?;
        match json {
            Json::Object(members) => Ok(Self::new(members)),
            _ => Err("it is not a JSON object".to_owned()),
        }
    }

    pub(super) fn text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<String>, String> {
        self.take(name, "a string", |value| match value {
            Json::Text(text) => Ok(text),
            other => Err(other),
        })
    }

    pub(super) fn list(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Vec<Json>>, String> {
        self.take(name, "a list", |value| match value {
            Json::List(list) => Ok(list),
            other => Err(other),
        })
    }

    /// The members of an object, in their order.
    pub(super) fn object(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Vec<(String, Json)>>, String> {
        self.take(name, "an object", |value| match value {
            Json::Object(members) => Ok(members),
            other => Err(other),
        })
    }

    /// A whole number of 0 or more that fits into `N`. `kind` says which these are.
    pub(super) fn number<N: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        kind: &str,
    ) -> Result<Option<N>, String> {
        self.take(name, kind, |value| {
            let number = match &value {
                Json::Other(number) => number.as_u64(),
                _ => None,
            };
            number.and_then(|number| N::try_from(number).ok()).ok_or(value)
        })
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        kind: &str,
        read: impl FnOnce(Json) -> Result<T, Json>,
    ) -> Result<Option<T>, String> {
        self.known.push(name);
        // Of several fields with the same name the last one counts.
        match self.left.extract_if(.., |(field, _)| field.as_str() == name).last() {
            None | Some((_, Json::Other(Value::Null))) => Ok(None),
            Some((_, value)) => read(value).map(Some).map_err(|other| {
                format!("{name:?} is {}, and not {kind}", Value::from(other))
            }),
        }
    }

    /// Fails if the object has a field that was never read.
    pub(super) fn end(self) -> Result<(), String> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => {
                let known = self.known.join(", ");
                Err(format!("there is no field {name:?}, only {known}"))
            }
        }
    }
}
