//! Tests of the whole: the house rules, the binary as a person and other programs use it, and what
//! kill -9 leaves behind.
#![cfg(test)]
#![allow(
    clippy::disallowed_methods,
    clippy::string_slice,
    clippy::format_push_string,
    reason = "tests start processes and make files as outsiders do, and cut text they know"
)]

mod board;
mod cli;
mod clis;
mod hosting;
mod crash;
mod cut_off;
mod dice;
mod kills;
mod life;
mod mail;
mod model_kills;
mod model_server;
mod model_streams;
mod models;
mod model_faults;
mod plans;
mod questions;
mod readme;
mod names;
mod objects;
mod team;
mod secrets;
mod stuck;
mod subagent_kills;
mod subagents;
mod task_crash;
mod task_kills;
mod task_life;
mod task_shown;
mod tidy;
mod traces;
mod types;
mod volume;
mod transcripts;
mod verbs;
