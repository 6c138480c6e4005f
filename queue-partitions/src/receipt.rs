//! A receipt of a partitioned queue: the part's number in two bytes, then the token that
//! the part made.

use bytes::{BufMut as _, Bytes, BytesMut};
use relq_core::{Delivery, Receipt};

/// The number of bytes before the part's own token.
const PREFIX: usize = 2;

/// The largest number of parts that the two bytes of a receipt can name.
pub(crate) const MOST_PARTS: usize = 1 << 16;

/// Marks a delivery with the part that it came from.
pub(crate) fn wrap(part: usize, mut delivery: Delivery) -> Delivery {
    let own = &delivery.receipt;
    let mut token = BytesMut::with_capacity(PREFIX + own.token().len());
    token.put_u16(u16::try_from(part).expect("a queue has at most 65,536 parts"));
    token.put_slice(own.token());
    let token = token.freeze();
    delivery.receipt = Receipt::new(own.job().clone(), own.attempt(), token);
    delivery
}

/// Returns the part of a receipt, and the receipt that this part made. `None` for a
/// receipt that no part of a queue with this number of `parts` has made.
pub(crate) fn unwrap(receipt: &Receipt, parts: usize) -> Option<(usize, Receipt)> {
    let token = receipt.token();
    let (prefix, _) = token.split_first_chunk::<PREFIX>()?;
    let part = usize::from(u16::from_be_bytes(*prefix));
    let own: Bytes = token.slice(PREFIX..);
    let own = Receipt::new(receipt.job().clone(), receipt.attempt(), own);
    (part < parts).then_some((part, own))
}

/// The members of a call that belong to one part, with their positions in the call.
#[derive(Debug)]
pub(crate) struct Group<T> {
    pub(crate) part: usize,
    pub(crate) positions: Vec<usize>,
    pub(crate) members: Vec<T>,
}

/// Groups the members of a call by part. Members that belong to no part are left out.
pub(crate) fn grouped<T>(
    members: impl Iterator<Item = Option<(usize, T)>>,
) -> Vec<Group<T>> {
    let mut groups: Vec<Group<T>> = Vec::new();
    for (position, member) in members.enumerate() {
        let Some((part, member)) = member else { continue };
        let group = match groups.iter_mut().find(|group| group.part == part) {
            Some(group) => group,
            None => {
                groups.push(Group { part, positions: vec![], members: vec![] });
                groups.last_mut().expect("one was pushed")
            }
        };
        group.positions.push(position);
        group.members.push(member);
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq_core::JobId;

    use super::*;

    fn receipt(token: &'static [u8]) -> Receipt {
        Receipt::new(JobId::new("job").unwrap(), 3, token)
    }

    #[test]
    fn a_receipt_leads_back_to_its_part() {
        let own = receipt(b"\x00token\xff");
        let delivery = Delivery::new(own.clone(), "", Duration::from_secs(1));

        let wrapped = wrap(300, delivery).receipt;

        assert_eq!(unwrap(&wrapped, 301), Some((300, own)));
        assert_eq!(unwrap(&wrapped, 300), None);
        assert_eq!((wrapped.job().as_str(), wrapped.attempt()), ("job", 3));
    }

    #[test]
    fn an_invalid_receipt_has_no_part() {
        for token in [&b""[..], b"\x00"] {
            assert_eq!(unwrap(&receipt(token), 2), None);
        }
    }

    #[test]
    fn members_are_grouped_with_their_positions() {
        let members = [Some((1, 'a')), Some((0, 'b')), None, Some((1, 'c'))];

        let groups = grouped(members.into_iter());

        let as_text: Vec<_> =
            groups.iter().map(|it| format!("{it:?}").replace("Group ", "")).collect();
        assert_eq!(
            as_text,
            [
                "{ part: 1, positions: [0, 3], members: ['a', 'c'] }",
                "{ part: 0, positions: [1], members: ['b'] }",
            ]
        );
    }
}
