//! The audit of followers (R30): each held job is among the followers of its leader, or is
//! an orphan, and each leader has not ended.

use bytes::{Buf, Bytes};
use relq_core::Error;

use super::{
    Seen,
    record::{Record, Source},
};
use crate::{
    bookkeeping::{Bookkeeping, Scanned, peek::text},
    entry::Entry,
};

/// The number of bytes of a size in a record, and at the start of a list of followers.
const SIZE: usize = 4;

impl Seen {
    /// Adds what the entry of a job in the hash `jobs` says of its leader.
    pub(super) async fn held(&mut self, id: &[u8], entry: &Bytes) -> Result<(), Error> {
        let Some(leader) = Entry::decode(entry).ok().and_then(|entry| entry.leader)
        else {
            return Ok(());
        };
        let leader = leader.as_str().as_bytes();
        self.add(Record::of_id(id, Source::Held, leader)).await?;
        let size = u32::try_from(entry.len()).unwrap_or(u32::MAX).to_be_bytes();
        let sized = [&size, id].concat();
        self.add(Record::of_id(leader, Source::HeldBy, &sized)).await
    }

    /// Reads the lists of followers, and the orphans.
    pub(super) async fn read_followers(
        &mut self,
        bookkeeping: &Bookkeeping,
    ) -> Result<(), Error> {
        let keys = &bookkeeping.keys;
        let mut lists = bookkeeping.scan_pages(Scanned::Hash, &keys.followers);
        while let Some(page) = lists.next_page().await? {
            for (leader, list) in page {
                self.list(&leader, list).await?;
            }
        }
        let mut orphans = bookkeeping.scan_pages(Scanned::SortedSet, &keys.orphans);
        while let Some(page) = orphans.next_page().await? {
            for (id, _) in page {
                self.add(Record::of_id(&id, Source::Orphan, b"")).await?;
            }
        }
        Ok(())
    }

    async fn list(&mut self, leader: &Bytes, mut list: Bytes) -> Result<(), Error> {
        let size = list.split_to(SIZE.min(list.len()));
        self.add(Record::of_id(leader, Source::FollowerBytes, &size)).await?;
        while list.has_remaining() {
            let length = usize::from(list.get_u8()).min(list.len());
            let id = list.split_to(length);
            self.add(Record::of_id(&id, Source::Listed, leader)).await?;
            self.add(Record::of_id(leader, Source::Follower, &id)).await?;
        }
        Ok(())
    }
}

/// The records of one id, which may be a follower, a leader, or both.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// Whether the id is that of a job that has not ended, and is remembered.
    pub(super) is_bound: bool,
    /// The leaders that the entry names, and those that list the id.
    held: Vec<Bytes>,
    listed: Vec<Bytes>,
    is_orphan: bool,
    /// The ids in the list of this leader, and the size of their entries that it records.
    followers: Vec<Bytes>,
    recorded: Option<u32>,
    /// The jobs whose entries name this leader, and the sizes of their entries.
    sizes: Vec<(u32, Bytes)>,
}

impl Following {
    /// Adds a record. Returns whether it is one of followers.
    pub(super) fn see(&mut self, record: Record<'_>) {
        let mut value = Bytes::copy_from_slice(record.value);
        match record.source {
            Source::Held => self.held.push(value),
            Source::Listed => self.listed.push(value),
            Source::Orphan => self.is_orphan = true,
            Source::Follower => self.followers.push(value),
            Source::FollowerBytes => self.recorded = value.try_get_u32().ok(),
            Source::HeldBy => {
                let size = value.try_get_u32().unwrap_or_default();
                self.sizes.push((size, value));
            }
            _ => {}
        }
    }

    /// Returns a sentence for each problem, given the id.
    pub(super) fn problems(&self, id: &[u8]) -> Vec<String> {
        let id = text(&Bytes::copy_from_slice(id));
        let mut problems = self.problems_of_follower(&id);
        if self.followers.is_empty() {
            return problems;
        }
        if !self.is_bound {
            let ended = |follower: &Bytes| {
                format!("job {} follows {id}, which has ended", text(follower))
            };
            problems.extend(self.followers.iter().map(ended));
        }
        let is_listed = |(_, job): &&(u32, Bytes)| self.followers.contains(job);
        let size: u32 = self.sizes.iter().filter(is_listed).map(|(size, _)| size).sum();
        if self.recorded != Some(size) {
            let recorded = self.recorded.unwrap_or_default();
            problems.push(format!(
                "the followers of job {id} have {size} bytes, and {recorded} are recorded"
            ));
        }
        problems
    }

    fn problems_of_follower(&self, id: &str) -> Vec<String> {
        let unlisted = self.held.iter().filter(|it| !self.listed.contains(it));
        let unlisted = unlisted.filter(|_| !self.is_orphan).map(|leader| {
            format!("job {id} follows {}, and is not among its followers", text(leader))
        });
        let strange = self.listed.iter().filter(|it| !self.held.contains(it));
        let strange = strange.map(|leader| {
            format!("job {id} is listed as a follower of {}, and is not", text(leader))
        });
        let is_strange = self.is_orphan && self.held.is_empty();
        let orphan = is_strange.then(|| format!("the orphan {id} is not a held job"));
        unlisted.chain(strange).chain(orphan).collect()
    }
}
