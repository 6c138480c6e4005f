#![doc = include_str!("../README.md")]

mod cut;
mod disk;
mod files;
#[cfg(unix)]
mod vfs;

pub use cut::{Cut, Image, Kept, Recording, sample};
pub use disk::{Disk, Event};
pub use files::Files;
