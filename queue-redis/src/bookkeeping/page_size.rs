//! How many elements to request at once, so that a reply is not too large and a large
//! collection does not take too many replies.

/// The number of bytes that a reply should have. The server builds a reply in one step,
/// during which its other clients wait, and this client keeps the whole reply in
/// memory.
pub const REPLY_BYTES: usize = 1024 * 1024;

/// The largest number of elements of a page.
const MOST: usize = 500;

/// The number of elements of the first page if the elements may be payloads.
const FIRST_PAYLOADS: usize = 1;

/// The number of elements of the first page if each may have an error text. A stored error
/// has at most 8 KiB.
const FIRST_ERRORS: usize = REPLY_BYTES / 8192;

/// The factor by which a page may have more elements than the last one. It is limited
/// because the next elements may be larger than those of the last page.
const GROWTH: usize = 16;

/// The number of elements of the next page.
///
/// It follows the size of the last reply. A reply can be much larger than
/// [`REPLY_BYTES`] only when a few large elements follow many small ones.
#[derive(Debug, Clone, Copy)]
pub struct PageSize(usize);

impl PageSize {
    /// The size of the first page, if the elements are ids or names of leases. These
    /// are small.
    pub fn of_names() -> Self {
        Self(MOST)
    }

    /// The size of the first page, if the elements may be payloads.
    pub fn of_payloads() -> Self {
        Self(FIRST_PAYLOADS)
    }

    /// The size of the first page, if each element may have an error text.
    pub fn of_errors() -> Self {
        Self(FIRST_ERRORS)
    }

    /// The number of elements to request.
    pub fn count(self) -> usize {
        self.0
    }

    /// The number of elements to request if at most `most` are needed.
    pub fn count_of(&mut self, most: usize) -> usize {
        self.0 = self.0.min(most).max(1);
        self.0
    }

    /// Sets the number of elements of the next page from the size of the last one, in
    /// bytes. An empty page changes nothing.
    pub fn adapt(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let fitting = self.0.saturating_mul(REPLY_BYTES) / bytes;
        self.0 = fitting.clamp(1, MOST.min(self.0 * GROWTH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many elements each of `count` pages has if an element has `element` bytes.
    fn pages(element: usize, count: usize) -> Vec<usize> {
        let mut size = PageSize::of_payloads();
        let next = |_| {
            let now = size.count();
            size.adapt(now * element);
            now
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn small_elements_come_in_large_pages_after_a_few_replies() {
        assert_eq!(pages(100, 5), [1, 16, 256, 500, 500]);
        assert_eq!(pages(0, 5), [1; 5]);
    }

    #[test]
    fn a_reply_of_large_elements_is_about_as_large_as_it_should_be() {
        assert_eq!(pages(16 * REPLY_BYTES, 3), [1, 1, 1]);
        assert_eq!(pages(REPLY_BYTES / 10, 3), [1, 10, 10]);
    }
}
