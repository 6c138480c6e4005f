//! A cluster as one of its nodes sees it: the reply to `CLUSTER NODES`.

use super::member::Member;
use crate::SuiteResult;

/// A node as another node sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) id: String,
    /// The port that the node announces.
    pub(super) port: u16,
    pub(super) is_master: bool,
    /// The id of its master, or `-`.
    pub(super) master: String,
    /// The first and the last slot of each range.
    slots: Vec<(u16, u16)>,
    is_self: bool,
    is_missing: bool,
    is_moving_slots: bool,
}

impl Seen {
    pub(super) fn owns(&self, slot: u16) -> bool {
        self.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (id, address, flags) = (words.next()?, words.next()?, words.next()?);
        let port = address.split([':', '@']).nth(1)?.parse().ok()?;
        let master = words.next()?.to_owned();
        let slots: Vec<_> = words.skip(4).collect();
        let has = |flag| flags.split(',').any(|word| word == flag);
        Some(Self {
            id: id.to_owned(),
            port,
            is_master: has("master"),
            master,
            slots: slots.iter().filter_map(|range| slot_range(range)).collect(),
            is_self: has("myself"),
            is_missing: ["fail", "fail?", "handshake", "noaddr"].into_iter().any(has),
            is_moving_slots: slots.iter().any(|range| range.starts_with('[')),
        })
    }
}

/// Parses `0-5460` or `7000`.
fn slot_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// All nodes, as one node sees them.
#[derive(Debug)]
pub(super) struct View(Vec<Seen>);

/// Asks a node for its view.
pub(super) fn view(member: &Member) -> SuiteResult<View> {
    let reply = member.node.try_ask(&["CLUSTER", "NODES"])?;
    Ok(View(reply.lines().filter_map(Seen::parse).collect()))
}

impl View {
    pub(super) fn nodes(&self) -> &[Seen] {
        &self.0
    }

    /// The node's entry for itself.
    pub(super) fn own(&self) -> SuiteResult<&Seen> {
        let own = self.0.iter().find(|node| node.is_self);
        Ok(own.ok_or("a node does not know itself")?)
    }

    /// Fails with the reason if a node is missing, or a slot is being moved.
    pub(super) fn is_well(&self) -> Result<(), String> {
        let ill = self.0.iter().find(|node| node.is_missing || node.is_moving_slots);
        ill.map_or(Ok(()), |node| Err(format!("a node is not well: {node:?}")))
    }

    /// The entries of all nodes, without the mark of the node that was asked. Once the
    /// nodes agree, these are equal for all nodes.
    pub(super) fn agreed(&self) -> Vec<Seen> {
        let nodes = self.0.iter().cloned();
        let mut nodes: Vec<_> =
            nodes.map(|node| Seen { is_self: false, ..node }).collect();
        nodes.sort();
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_a_node_is_and_has() {
        let line = "07c3 127.0.0.1:30004@31004 myself,master - 0 14 4 connected \
                    0-5460 7000 [93-<-292f]";
        let seen = Seen::parse(line).unwrap();

        assert_eq!((seen.id.as_str(), seen.port), ("07c3", 30004));
        assert!(seen.is_master && seen.is_self && seen.is_moving_slots);
        assert!(seen.owns(0) && seen.owns(5460) && seen.owns(7000));
        assert!(!seen.owns(5461) && !seen.is_missing);
    }

    #[test]
    fn a_suspected_node_is_missing() {
        let line = "e7d1 127.0.0.1:30001@31001,host slave,fail? 07c3 1 2 3 connected";
        let seen = Seen::parse(line).unwrap();

        assert!(seen.is_missing && !seen.is_master);
        assert_eq!(seen.master, "07c3");
    }
}
