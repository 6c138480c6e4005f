//! Records every change that SQLite makes in a folder.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{Files, Recording};

/// An event in a recording: a change of the folder or its files, or a mark that the
/// test set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Bytes were written to a file.
    Write {
        /// The number of the file. Another file may get its name later, but not its
        /// number.
        node: u64,
        /// The offset of the first byte in the file.
        offset: usize,
        /// The bytes that were written.
        bytes: Vec<u8>,
    },
    /// A file was shortened.
    Truncate {
        /// The number of the file.
        node: u64,
        /// The file's new length in bytes.
        length: usize,
    },
    /// A file was synced.
    Sync {
        /// The number of the file.
        node: u64,
    },
    /// A file was created.
    Create {
        /// The file's name, without its folder.
        name: String,
        /// The number of the new file.
        node: u64,
    },
    /// A file was deleted.
    Delete {
        /// The file's name, without its folder.
        name: String,
    },
    /// The folder was synced.
    SyncFolder,
    /// The test reached the point with this number.
    Mark(u64),
}

/// A folder in which SQLite writes files without waiting for the disk.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    /// The recorder of the changes. `None` if this folder is not recorded.
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
    /// Records everything that SQLite does in a folder, until the disk and all
    /// connections to its files are dropped. Files that the folder already has count as
    /// synced.
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

    /// Makes SQLite skip the syncs in a folder, without a recording, so that a test can
    /// open many images in a short time.
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

    /// Records that the test reached the point with this number.
    pub fn mark(&self, number: u64) {
        if let Some(mut recorder) = self.recorder() {
            recorder.events.push(Event::Mark(number));
        }
    }

    /// Returns the changes and marks that were recorded so far.
    pub fn recording(&self) -> Recording {
        let recorder = self.recorder();
        recorder
            .map(|it| Recording { first: it.first.clone(), events: it.events.clone() })
            .unwrap_or_default()
    }

    /// Finds the disk whose folder contains the file at `path`, and the file's name in
    /// it. Returns `None` if the folder belongs to no disk.
    pub(crate) fn of(path: &Path) -> Option<(Arc<Self>, String)> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = path.parent()?;
        let found = disks.iter().filter_map(Weak::upgrade);
        Some((found.into_iter().find(|disk| disk.folder == folder)?, name))
    }

    /// Makes a change, and records it if it succeeds. Other changes wait until both are
    /// done.
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

    /// Opens a file, and returns the number that identifies it in the recording.
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
