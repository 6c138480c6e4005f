//! Simulates power cuts: computes which files a power cut may leave, at each point of a
//! recording.

use std::{collections::BTreeMap, fmt};

use crate::{Event, Files};

/// The size of a disk sector in bytes. The disk writes a sector completely or not at
/// all.
const SECTOR: usize = 512;

/// A record of all changes that SQLite made in a folder.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The files at the start of the recording. They count as synced.
    pub first: Files,
    /// The changes that SQLite made since the start and the marks that the test set, in
    /// their order.
    pub events: Vec<Event>,
}

/// One possible power cut: its moment, and which unsynced changes survive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cut {
    /// The moment of the cut, as the number of events that come before it.
    pub at: usize,
    /// How many of the unsynced creations and deletions of files survive. They survive
    /// in their order: the first ones first.
    pub names: usize,
    /// Which of the unsynced writes survive.
    pub kept: Kept,
}

/// Which of the writes that are not synced survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kept {
    /// No unsynced write survives.
    None,
    /// All unsynced writes survive.
    All,
    /// Only the unsynced write with this number survives.
    Only(usize),
    /// All unsynced writes survive except the one with this number.
    Without(usize),
    /// All unsynced writes survive, but only this many bytes of the last one.
    Torn(usize),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{:?}", self.at, self.names, self.kept)
    }
}

/// The files after a power cut, and the marks that the test reached before it.
#[derive(Debug)]
pub struct Image {
    /// The power cut that leaves these files.
    pub cut: Cut,
    /// The files that the cut leaves.
    pub files: Files,
    /// The marks that the test reached before the cut, the earliest first.
    pub marks: Vec<u64>,
}

impl Recording {
    /// Returns all possible power cuts of this recording, the earliest first.
    pub fn cuts(&self) -> Vec<Cut> {
        let mut now = DiskState::new(&self.first);
        let mut cuts = Vec::new();
        now.add_cuts(0, &mut cuts);
        for (index, event) in self.events.iter().enumerate() {
            now.apply(event);
            now.add_cuts(index + 1, &mut cuts);
        }
        cuts
    }

    /// Computes the files that each of the given cuts leaves. The cuts must be sorted,
    /// the earliest first.
    pub fn images(
        &self,
        cuts: impl IntoIterator<Item = Cut>,
    ) -> impl Iterator<Item = Image> {
        let mut now = DiskState::new(&self.first);
        let mut done = 0;
        let mut marks = Vec::new();
        cuts.into_iter().map(move |cut| {
            for event in &self.events[done..cut.at] {
                now.apply(event);
                if let Event::Mark(number) = event {
                    marks.push(*number);
                }
            }
            done = cut.at;
            Image { cut, files: now.after(cut), marks: marks.clone() }
        })
    }
}

/// Returns a sorted sample of the cuts. It contains all cuts that come right after a
/// mark and lose everything unsynced, because these cuts find most broken promises. The
/// seed chooses the other cuts at random, until the sample has `most` cuts.
pub fn sample(recording: &Recording, most: usize, seed: u64) -> Vec<Cut> {
    let is_after_mark = |cut: &Cut| {
        let before = cut.at.checked_sub(1).map(|index| &recording.events[index]);
        matches!(before, Some(Event::Mark(_)))
            && cut.kept == Kept::None
            && cut.names == 0
    };
    let (mut chosen, mut others): (Vec<_>, Vec<_>) =
        recording.cuts().into_iter().partition(is_after_mark);
    let mut random = seed;
    let left = most.saturating_sub(chosen.len()).min(others.len());
    for index in 0..left {
        let range = (others.len() - index) as u64;
        let step = usize::try_from(next(&mut random) % range).unwrap_or(0);
        others.swap(index, index + step);
    }
    chosen.extend(&others[..left]);
    chosen.sort_unstable();
    chosen
}

/// Returns the next random number of the generator SplitMix64 (Steele, Lea and Flood,
/// 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The creation or deletion of a file, before the folder is synced.
#[derive(Debug, Clone)]
enum Naming {
    Create(String, u64),
    Delete(String),
}

