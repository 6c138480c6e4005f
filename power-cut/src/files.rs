//! Holds the files of a folder in memory. They can be read from a folder and written to
//! one.

use std::{collections::BTreeMap, fs, io, path::Path};

/// The files of a folder: the name and the bytes of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Files(pub BTreeMap<String, Vec<u8>>);

impl Files {
    /// Reads all files of a folder, but not its subfolders.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let name = entry.file_name().to_string_lossy().into_owned();
                files.insert(name, fs::read(entry.path())?);
            }
        }
        Ok(Self(files))
    }

    /// Writes the files into a folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for (name, bytes) in &self.0 {
            fs::write(folder.join(name), bytes)?;
        }
        Ok(())
    }
}
