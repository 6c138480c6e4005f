//! The name of a group of dead letters, as a form carries it.

use std::str::FromStr;

/// The name of a group of dead letters: the error that its jobs have.
///
/// In a form it is a JSON string. A browser changes line breaks and NUL in the value of a
/// field, and an empty value counts as a missing field: then no group has that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupName(pub(crate) String);

impl GroupName {
    /// The value of a form's field.
    pub(crate) fn to_field(&self) -> String {
        serde_json::to_string(&self.0).expect("a text always has a JSON form")
    }

    /// The name for a visitor.
    pub(crate) fn shown(&self) -> &str {
        if self.0.is_empty() { "an error without text" } else { &self.0 }
    }
}

impl FromStr for GroupName {
    type Err = &'static str;

    fn from_str(field: &str) -> Result<Self, &'static str> {
        let name = serde_json::from_str(field);
        name.map(Self).map_err(|_| "the error of a group must be a JSON string")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_nothing_that_a_form_changes() {
        for name in ["", "\r", "50%\r100%", "a\u{0}b", "<b> \"é\""] {
            let name = GroupName(name.to_owned());

            let field = name.to_field();

            assert!(!field.is_empty() && !field.contains(char::is_control), "{field}");
            assert_eq!(field.parse::<GroupName>().unwrap(), name);
        }
    }
}
