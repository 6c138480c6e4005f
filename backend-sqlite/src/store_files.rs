//! The files of a store, and whether they are still those that were opened.
//!
//! ```text
//!  queue.db      the tables
//!  queue.db-wal  the log: commits that SQLite has not copied to the tables yet
//!  queue.db-shm  memory that the processes share: locks, and an index of the log
//! ```
//!
//! SQLite deletes the log and the shared memory with the last connection, and never
//! before. So if one of these names leads to no file or to another one while a connection
//! is open, another program has deleted, moved or replaced it. Other processes then use
//! the new file, and never see what this one writes.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// The ends of the names of a store's files.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// The files that a connection has opened.
#[derive(Debug, Clone)]
pub(crate) struct StoreFiles(Vec<OpenedFile>);

#[derive(Debug, Clone)]
struct OpenedFile {
    path: PathBuf,
    identity: Option<FileIdentity>,
}

impl StoreFiles {
    /// The files of the store in `file`. A connection is open that has read it, so all
    /// of them exist.
    pub(crate) fn of(file: &Path) -> Result<Self, Failure> {
        let files = ENDINGS.map(|ending| OpenedFile::of(file, ending));
        files.into_iter().collect::<Result<_, _>>().map(Self)
    }

    /// Fails if one of the files was deleted, moved or replaced since.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(OpenedFile::check)
    }
}

impl OpenedFile {
    fn of(file: &Path, ending: &str) -> Result<Self, Failure> {
        let path = beside(file, ending);
        match FileIdentity::of(&path) {
            Ok(identity) => Ok(Self { path, identity }),
            Err(error) => Err(Failure::unusable(format!(
                "{} was deleted while it was opened: {error}",
                path.display(),
            ))),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let path = self.path.display();
        match FileIdentity::of(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err(Failure::unusable(format!(
                "{path} was replaced while it was open and names another file now; put \
                 the old one back, or open the queue again to use the new one",
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Failure::unusable(format!(
                    "{path} was deleted or moved while it was open; put it back, or \
                     open the queue again without the jobs in it",
                )))
            }
            Err(error) => Err(Failure::unusable(format!(
                "{path} was open and cannot be looked at any more: {error}; make its \
                 folder readable again",
            ))),
        }
    }
}

/// The path of the file whose name is that of `file` with `ending` at its end.
pub(crate) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Refuses a file that has a second name, as a hard link. SQLite names the log after the
/// name by which it opens the file, so processes with different names do not see each
/// other's commits and overwrite each other's pages (R1).
#[cfg(unix)]
pub(crate) fn refuse_hard_links(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt as _;
    match std::fs::metadata(file) {
        Ok(found) if found.nlink() > 1 => Err(Failure::unusable(format!(
            "{} has another name (it has {} hard links), and using the file by two names \
             damages it; delete the other names, or replace them by symbolic links",
            file.display(),
            found.nlink(),
        ))),
        // Opening a file that cannot be examined fails too, and reports why.
        _ => Ok(()),
    }
}

/// Accepts every file, because only Unix systems supply the number of hard links.
#[cfg(not(unix))]
pub(crate) fn refuse_hard_links(_: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Identifies a file by its device and inode. If the identity at a path changes,
/// another file has replaced the one that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Reads the identity of the file that is at the path now. It is `None` on systems
    /// other than Unix.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;
        let found = std::fs::metadata(path)?;
        Ok(Some(Self { device: found.dev(), inode: found.ino() }))
    }

    /// Always `None`, because only Unix systems supply device and inode numbers.
    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }
}
