//! Changes a trigger in a queue's file, so that it counts the pieces of batches
//! wrongly.

use std::path::Path;

use rusqlite::Connection;

/// A change of a trigger's SQL, which replaces the text `from` by the text `to`.
#[derive(Clone, Copy)]
pub(crate) struct Alteration {
    pub(crate) trigger: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

impl Alteration {
    /// Changes the trigger in the file. Does nothing if it was changed before.
    pub(crate) fn apply(self, file: &Path) {
        let conn = Connection::open(file).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        let text: String = conn
            .query_row(
                "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1",
                [self.trigger],
                |row| row.get(0),
            )
            .unwrap();
        if text.contains(self.to) {
            return;
        }
        assert_eq!(text.matches(self.from).count(), 1, "{text}");
        let altered = text.replace(self.from, self.to);
        conn.execute_batch(&format!("DROP TRIGGER {}; {altered}", self.trigger))
            .unwrap();
    }
}
