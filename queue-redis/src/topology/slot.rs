//! The slot of a key in a Redis Cluster, by the specification of Redis Cluster: CRC16
//! (XMODEM) of the hash tag, modulo 16,384.

const SLOTS: u16 = 16_384;

/// The slot of `key`.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

/// The text between the first `{` and the next `}` if it is not empty, else the whole
/// key.
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        Some(close) if close > 0 => &rest[..close],
        _ => key,
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of `CLUSTER KEYSLOT` of Redis 7.0.15.
    #[test]
    fn slots_are_those_of_the_server() {
        for (key, slot) in [
            ("foo", 12_182),
            ("{emails}:leased", 3_728),
            ("a{}b", 13_694),
            ("{a}{b}", 15_495),
            ("{", 4_092),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn the_keys_of_a_queue_are_in_one_slot() {
        assert_eq!(slot_of(b"emails"), slot_of(b"{emails}:leased"));
        assert_eq!(slot_of(b"two words"), slot_of(b"{two words}:marker"));
    }
}
