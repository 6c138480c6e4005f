//! Sorts more records than fit in memory.
//!
//! ```text
//!  push ---> records in memory --- full: sorted ---> run 1 | run 2 | … | run n
//!                     |                              one temporary file
//!                     '----------- merge <------------------'
//! ```
//!
//! A sort that never fills its memory creates no file. The file has no name, so the
//! system removes it when the process ends, even after a crash. The memory for reading
//! stays at [`READ_BYTES`] up to [`READ_BYTES`] / [`LEAST_READ`] runs; each further run
//! adds [`LEAST_READ`].

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    fs::File,
    io::{self, BufRead as _, BufReader, BufWriter, Read, Seek, SeekFrom, Write as _},
    mem,
    ops::Range,
    sync::Arc,
};

/// The bytes of memory for reading the runs. All runs share it.
const READ_BYTES: usize = 4 * 1024 * 1024;

/// The smallest number of bytes to read from a run at once.
const LEAST_READ: usize = 4 * 1024;

/// Records that are sorted by their bytes.
#[derive(Debug)]
pub(crate) struct ExternalSort {
    most_bytes: usize,
    recent: Recent,
    runs: Vec<Range<u64>>,
    file: Option<Arc<File>>,
}

/// The records in memory, each stored behind its length, and the position at which each
/// record starts.
#[derive(Debug, Default)]
struct Recent {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl ExternalSort {
    /// Creates a sort that keeps up to `most_bytes` of records in memory.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, recent: Recent::default(), runs: Vec::new(), file: None }
    }

    /// Adds the record that `parts` form together. It is shorter than 4 GiB, because
    /// Redis refuses longer values.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(length).expect("a record is below 4 GiB");
        self.recent.starts.push(self.recent.bytes.len());
        self.recent.bytes.extend_from_slice(&length.to_le_bytes());
        parts.iter().for_each(|part| self.recent.bytes.extend_from_slice(part));
    }

    /// Whether no record was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.recent.starts.is_empty() && self.runs.is_empty()
    }

    /// Whether the records in memory must be written before more are added.
    pub(crate) fn is_full(&self) -> bool {
        let starts = self.recent.starts.len() * mem::size_of::<usize>();
        self.recent.bytes.len() + starts >= self.most_bytes
    }

    /// Writes the records in memory to the temporary file, as a run. Blocks the thread.
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        self.recent.sort();
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(Arc::new(tempfile::tempfile()?))),
        };
        let start = self.runs.last().map_or(0, |run| run.end);
        let mut end = start;
        (&*file).seek(SeekFrom::Start(start))?;
        let mut out = BufWriter::new(&*file);
        for start in &self.recent.starts {
            let record = self.recent.framed(*start);
            out.write_all(record)?;
            end += record.len() as u64;
        }
        out.flush()?;
        self.runs.push(start..end);
        self.recent.bytes.clear();
        self.recent.starts.clear();
        Ok(())
    }

    /// Returns all records in order, the smallest first. Blocks the thread.
    pub(crate) fn into_sorted(mut self) -> io::Result<Sorted> {
        self.recent.sort();
        let share = (READ_BYTES / self.runs.len().max(1)).max(LEAST_READ);
        let mut runs = vec![Run::Recent { records: self.recent, next: 0 }];
        if let Some(file) = self.file {
            let section = |Range { start, end }| {
                let section = Section { file: Arc::clone(&file), next: start, end };
                Run::Written(BufReader::with_capacity(share, section))
            };
            runs.extend(self.runs.into_iter().map(section));
        }
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (number, run) in runs.iter_mut().enumerate() {
            let mut record = Vec::new();
            if run.read(&mut record)? {
                heads.push(Reverse((record, number)));
            }
        }
        Ok(Sorted { runs, heads, current: Vec::new() })
    }
}

impl Recent {
    fn sort(&mut self) {
        let Self { bytes, starts } = self;
        starts.sort_unstable_by(|a, b| record_at(bytes, *a).cmp(record_at(bytes, *b)));
    }

    /// The record at `start`, including the length before it.
    fn framed(&self, start: usize) -> &[u8] {
        let length = record_at(&self.bytes, start).len();
        &self.bytes[start..start + mem::size_of::<u32>() + length]
    }
}

