//! Proving that each job is in exactly one place (R23).
//!
//! Everything is read page by page while the queue goes on, so one reading can see a
//! job twice or not at all. What two readings in a row find is really wrong.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use queue_core::{Audit, Error, Operation};
use queue_redis::{
    Reply, command,
    entry::{Entry, id_of},
};

use crate::{lease::Lease, scripts::Store};

/// Elements read at once.
const PAGE: usize = 500;

/// Reads everything, twice if something looks wrong.
pub(crate) async fn audit(store: &Store) -> Result<Audit, Error> {
    let (jobs, first) = read(store).await?.judge();
    if first.is_empty() {
        return Ok(Audit { jobs, problems: Vec::new() });
    }
    let (jobs, second) = read(store).await?.judge();
    Ok(Audit { jobs, problems: first.intersection(&second).cloned().collect() })
}

/// What one reading saw.
#[derive(Default)]
struct Seen {
    bare: u64,
    places: BTreeMap<Bytes, Vec<&'static str>>,
    entries: BTreeSet<Bytes>,
    errors: BTreeSet<Bytes>,
    holders: BTreeMap<Bytes, Bytes>,
    bound_ids: BTreeSet<Bytes>,
    leases: BTreeMap<Bytes, Bytes>,
    held: BTreeSet<Bytes>,
}

async fn read(store: &Store) -> Result<Seen, Error> {
    let keys = &store.keys;
    let mut seen = Seen::default();
    // In the order in which a job moves, so that a moving one is seen at least once.
    let sets = [(&keys.later, "scheduled"), (&keys.ranked, "ranked")];
    for (set, place) in sets {
        for (id, _) in pairs(store, "ZSCAN", set).await? {
            seen.place(id, place);
        }
    }
    for (list, place) in [(&keys.ready, "ready"), (&keys.handed, "handed")] {
        read_list(store, list, place, &mut seen).await?;
    }
    for (member, _) in pairs(store, "ZSCAN", &keys.leased).await? {
        match Lease::parse(&member) {
            Some(lease) => seen.leases.insert(member, lease.id),
            None => seen.leases.insert(member, Bytes::new()),
        };
    }
    seen.held = names(pairs(store, "HSCAN", &keys.held).await?);
    for (id, _) in pairs(store, "ZSCAN", &keys.dead).await? {
        seen.place(id, "dead");
    }
    seen.entries = names(pairs(store, "HSCAN", &keys.jobs).await?);
    seen.errors = names(pairs(store, "HSCAN", &keys.errors).await?);
    seen.holders = pairs(store, "HSCAN", &keys.unique).await?.into_iter().collect();
    let ids = pairs(store, "ZSCAN", &keys.ids).await?;
    seen.bound_ids =
        names(ids.into_iter().filter(|(_, at)| &at[..] == b"inf").collect());
    Ok(seen)
}

fn names(pairs: Vec<(Bytes, Bytes)>) -> BTreeSet<Bytes> {
    pairs.into_iter().map(|(name, _)| name).collect()
}

async fn read_list(
    store: &Store,
    list: &str,
    place: &'static str,
    seen: &mut Seen,
) -> Result<(), Error> {
    let mut start = 0;
    loop {
        let mut cmd = command("LRANGE");
        cmd.arg(list).arg(start).arg(start + PAGE - 1);
        let elements = store.conn.call(Operation::Audit, &cmd).await?.list()?;
        let count = elements.len();
        for element in elements {
            let element = element.bytes()?;
            if Entry::decode(&element).is_ok() {
                seen.place(id_of(&element), place);
            } else {
                seen.bare += 1;
            }
        }
        if count < PAGE {
            return Ok(());
        }
        start += PAGE;
    }
}

/// All pairs of a hash or sorted set.
async fn pairs(
    store: &Store,
    scan: &'static str,
    key: &str,
) -> Result<Vec<(Bytes, Bytes)>, Error> {
    let mut pairs = BTreeMap::new();
    let mut cursor = String::from("0");
    loop {
        let mut cmd = command(scan);
        cmd.arg(key).arg(&cursor).arg("COUNT").arg(PAGE);
        let mut reply = store.conn.call(Operation::Audit, &cmd).await?.list()?;
        let (Some(page), Some(next)) = (reply.pop(), reply.pop()) else {
            return Ok(pairs.into_iter().collect());
        };
        let mut page = page.list()?.into_iter().map(Reply::bytes);
        while let (Some(name), Some(value)) = (page.next(), page.next()) {
            pairs.insert(name?, value?);
        }
        cursor = next.text()?;
        if cursor == "0" {
            return Ok(pairs.into_iter().collect());
        }
    }
}

impl Seen {
    fn place(&mut self, id: Bytes, place: &'static str) {
        self.places.entry(id).or_default().push(place);
    }

    /// How many jobs there are, and what is wrong with them.
    ///
    /// Ids are not compared between places: two jobs may have got one id, and each
    /// lease, each list element and each field of `jobs` is a job of its own.
    fn judge(self) -> (u64, BTreeSet<String>) {
        let mut problems = BTreeSet::new();
        let by_id = |place: &str| matches!(place, "scheduled" | "ranked" | "dead");
        for (id, places) in &self.places {
            let count = places.iter().filter(|place| by_id(place)).count();
            let entries = usize::from(self.entries.contains(id));
            if count != entries {
                let id = text(id);
                problems
                    .insert(format!("job {id} in {places:?} has {entries} entries"));
            }
        }
        let lost = |what: &str, id: &Bytes| format!("{what} {} of no job", text(id));
        let is_gone = |id: &&Bytes| !self.is_anywhere(id);
        problems
            .extend(self.entries.iter().filter(is_gone).map(|id| lost("entry", id)));
        problems.extend(self.errors.iter().filter(is_gone).map(|id| lost("error", id)));
        problems.extend(self.bound_ids.iter().filter(is_gone).map(|id| lost("id", id)));
        let leases: BTreeSet<_> = self.leases.keys().cloned().collect();
        let unpaired = leases.symmetric_difference(&self.held);
        problems.extend(unpaired.map(|lease| lost("lease or entry", lease)));
        let unheld = |(key, holder)| self.unheld(key, holder);
        problems.extend(self.holders.iter().filter_map(unheld));
        let placed: usize = self.places.values().map(Vec::len).sum();
        (placed as u64 + self.leases.len() as u64 + self.bare, problems)
    }

    fn is_anywhere(&self, id: &Bytes) -> bool {
        self.places.contains_key(id) || self.leases.values().any(|leased| leased == id)
    }

    /// What is wrong with a unique key: its holder has to be alive.
    fn unheld(&self, key: &Bytes, holder: &Bytes) -> Option<String> {
        let space = holder.iter().position(|byte| *byte == b' ')?;
        let id = holder.slice(space + 1..);
        let is_waiting = |places: &Vec<_>| places.iter().any(|place| *place != "dead");
        let is_leased = self.leases.values().any(|leased| *leased == id);
        let is_alive = is_leased || self.places.get(&id).is_some_and(is_waiting);
        (!is_alive).then(|| format!("unique key {} is held by no job", text(key)))
    }
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
