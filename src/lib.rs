//! The map.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make the files and processes they look at")
)]
pub mod base;
pub mod model;
