//! Runs the handler of the example `thumbnails` on small pictures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/thumbnails.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod example;

use std::{fs, thread};

use example::{Image, Thumbnail, path_of, router, uploaded, write};
use relq::{Priority, testing::TestQueue, worker::Enqueue as _};

/// A picture whose left half is black, and whose right half is red.
fn halves(width: usize, height: usize) -> Image {
    let colour =
        |at: usize| if at % width < width / 2 { [0, 0, 0] } else { [200, 0, 0] };
    Image { width, height, pixels: (0..width * height).map(colour).collect() }
}

#[tokio::test]
async fn each_width_is_made_once_and_the_smallest_first() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("photo.ppm");
    fs::write(&picture, halves(1000, 10).to_bytes()).unwrap();
    let queue = TestQueue::new();
    uploaded(&*queue.queue(), &picture).await.unwrap();
    uploaded(&*queue.queue(), &picture).await.unwrap();
    assert_eq!(queue.waiting()[0].priority, Priority::HIGHEST);

    let widths: Vec<_> =
        queue.pushed::<Thumbnail>().iter().map(|job| job.width).collect();
    let drained = queue.drain(router()).await;

    drained.assert_all_done();
    assert_eq!(widths, [64, 800, 320], "no width waits twice");
    for (width, height) in [(64, 1), (800, 8), (320, 3)] {
        let bytes = fs::read(path_of(&picture, width)).unwrap();
        assert_eq!(Image::parse(&bytes), Some(halves(width, height)), "{width}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left over");
}

/// The thread of an attempt goes on after a time-out, beside that of the next attempt.
/// Neither may rename the unfinished file of the other.
#[test]
fn attempts_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("photo.ppm");
    fs::write(&picture, halves(1000, 100).to_bytes()).unwrap();
    let thumbnail = Thumbnail { picture: picture.clone(), width: 800 };

    thread::scope(|threads| {
        let attempts = || (0..20).try_for_each(|_| write(&thumbnail));
        for thread in [(); 4].map(|()| threads.spawn(attempts)) {
            thread.join().unwrap().unwrap();
        }
    });

    let bytes = fs::read(path_of(&picture, 800)).unwrap();
    assert_eq!(Image::parse(&bytes), Some(halves(800, 80)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
}

/// A pixel is the mean of those that it covers, also where the widths do not divide.
#[tokio::test]
async fn a_pixel_is_the_mean_of_those_that_it_covers() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("photo.ppm");
    let pixels = [[0, 0, 9], [10, 0, 9], [20, 0, 9], [30, 100, 9], [50, 0, 9]];
    let image = Image { width: 5, height: 1, pixels: pixels.to_vec() };
    fs::write(&picture, image.to_bytes()).unwrap();
    let queue = TestQueue::new();
    for width in [2, 9] {
        let picture = picture.clone();
        queue.queue().enqueue(&Thumbnail { picture, width }).await.unwrap();
    }

    queue.drain(router()).await.assert_all_done();

    let made = |width| Image::parse(&fs::read(path_of(&picture, width)).unwrap());
    let halves = vec![[5, 0, 9], [33, 33, 9]];
    assert_eq!(made(2), Some(Image { width: 2, height: 1, pixels: halves }));
    assert_eq!(made(9), Some(image), "a picture is not enlarged");
}

#[tokio::test]
async fn a_picture_that_cannot_be_read_is_a_dead_letter() {
    let folder = tempfile::tempdir().unwrap();
    let broken =
        [&b"P6\n2 2\n255\nxxx"[..], b"P5\n1 1\n255\nx", b"P6\n0 0\n255\n", b""];
    let queue = TestQueue::new();
    for (number, bytes) in broken.iter().enumerate() {
        let picture = folder.path().join(format!("{number}.ppm"));
        fs::write(&picture, bytes).unwrap();
        queue.queue().enqueue(&Thumbnail { picture, width: 64 }).await.unwrap();
    }
    let missing = folder.path().join("missing.ppm");
    queue.queue().enqueue(&Thumbnail { picture: missing, width: 64 }).await.unwrap();

    queue.drain(router()).await;

    let errors: Vec<_> =
        queue.dead().into_iter().map(|job| job.last_error.unwrap()).collect();
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert!(errors[0].ends_with("0.ppm is no PPM"), "{errors:?}");
    assert!(errors[4].contains("missing.ppm: No such file"), "{errors:?}");
}