/// The state of the disk at one point of a recording: what is synced, and what is not.
#[derive(Debug, Clone, Default)]
struct DiskState {
    nodes: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<String, u64>,
    writes: Vec<(u64, Event)>,
    namings: Vec<Naming>,
}

impl DiskState {
    fn new(first: &Files) -> Self {
        let names = first.0.keys().cloned().zip(0..).collect();
        let nodes = (0..).zip(first.0.values().cloned()).collect();
        Self { nodes, names, ..Self::default() }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Write { node, .. } | Event::Truncate { node, .. } => {
                self.writes.push((*node, event.clone()));
            }
            Event::Sync { node } => self.sync(*node),
            Event::Create { name, node } => {
                self.namings.push(Naming::Create(name.clone(), *node));
            }
            Event::Delete { name } => self.namings.push(Naming::Delete(name.clone())),
            Event::SyncFolder => {
                for naming in std::mem::take(&mut self.namings) {
                    rename(&mut self.names, &naming);
                }
            }
            Event::Mark(_) => {}
        }
    }

    fn sync(&mut self, synced: u64) {
        for (node, write) in std::mem::take(&mut self.writes) {
            if node == synced {
                change(self.nodes.entry(node).or_default(), &write);
            } else {
                self.writes.push((node, write));
            }
        }
    }

    fn add_cuts(&self, at: usize, cuts: &mut Vec<Cut>) {
        let namings = self.namings.len();
        for names in 0..=namings {
            cuts.push(Cut { at, names, kept: Kept::None });
            if !self.writes.is_empty() {
                cuts.push(Cut { at, names, kept: Kept::All });
            }
        }
        let mut ends = vec![0, namings];
        ends.dedup();
        for names in ends {
            let some = self.some_writes().map(|kept| Cut { at, names, kept });
            cuts.extend(some);
        }
    }

    fn some_writes(&self) -> impl Iterator<Item = Kept> {
        let many = if self.writes.len() > 1 { self.writes.len() } else { 0 };
        let alone = (0..many).flat_map(|one| [Kept::Only(one), Kept::Without(one)]);
        let torn = match self.writes.last() {
            Some((_, Event::Write { offset, bytes, .. })) => {
                let first = SECTOR - offset % SECTOR;
                (first..bytes.len()).step_by(SECTOR).collect()
            }
            _ => Vec::new(),
        };
        alone.chain(torn.into_iter().map(Kept::Torn))
    }

    fn after(&self, cut: Cut) -> Files {
        let mut nodes = self.nodes.clone();
        let last = self.writes.len().wrapping_sub(1);
        for (index, (node, write)) in self.writes.iter().enumerate() {
            let bytes = nodes.entry(*node).or_default();
            match cut.kept {
                Kept::None => {}
                Kept::Only(one) if one != index => {}
                Kept::Without(one) if one == index => {}
                Kept::Torn(length) if index == last => {
                    change(bytes, &torn(write, length));
                }
                _ => change(bytes, write),
            }
        }
        let mut names = self.names.clone();
        for naming in &self.namings[..cut.names] {
            rename(&mut names, naming);
        }
        let file = |(name, node)| (name, nodes.get(&node).cloned().unwrap_or_default());
        Files(names.into_iter().map(file).collect())
    }
}

fn rename(names: &mut BTreeMap<String, u64>, naming: &Naming) {
    match naming {
        Naming::Create(name, node) => names.insert(name.clone(), *node),
        Naming::Delete(name) => names.remove(name),
    };
}

fn change(file: &mut Vec<u8>, write: &Event) {
    match write {
        Event::Write { offset, bytes, .. } => {
            let end = offset + bytes.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            file[*offset..end].copy_from_slice(bytes);
        }
        Event::Truncate { length, .. } => file.resize(*length, 0),
        _ => unreachable!("only writes and truncations wait for a sync"),
    }
}

fn torn(write: &Event, length: usize) -> Event {
    let mut torn = write.clone();
    if let Event::Write { bytes, .. } = &mut torn {
        bytes.truncate(length);
    }
    torn
}
