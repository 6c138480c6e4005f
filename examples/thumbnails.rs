//! Makes small pictures of large ones, as jobs of a kind with options: the smallest first,
//! three attempts, a time-out, and one unfinished job for each picture and width.
//!
//! ```sh
//! cargo run --features json,sqlite --example thumbnails -- photo.ppm
//! ```
//!
//! It writes `photo-64.ppm` and others beside the picture, which must be a binary PPM
//! (P6), as `magick photo.jpg photo.ppm` writes.

use std::{
    error::Error,
    fs, io,
    num::NonZeroU16,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use relq::{
    NewJob, Priority, Queue, QueueName,
    environment::Environment,
    worker::{Enqueue, Failure, Job, Router, Worker},
};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

/// The widths in pixels at which each picture is needed.
const WIDTHS: [usize; 3] = [800, 320, 64];

/// Pictures of at most this width appear in lists, so a page waits for them.
const WIDEST_IN_LISTS: usize = 100;

/// One picture at one width.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Thumbnail {
    pub(crate) picture: PathBuf,
    pub(crate) width: usize,
}

impl Job for Thumbnail {
    const KIND: &'static str = "thumbnail";

    fn options(&self, job: NewJob) -> NewJob {
        let is_in_lists = self.width <= WIDEST_IN_LISTS;
        let priority = if is_in_lists { Priority::HIGHEST } else { Priority::NORMAL };
        job.priority(priority).max_attempts(NonZeroU16::new(3).expect("not zero"))
    }

    fn unique(&self) -> Option<String> {
        Some(format!("{} at {}", self.picture.display(), self.width))
    }

    fn timeout() -> Option<Duration> {
        Some(Duration::from_secs(60))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let picture = std::env::args().nth(1).ok_or("name a picture, as photo.ppm")?;
    let queue = relq::connect("sqlite::memory:", &QueueName::new("pictures")?).await?;
    uploaded(&*queue, Path::new(&picture)).await?;
    let summary = Worker::new(queue.clone())
        .handle_signals()
        .run_until_empty(queue, Duration::MAX, router())
        .await?;
    println!("{summary:?}");
    Ok(())
}

/// Enqueues all sizes of a picture. A size that waits already is not enqueued again.
pub(crate) async fn uploaded(
    queue: &dyn Queue,
    picture: &Path,
) -> Result<(), Box<dyn Error>> {
    for width in WIDTHS {
        queue.enqueue(&Thumbnail { picture: picture.to_owned(), width }).await?;
    }
    Ok(())
}

pub(crate) fn router() -> Router {
    Router::new().job(make)
}

/// The work uses the processor for long, so it runs on a thread for such work. After a
/// time-out that thread goes on beside the next attempt, which does no harm: each writes a
/// file of its own, and renames it at the end.
async fn make(thumbnail: Thumbnail) -> Result<(), Failure> {
    spawn_blocking(move || write(&thumbnail)).await?
}

pub(crate) fn write(Thumbnail { picture, width }: &Thumbnail) -> Result<(), Failure> {
    let bytes = match fs::read(picture) {
        // A retry would not find it either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::dead(format!("{}: {error}", picture.display())));
        }
        other => other?,
    };
    let image = Image::parse(&bytes)
        .ok_or_else(|| Failure::dead(format!("{} is no PPM", picture.display())))?;
    let target = path_of(picture, *width);
    // A reader of the target never sees half of it, and a second run replaces it.
    let unique = relq::PushToken::random(Environment::default().random());
    let unfinished = target.with_extension(unique.as_str());
    fs::write(&unfinished, image.shrunk_to(*width).to_bytes())?;
    fs::rename(unfinished, target)?;
    Ok(())
}

/// Where the picture is written at this width: `photo-64.ppm` for `photo.ppm`.
pub(crate) fn path_of(picture: &Path, width: usize) -> PathBuf {
    let name = picture.file_stem().unwrap_or_default().to_string_lossy();
    picture.with_file_name(format!("{name}-{width}.ppm"))
}

/// A picture, with the red, green and blue of its pixels line by line.
#[derive(Debug, PartialEq)]
pub(crate) struct Image {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<[u8; 3]>,
}

impl Image {
    /// Reads a binary PPM with one byte for each colour and without comments. `None` for
    /// anything else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(b"P6")?;
        let mut numbers = [0_usize; 3];
        for number in &mut numbers {
            rest = rest.trim_ascii_start();
            let length = rest.iter().position(|byte| !byte.is_ascii_digit())?;
            let (digits, after) = rest.split_at(length);
            (*number, rest) = (std::str::from_utf8(digits).ok()?.parse().ok()?, after);
        }
        let [width, height, 255] = numbers else { return None };
        let (pixels, []) = rest.get(1..)?.as_chunks() else { return None };
        let is_whole = width.checked_mul(height) == Some(pixels.len());
        (is_whole && !pixels.is_empty()).then(|| Self {
            width,
            height,
            pixels: pixels.to_vec(),
        })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let header = format!("P6\n{} {}\n255\n", self.width, self.height);
        [header.as_bytes(), self.pixels.as_flattened()].concat()
    }

    /// Scales the picture down to a width and keeps its proportions. Each new pixel is
    /// the mean of the pixels that it covers. A picture that is not wider stays as it is.
    fn shrunk_to(&self, width: usize) -> Self {
        let width = width.clamp(1, self.width);
        let height = (self.height * width / self.width).max(1);
        let pixel = |place: usize| {
            let column = covered(place % width, width, self.width);
            let line = covered(place / width, height, self.height);
            self.mean(&column, &line)
        };
        Self { width, height, pixels: (0..width * height).map(pixel).collect() }
    }

    fn mean(&self, columns: &Range<usize>, lines: &Range<usize>) -> [u8; 3] {
        let mut sums = [0_usize; 3];
        for line in lines.clone() {
            let from = line * self.width;
            for pixel in &self.pixels[from + columns.start..from + columns.end] {
                for (sum, colour) in sums.iter_mut().zip(pixel) {
                    *sum += usize::from(*colour);
                }
            }
        }
        let count = columns.len() * lines.len();
        sums.map(|sum| u8::try_from(sum / count).expect("a mean of bytes is a byte"))
    }
}

/// The old positions that the new position `at` of `new` covers, of `old` in all.
fn covered(at: usize, new: usize, old: usize) -> Range<usize> {
    at * old / new..(at + 1) * old / new
}
