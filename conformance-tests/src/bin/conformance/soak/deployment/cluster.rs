//! A Redis Cluster of three masters with a replica each.

use std::time::Duration;

use super::{
    Deployment, Fault,
    cluster_view::{Seen, view},
    links::Links,
    member::{Announced, Member, STORING, replicas_are_in_step, wait_until},
};
use crate::SuiteResult;

const MASTERS: usize = 3;
const SLOTS: u16 = 16_384;

/// How long the cluster may take to form, to promote a replica, or to be in step.
const LIMIT: Duration = Duration::from_secs(60);

/// How many keys one MIGRATE moves.
const KEYS_A_MOVE: &str = "20";

pub(super) struct Cluster {
    links: Links,
    members: Vec<Member>,
    /// The slots of the queue's parts.
    slots: Vec<u16>,
}

impl Cluster {
    /// Starts the servers, and waits until all replicas are in step.
    pub(super) fn start(parts: &[String]) -> SuiteResult<Self> {
        let links = Links::new();
        let members = (0..2 * MASTERS)
            .map(|at| Member::start(&links, u8::try_from(at)?, &[], configuration));
        let members: Vec<_> = members.collect::<SuiteResult<_>>()?;
        let slots = parts.iter().map(|name| {
            let slot = members[0].node.try_ask(&["CLUSTER", "KEYSLOT", name])?;
            Ok(slot.trim_start_matches(':').trim_end().parse()?)
        });
        let slots = slots.collect::<SuiteResult<_>>()?;
        let this = Self { links, members, slots };
        this.form()?;
        Ok(this)
    }

    fn form(&self) -> SuiteResult<()> {
        let share = SLOTS.div_ceil(u16::try_from(MASTERS)?);
        for (at, master) in (0..SLOTS).step_by(usize::from(share)).zip(&self.members) {
            let last = (at + share).min(SLOTS) - 1;
            let (first, last) = (at.to_string(), last.to_string());
            master.order(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
        }
        for member in &self.members[1..] {
            let (port, bus) = (member.port.to_string(), member.bus.to_string());
            self.members[0].order(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        let (masters, replicas) = self.members.split_at(MASTERS);
        for (master, replica) in masters.iter().zip(replicas) {
            let master = view(master)?.own()?.id.clone();
            wait_until("a replica knows its master", LIMIT, || {
                let replicate = ["CLUSTER", "REPLICATE", &master];
                replica.order(&replicate).map_err(|error| error.to_string())
            })?;
        }
        self.wait_until_in_step()
    }

    /// The index of the member that owns the part's slot, as `seen` says.
    fn owner(&self, part: usize, seen: &[Seen]) -> SuiteResult<usize> {
        let owner = seen.iter().find(|node| node.owns(self.slots[part]));
        let port = owner.ok_or("no node has the slot of the part")?.port;
        self.index_of(port)
    }

    fn index_of(&self, port: u16) -> SuiteResult<usize> {
        let found = self.members.iter().position(|member| member.port == port);
        Ok(found.ok_or_else(|| format!("no server announces the port {port}"))?)
    }

    /// Fails with the reason if the nodes do not agree, or a replica is not in step.
    fn is_in_step(&self) -> Result<(), String> {
        let text = |error: crate::BoxError| error.to_string();
        let first = view(&self.members[0]).map_err(text)?;
        for member in &self.members {
            let seen = view(member).map_err(text)?;
            seen.is_well()?;
            if seen.agreed() != first.agreed() {
                return Err(format!("{} sees another cluster", member.address()));
            }
            let info = member.node.try_ask(&["CLUSTER", "INFO"]);
            if !info.unwrap_or_default().contains("cluster_state:ok") {
                return Err(format!("{} does not serve", member.address()));
            }
            member.check_clients()?;
        }
        for master in first.nodes().iter().filter(|node| node.is_master) {
            let replicas = first.nodes().iter().filter(|node| node.master == master.id);
            let replicas = replicas.map(|node| self.index_of(node.port));
            let replicas = replicas.collect::<SuiteResult<Vec<_>>>().map_err(text)?;
            if replicas.len() != 1 {
                return Err(format!("a master has {} replicas", replicas.len()));
            }
            let replicas: Vec<_> =
                replicas.iter().map(|at| &self.members[*at]).collect();
            let at = self.index_of(master.port).map_err(text)?;
            replicas_are_in_step(&self.members[at], &replicas)?;
        }
        Ok(())
    }

    /// Moves a slot from one master to another, key by key.
    fn move_slot(&self, slot: u16, from: &Seen, to: &Seen) -> SuiteResult<()> {
        let (source, target) = (self.index_of(from.port)?, self.index_of(to.port)?);
        let (source, target) = (&self.members[source], &self.members[target]);
        let slot = slot.to_string();
        target.order(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.id])?;
        source.order(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to.id])?;
        while let Some(keys) = keys_in(source, &slot)? {
            let port = target.node.port().to_string();
            let mut moving =
                vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            moving.extend(keys.iter().map(String::as_str));
            let moved = source.node.try_ask(&moving)?;
            if moved != "+OK\r\n" && moved != "+NOKEY\r\n" {
                return Err(format!("keys could not be moved: {moved}").into());
            }
        }
        // The new owner first: if the old one gave the slot up first, nobody would have
        // it for a moment.
        target.order(&["CLUSTER", "SETSLOT", &slot, "NODE", &to.id])?;
        source.order(&["CLUSTER", "SETSLOT", &slot, "NODE", &to.id])
    }
}

impl Deployment for Cluster {
    fn url(&self) -> String {
        let hosts = self.members.iter().map(Member::address).collect::<Vec<_>>();
        format!("redis-cluster://{}", hosts.join(","))
    }

