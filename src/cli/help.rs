//! `help`: a verb, the files' formats, the clerk, or programs that think.

use clap::CommandFactory;

use super::{
    args::{Args, Help},
    failure::{Code, Failure},
    render::Printer,
};
use crate::provider::clerk;

/// What is on disk, for whoever writes a program that talks to a team.
const FORMATS: &str = include_str!("formats.txt");
/// What a program that thinks for a teammate reads and writes.
const PROGRAM: &str = include_str!("program.txt");

/// Explains.
pub fn help(args: &Help, printer: &mut Printer) -> Result<Code, Failure> {
    let mut command = Args::command();
    let topic: Vec<&str> = args.topic.iter().map(String::as_str).collect();
    let text = match topic.as_slice() {
        [] => command.render_long_help().to_string(),
        ["formats"] => FORMATS.to_owned(),
        ["clerk"] => clerk::help(),
        ["program"] => PROGRAM.to_owned(),
        verbs => {
            command.build();
            let mut found = &mut command;
            for verb in verbs {
                found = found.find_subcommand_mut(verb).ok_or_else(|| unknown(verb))?;
            }
            found.render_long_help().to_string()
        }
    };
    printer.say(&text);
    Ok(Code::Ok)
}

fn unknown(verb: &str) -> Failure {
    Failure::usage(format!(
        "nothing is called {verb:?}; `postroom help` lists the verbs, and there are `help formats`, \
         `help clerk` and `help program`"
    ))
}
