//! Cursors of the store as text in a URL.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use relq_core::operator::PageCursor;

pub(crate) fn encode(cursor: &PageCursor) -> String {
    URL_SAFE_NO_PAD.encode(&cursor.0)
}

/// Reads a cursor. The store checks what is in it.
pub(crate) fn decode(text: &str) -> Result<PageCursor, &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(text);
    bytes.map(|it| PageCursor(it.into())).map_err(|_| "the cursor cannot be read")
}
