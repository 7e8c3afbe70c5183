//! The command line: one file a verb. With the daemon up or down a verb works on the same files
//! through the same store.

mod approvals;
mod args;
mod attach;
mod check;
mod client;
mod context;
mod cost;
mod dead;
mod down;
mod failure;
mod find;
mod follow;
mod help;
mod host;
mod inbox;
mod init;
mod log;
mod progress;
mod render;
mod run;
mod schema;
mod send;
mod show;
mod start;
mod status;
mod stop;
mod task;
mod trace;
mod trace_draw;
mod trace_follow;
mod types;
mod types_text;
mod up;
mod wait;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Verb};
use context::Context;
use failure::{Code, Failure};
use render::Printer;

/// Reads the arguments of this process, does what they say and gives the exit code.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(why) => {
            // A closed pipe is nobody's fault.
            drop(why.print());
            let code = if why.use_stderr() { Code::Usage } else { Code::Ok };
            return code.into();
        }
    };
    let mut printer = Printer::new();
    match carry_out(args, &mut printer) {
        Ok(code) => code.into(),
        Err(failure) => {
            printer.complain(&failure.to_string());
            failure.code.into()
        }
    }
}

fn carry_out(args: Args, printer: &mut Printer) -> Result<Code, Failure> {
    let context = Context::new(args.mailbox)?;
    context.refuse_to_teammates(&args.verb)?;
    match args.verb {
        Verb::Init(it) => init::init(&context, &it, printer),
        Verb::Run(it) => run::run(&context, &it, printer),
        Verb::Up(it) => up::up(&context, &it, printer),
        Verb::Down(it) => down::down(&context, &it, printer),
        Verb::Status(it) => status::status(&context, &it, printer),
        Verb::Send(it) => send::send(&context, &it, printer),
        Verb::Wait(it) => wait::wait(&context, &it, printer),
        Verb::Inbox(it) => inbox::inbox(&context, &it, printer),
        Verb::Log(it) => log::log(&context, &it, printer),
        Verb::Show(it) => show::show(&context, &it, printer),
        Verb::Cost(it) => cost::cost(&context, &it, printer),
        Verb::Trace(it) => trace::trace(&context, &it, printer),
        Verb::Start(it) => start::start(&context, &it.name, printer),
        Verb::Stop(it) => stop::stop(&context, &it, printer),
        Verb::Restart(it) => {
            stop::stop(&context, &args::Stop { name: it.name.clone(), drain: false }, printer)?;
            start::start(&context, &it.name, printer)
        }
        Verb::Approvals(it) => approvals::approvals(&context, &it, printer),
        Verb::Approve(it) => approvals::approve(&context, &it, printer),
        Verb::Reject(it) => approvals::reject(&context, &it, printer),
        Verb::Attach => attach::attach(&context, printer),
        Verb::Task(it) => task::task(&context, &it, printer),
        Verb::Dead(it) => dead::dead(&context, &it, printer),
        Verb::Check(it) => check::check(&context, &it, printer),
        Verb::Types(it) => types::types(&context, &it, printer),
        Verb::Schema => Ok(schema::schema(printer)),
        Verb::Help(it) => help::help(&it, printer),
        Verb::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "postroom", &mut text);
            printer.say(&String::from_utf8_lossy(&text));
            Ok(Code::Ok)
        }
    }
}