    fn faults(&self) -> &'static [Fault] {
        &[Fault::Move, Fault::Kill, Fault::Freeze, Fault::CutOff, Fault::RestartAll]
    }

    fn members(&mut self) -> &mut [Member] {
        &mut self.members
    }

    fn links(&self) -> &Links {
        &self.links
    }

    fn parts(&self) -> usize {
        self.slots.len()
    }

    fn master(&self, part: usize) -> SuiteResult<usize> {
        self.owner(part, view(&self.members[0])?.nodes())
    }

    fn wait_until_promoted(&self, part: usize, instead_of: usize) -> SuiteResult<()> {
        let slot = self.slots[part];
        wait_until("a replica was promoted", LIMIT, || {
            let others = self.members.iter().enumerate();
            let mut others = others.filter(|(at, _)| *at != instead_of);
            let is_promoted = others.any(|(_, member)| {
                view(member).is_ok_and(|seen| {
                    seen.own().is_ok_and(|own| own.is_master && own.owns(slot))
                })
            });
            if is_promoted { Ok(()) } else { Err("no other node has the slot".into()) }
        })
    }

    fn wait_until_in_step(&self) -> SuiteResult<()> {
        wait_until("all replicas are in step", LIMIT, || self.is_in_step())
    }

    fn move_to_and_fro(
        &self,
        part: usize,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> SuiteResult<()> {
        let slot = self.slots[part];
        let seen = view(&self.members[0])?;
        let masters = seen.nodes().iter().filter(|node| node.is_master);
        let (owners, others): (Vec<_>, Vec<_>) =
            masters.partition(|node| node.owns(slot));
        let home = *owners.first().ok_or("no node has the slot of the part")?;
        let away = others[draw(others.len())];
        self.move_slot(slot, home, away)?;
        self.wait_until_in_step()?;
        self.move_slot(slot, away, home)
    }
}

fn configuration(announced: &Announced) -> String {
    let Announced { port, bus, own_bus } = announced;
    format!(
        "{STORING}cluster-enabled yes\ncluster-port {own_bus}\n\
         cluster-announce-ip 127.0.0.1\ncluster-announce-port {port}\n\
         cluster-announce-bus-port {bus}\ncluster-node-timeout 1500\n\
         cluster-allow-replica-migration no\n"
    )
}

/// Some keys of the slot. `None` if the node has none.
fn keys_in(node: &Member, slot: &str) -> SuiteResult<Option<Vec<String>>> {
    let reply = node.node.try_ask(&["CLUSTER", "GETKEYSINSLOT", slot, KEYS_A_MOVE])?;
    let keys: Vec<_> = reply.lines().skip(2).step_by(2).map(str::to_owned).collect();
    Ok(Some(keys).filter(|keys| !keys.is_empty()))
}
