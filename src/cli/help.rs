//! `help`: a verb, the files' formats, or the clerk.

use clap::CommandFactory;

use super::{
    args::{Args, Help},
    failure::{Code, Failure},
    render::Printer,
};
use crate::provider::clerk;

/// What is on disk, for whoever writes a program that talks to a team.
const FORMATS: &str = include_str!("formats.txt");

/// Explains.
pub fn help(args: &Help, printer: &mut Printer) -> Result<Code, Failure> {
    let mut command = Args::command();
    let text = match args.topic.as_deref() {
        None => command.render_long_help().to_string(),
        Some("formats") => FORMATS.to_owned(),
        Some("clerk") => clerk::help(),
        Some(verb) => {
            command.build();
            let Some(found) = command.find_subcommand_mut(verb) else {
                return Err(Failure::usage(format!(
                    "nothing is called {verb:?}; `postroom help` lists the verbs, and there are \
                     `help formats` and `help clerk`"
                )));
            };
            found.render_long_help().to_string()
        }
    };
    printer.say(&text);
    Ok(Code::Ok)
}
