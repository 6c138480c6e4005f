//! Tests of the page over HTTP, on a file and on servers of their own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod all_pages;
mod buttons;
mod client;
mod errors;
mod figures;
mod found;
mod html;
mod hung_up;
mod live;
mod log;
mod many_jobs;
mod shown;
mod site;

/// Runs each test on SQLite and on the zset backend.
macro_rules! on_each_store {
    ($($(#[$doc:meta])* async fn $name:ident($site:ident) $body:block)*) => {
        mod sqlite {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                super::$name(&$crate::site::Site::sqlite().await).await;
            })*
        }
        mod zset {
            $($(#[$doc])* #[tokio::test] async fn $name() {
                super::$name(&$crate::site::Site::redis("zset").await).await;
            })*
        }
        $(async fn $name($site: &$crate::site::Site) $body)*
    };
}
pub(crate) use on_each_store;
