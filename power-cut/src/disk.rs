//! A folder whose changes are recorded.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{Files, Recording};

/// A change of a folder or its files, or a mark of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Bytes were written to a file.
    Write {
        /// The file; its name may be another file's later.
        node: u64,
        /// Where the bytes begin.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A file was shortened.
    Truncate {
        /// The file.
        node: u64,
        /// Its new length.
        length: usize,
    },
    /// A file was synced.
    Sync {
        /// The file.
        node: u64,
    },
    /// A file was created.
    Create {
        /// The file's name, without its folder.
        name: String,
        /// The file.
        node: u64,
    },
    /// A file was deleted.
    Delete {
        /// The file's name, without its folder.
        name: String,
    },
    /// The folder was synced.
    SyncFolder,
    /// The test reached a point that it numbers.
    Mark(u64),
}

/// A folder whose files SQLite writes without waiting for the disk.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    /// `None` if the changes are not recorded.
    recorder: Option<Mutex<Recorder>>,
}

#[derive(Debug, Default)]
struct Recorder {
    first: Files,
    nodes: BTreeMap<String, u64>,
    next_node: u64,
    events: Vec<Event>,
}

static DISKS: Mutex<Vec<Weak<Disk>>> = Mutex::new(Vec::new());

impl Disk {
    /// Records all that SQLite does in a folder, until the disk and all connections to
    /// its files are dropped. The files that the folder has are on the disk.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn record(folder: &Path) -> io::Result<Arc<Self>> {
        let first = Files::read(folder)?;
        let nodes: BTreeMap<_, _> = first.0.keys().cloned().zip(0..).collect();
        let next_node = nodes.len() as u64;
        let recorder = Recorder { first, nodes, next_node, events: Vec::new() };
        Self::register(folder, Some(Mutex::new(recorder)))
    }

    /// Makes SQLite skip the syncs in a folder, without a recording, so that many
    /// images are judged in a short time.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn without_syncs(folder: &Path) -> io::Result<Arc<Self>> {
        Self::register(folder, None)
    }

    fn register(
        folder: &Path,
        recorder: Option<Mutex<Recorder>>,
    ) -> io::Result<Arc<Self>> {
        #[cfg(unix)]
        crate::vfs::install();
        let folder = fs::canonicalize(folder)?;
        let disk = Arc::new(Self { folder, recorder });
        let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&disk));
        Ok(disk)
    }

    /// Records that the test reached this point.
    pub fn mark(&self, number: u64) {
        if let Some(mut recorder) = self.recorder() {
            recorder.events.push(Event::Mark(number));
        }
    }

    /// All that was recorded up to now.
    pub fn recording(&self) -> Recording {
        let recorder = self.recorder();
        recorder
            .map(|it| Recording { first: it.first.clone(), events: it.events.clone() })
            .unwrap_or_default()
    }

    /// The disk that a file is on, and the file's name there.
    pub(crate) fn of(path: &Path) -> Option<(Arc<Self>, String)> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = path.parent()?;
        let found = disks.iter().filter_map(Weak::upgrade);
        Some((found.into_iter().find(|disk| disk.folder == folder)?, name))
    }

    /// Runs a change and records it if it succeeds. No other change happens meanwhile.
    pub(crate) fn change<T>(
        &self,
        run: impl FnOnce() -> Result<T, i32>,
        event: impl FnOnce() -> Event,
    ) -> Result<T, i32> {
        let recorder = self.recorder();
        let done = run()?;
        if let Some(mut recorder) = recorder {
            let event = event();
            if let Event::Delete { name } = &event {
                recorder.nodes.remove(name);
            }
            recorder.events.push(event);
        }
        Ok(done)
    }

    /// Runs the opening of a file, and returns the file's number.
    pub(crate) fn open(
        &self,
        name: String,
        run: impl FnOnce() -> Result<(), i32>,
    ) -> Result<u64, i32> {
        let recorder = self.recorder();
        run()?;
        let Some(mut recorder) = recorder else { return Ok(0) };
        if let Some(known) = recorder.nodes.get(&name) {
            return Ok(*known);
        }
        let node = recorder.next_node;
        recorder.next_node += 1;
        recorder.nodes.insert(name.clone(), node);
        recorder.events.push(Event::Create { name, node });
        Ok(node)
    }

    fn recorder(&self) -> Option<MutexGuard<'_, Recorder>> {
        let recorder = self.recorder.as_ref()?;
        Some(recorder.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
