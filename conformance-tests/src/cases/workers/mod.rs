//! Workers that run are listed (R33).

mod forgetting;
mod listing;
