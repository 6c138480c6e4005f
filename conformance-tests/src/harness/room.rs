//! Assigns each queue of a case to a database of the Redis server, and finds keys that
//! belong to none of the queues (R19).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use relq_core::QueueName;

use crate::{Subject, harness::store_site::StoreSite};

/// How many queues can live in one database of a Redis server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Any number of queues: each has keys of its own.
    ManyQueues,
    /// One queue: all keys of the database belong to it.
    OneQueue,
}

/// The number of databases of a Redis server by default.
pub(crate) const DATABASES: usize = 16;

/// The database that each queue of a case uses. The first queue uses database 0.
#[derive(Debug)]
pub(crate) struct Rooms {
    room: Room,
    taken: Mutex<BTreeMap<QueueName, usize>>,
}

impl Rooms {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, taken: Mutex::default() }
    }

    /// Returns the number of the database that the queue uses. The first call for a
    /// queue assigns it.
    pub(crate) fn of(&self, queue: &QueueName) -> usize {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match self.room {
            Room::ManyQueues => 0,
            Room::OneQueue => taken.len(),
        };
        *taken.entry(queue.clone()).or_insert(next)
    }

    /// Returns every queue that uses a database so far, with the database's number.
    pub(crate) fn all(&self) -> BTreeMap<QueueName, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lists the keys on the server that belong to none of the queues, as text for a
    /// failure message.
    pub(crate) async fn foreign_keys(
        &self,
        site: &StoreSite,
        subject: &dyn Subject,
    ) -> Vec<String> {
        let mut foreign = Vec::new();
        if matches!(site, StoreSite::Embedded { .. }) {
            return foreign;
        }
        let queues = self.all();
        for database in queues.values().copied().collect::<BTreeSet<_>>() {
            let mut found = strings(&site.tell(&keys_of(database)).await);
            let here = queues.iter().filter(|(_, site)| **site == database);
            for (queue, _) in here {
                found.retain(|key| !subject.owns(queue, key));
            }
            foreign.extend(found.iter().map(|key| key.escape_ascii().to_string()));
        }
        foreign
    }

    /// Returns the first of `names`. If each queue needs a database of its own, these
    /// are as many as the server has databases, less one for another queue.
    pub(crate) fn fit<'a, T>(&self, names: &'a [T]) -> &'a [T] {
        match self.room {
            Room::ManyQueues => names,
            Room::OneQueue => &names[..names.len().min(DATABASES - 1)],
        }
    }
}

/// Returns the URL `endpoint` with the number of another database of the same server.
pub(crate) fn in_database(endpoint: &str, database: usize) -> String {
    if database == 0 {
        return endpoint.to_owned();
    }
    if endpoint.starts_with("unix://") {
        return format!("{endpoint}?db={database}");
    }
    format!("{}/{database}", endpoint.trim_end_matches("/0"))
}

/// The first line of each script that the suite itself runs. By this line, a record of
/// the backend's commands leaves out the suite's scripts.
pub(crate) const SUITES_SCRIPT: &str = "-- the suite's own\n";

/// Returns the command that lists all keys of a database.
fn keys_of(database: usize) -> [Vec<u8>; 4] {
    let script = "redis.call('SELECT', ARGV[1]) return redis.call('KEYS', '*')";
    let script = format!("{SUITES_SCRIPT}{script}");
    ["EVAL", &script, "0", &database.to_string()].map(|word| word.as_bytes().to_vec())
}

/// Returns the command that counts what is stored in the selected database. Its reply
/// is the number of all list elements, hash fields, set members, stream entries and
/// strings.
pub(crate) fn size() -> [Vec<u8>; 3] {
    let script = "local size, commands = 0, {list = 'LLEN', hash = 'HLEN', \
                  zset = 'ZCARD', set = 'SCARD', stream = 'XLEN'} \
                  for _, key in ipairs(redis.call('KEYS', '*')) do \
                  local command = commands[redis.call('TYPE', key).ok] \
                  size = size + (command and redis.call(command, key) or 1) end \
                  return size";
    let script = format!("{SUITES_SCRIPT}{script}");
    ["EVAL", &script, "0"].map(|word| word.as_bytes().to_vec())
}

/// Parses a raw reply that is a list of strings.
pub(crate) fn strings(answer: &[u8]) -> Vec<Vec<u8>> {
    let mut strings = Vec::new();
    let Some((_, mut rest)) = line(answer) else { return strings };
    while let Some((head, behind)) = line(rest) {
        let length =
            std::str::from_utf8(&head[1..]).ok().and_then(|it| it.parse().ok());
        let length: usize = length.expect("the reply has the length of each key");
        strings.push(behind[..length].to_vec());
        rest = &behind[length + 2..];
    }
    strings
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_its_own_database_where_there_is_room_for_one() {
        let [a, b] = ["a", "b"].map(|name| QueueName::new(name).unwrap());
        let rooms = Rooms::new(Room::OneQueue);

        assert_eq!([rooms.of(&a), rooms.of(&b), rooms.of(&a)], [0, 1, 0]);
        assert_eq!(Rooms::new(Room::ManyQueues).of(&b), 0);
        assert_eq!(rooms.fit(&[0; 99]).len(), 15);
    }

    #[test]
    fn an_endpoint_names_its_database() {
        assert_eq!(in_database("unix:///x.sock", 3), "unix:///x.sock?db=3");
        assert_eq!(in_database("redis://h:1/0", 3), "redis://h:1/3");
        assert_eq!(in_database("redis://h:1", 0), "redis://h:1");
    }

    #[test]
    fn keys_may_be_any_bytes() {
        let keys: [&[u8]; 3] = [b"", b"a\r\nb", b"\xff"];

        assert_eq!(strings(b"*3\r\n$0\r\n\r\n$4\r\na\r\nb\r\n$1\r\n\xff\r\n"), keys);
        assert_eq!(strings(b"*0\r\n"), Vec::<Vec<u8>>::new());
    }
}
