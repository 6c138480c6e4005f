//! The hash of names that several processes must agree on.

/// The hash FNV-1a of the bytes of a text, in 64 bits. Clients in other languages can
/// compute it, too.
///
/// ```
/// assert_eq!(relq_core::fnv1a(""), 0xcbf2_9ce4_8422_2325);
/// assert_eq!(relq_core::fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
