//! The fields of a query or of a form.

use std::{fmt::Display, str::FromStr};

use crate::page_error::PageError;

/// The names and values of a query or of a form, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// The value of the first field of this name. An empty value counts as none.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of a field, checked by its type; `None` if it is missing or empty.
    pub(crate) fn read<T: FromStr<Err: Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, PageError> {
        self.read_with(name, str::parse)
    }

    /// The value of a field that must be there.
    pub(crate) fn need<T: FromStr<Err: Display>>(
        &self,
        name: &str,
    ) -> Result<T, PageError> {
        let missing = || PageError::bad_request(format!("the field {name} is missing"));
        self.read(name)?.ok_or_else(missing)
    }

    /// The value of a field, checked by a function; `None` if it is missing or empty.
    pub(crate) fn read_with<T, E: Display>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, PageError> {
        let value = self.get(name).map(read).transpose();
        value.map_err(|error| PageError::bad_request(error.to_string()))
    }
}