fn record_at(bytes: &[u8], start: usize) -> &[u8] {
    let (length, rest) =
        bytes[start..].split_first_chunk().expect("a record has its length before it");
    &rest[..u32::from_le_bytes(*length) as usize]
}

/// Reads the records of a sort in order.
#[derive(Debug)]
pub(crate) struct Sorted {
    runs: Vec<Run>,
    /// The next record of each run that is not finished, with the number of the run.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    current: Vec<u8>,
}

impl Sorted {
    /// Reads the next record; `None` after the last. Blocks the thread.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(mut least) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, run)) = &mut *least;
        if self.runs[*run].read(&mut self.current)? {
            mem::swap(&mut self.current, record);
        } else {
            let Reverse((record, _)) = PeekMut::pop(least);
            self.current = record;
        }
        Ok(Some(&self.current))
    }
}

#[derive(Debug)]
enum Run {
    Recent { records: Recent, next: usize },
    Written(BufReader<Section>),
}

impl Run {
    /// Replaces `record` by the next record of the run. Returns whether there was one.
    fn read(&mut self, record: &mut Vec<u8>) -> io::Result<bool> {
        record.clear();
        match self {
            Self::Recent { records, next } => {
                let Some(start) = records.starts.get(*next) else { return Ok(false) };
                record.extend_from_slice(record_at(&records.bytes, *start));
                *next += 1;
            }
            Self::Written(run) => {
                if run.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                let mut length = [0; mem::size_of::<u32>()];
                run.read_exact(&mut length)?;
                record.resize(u32::from_le_bytes(length) as usize, 0);
                run.read_exact(record)?;
            }
        }
        Ok(true)
    }
}

/// A part of the temporary file. All parts share the file's position, so each read sets
/// the position first.
#[derive(Debug)]
struct Section {
    file: Arc<File>,
    next: u64,
    end: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        (&*self.file).seek(SeekFrom::Start(self.next))?;
        let count = (&*self.file).read(&mut buffer[..most])?;
        self.next += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut sort: ExternalSort, records: &[Vec<u8>]) -> Vec<Vec<u8>> {
        for record in records {
            let (front, back) = record.split_at(record.len() / 2);
            sort.push(&[front, back]);
            if sort.is_full() {
                sort.spill().unwrap();
            }
        }
        let mut sorted = sort.into_sorted().unwrap();
        let mut all = Vec::new();
        while let Some(record) = sorted.next().unwrap() {
            all.push(record.to_vec());
        }
        all
    }

    /// Records of many lengths, unsorted, some of them equal.
    fn records() -> Vec<Vec<u8>> {
        let record = |n: u32| {
            let mixed = n.wrapping_mul(2_654_435_761) >> 7;
            let length = usize::try_from(mixed % 97).unwrap();
            (mixed % 1999).to_string().into_bytes().repeat(length)
        };
        (0..10_000).map(record).collect()
    }

    #[test]
    fn records_come_back_in_order_whatever_fits_in_memory() {
        let records = records();
        let mut expected = records.clone();
        expected.sort_unstable();

        for most_bytes in [1000, 100_000, usize::MAX] {
            let found = sorted(ExternalSort::new(most_bytes), &records);
            assert!(found == expected, "with {most_bytes} bytes");
        }
    }

    #[test]
    fn a_sort_without_records_is_empty_and_one_of_an_empty_record_is_not() {
        let mut sort = ExternalSort::new(1);
        assert!(sort.is_empty());

        sort.push(&[]);
        sort.spill().unwrap();

        assert!(!sort.is_empty());
        assert_eq!(sorted(sort, &[]), [Vec::<u8>::new()]);
    }

    /// A sort whose memory stayed full would write a run for each record, and grow.
    #[test]
    fn records_that_are_written_leave_the_memory() {
        let mut sort = ExternalSort::new(1000);
        for _ in 0..3 {
            assert!(!sort.is_full());
            sort.push(&[&[b'x'; 1000]]);
            assert!(sort.is_full());
            sort.spill().unwrap();
        }
        assert!(!sort.is_full());
    }

    #[test]
    fn a_small_sort_makes_no_file() {
        let mut sort = ExternalSort::new(1000);
        sort.push(&[b"record"]);
        assert!(!sort.is_full());
        assert!(sort.file.is_none());
    }
}
