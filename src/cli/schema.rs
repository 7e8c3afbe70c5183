//! `schema`: the JSON Schema of team files, for editors that check and complete them.

use super::{failure::Code, render::Printer};

/// The schema, in draft 2020-12.
const SCHEMA: &str = include_str!("team.schema.json");

/// Prints the schema.
pub fn schema(printer: &mut Printer) -> Code {
    printer.say(SCHEMA);
    Code::Ok
}
