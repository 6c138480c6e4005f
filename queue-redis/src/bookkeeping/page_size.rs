//! How much to request at once, so that a reply is neither large nor one of many.

/// The size that a reply should have. A reply that the server builds in one step delays
/// all of its clients, and this client has it in memory as a whole.
pub const REPLY_BYTES: usize = 1024 * 1024;

/// The most elements of a page.
const MOST: usize = 500;

/// The elements of a first page, if they may be payloads: payloads of the largest size
/// still make a reply that fits in memory.
const FIRST_PAYLOADS: usize = 4;

/// The factor by which a page may be larger than the last one, because the elements of
/// one page may be smaller than those of the next.
const GROWTH: usize = 4;

/// The number of elements of the next page.
///
/// It follows the size of the last reply. A reply that is much larger than
/// [`REPLY_BYTES`] occurs when a few large elements follow many small ones.
#[derive(Debug, Clone, Copy)]
pub struct PageSize(usize);

impl PageSize {
    /// For elements that are ids or names of leases, which are small.
    pub fn of_names() -> Self {
        Self(MOST)
    }

    /// For elements that may be payloads.
    pub fn of_payloads() -> Self {
        Self(FIRST_PAYLOADS)
    }

    /// The number of elements to request.
    pub fn count(self) -> usize {
        self.0
    }

    /// Takes into account that the elements of the last page had this size.
    pub fn adapt(&mut self, bytes: usize) {
        let fitting = self.0.saturating_mul(REPLY_BYTES) / bytes.max(1);
        self.0 = fitting.clamp(1, MOST.min(self.0 * GROWTH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the pages of a collection with elements of these bytes.
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
        assert_eq!(pages(100, 5), [4, 16, 64, 256, 500]);
        assert_eq!(pages(0, 5), [4, 16, 64, 256, 500]);
    }

    #[test]
    fn a_reply_of_large_elements_is_about_as_large_as_it_should_be() {
        assert_eq!(pages(16 * REPLY_BYTES, 3), [4, 1, 1]);
        assert_eq!(pages(REPLY_BYTES / 10, 3), [4, 10, 10]);
    }
}
