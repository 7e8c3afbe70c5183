//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::model::AgentName;

/// Hosts a team of AI agents that talk through plain JSONL mailboxes.
#[derive(Debug, Parser)]
#[command(name = "postroom", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(after_help = "Send by appending a line:  echo '{\"content\":\"read README.md\"}' >> \
                        .mailbox/scout.jsonl\nAudit with:  cat .mailbox/*.jsonl | LC_ALL=C sort")]
pub struct Args {
    /// The mailbox folder; else the nearest `.mailbox` upwards from here
    #[arg(long, global = true, value_name = "DIR", env = "POSTROOM_MAILBOX", hide_env = true)]
    pub mailbox: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Write a team that fits this repository
    Init(Init),
    /// Send a message to the team's lead and print the answer; hosts the team meanwhile if need be
    Run(Run),
    /// Host a team until it is ended
    Up(Up),
    /// End the daemon; teammates go on at the next `up`
    Down(Down),
    /// Show what everybody is doing
    #[command(alias = "ps")]
    Status(Status),
    /// Send a message and print its id
    Send(Send),
    /// Wait for the answers to messages and print them
    Wait(Wait),
    /// Show the mail of somebody; nothing is consumed
    Inbox(Inbox),
    /// Show all mail in the order of time
    #[command(aliases = ["logs", "tail"])]
    Log(Log),
    /// Show a message, its answer and what was done for it
    Show(Show),
    /// Show as a tree what teammates have done: messages, tools, runs below them, and what it took
    Trace(Trace),
    /// Show what the calls of models have cost, and how far budgets are used
    Cost(super::cost::Args),
    /// Start a teammate that was stopped
    Start(Name),
    /// Stop a teammate until it is started again
    Stop(Stop),
    /// Stop a teammate and start it again
    Restart(Name),
    /// Look at the board of tasks, or change it
    Task(Task),
    /// List the questions that wait for a decision
    Approvals(Approvals),
    /// Say yes to a question
    Approve(Approve),
    /// Say no to a question, and why
    Reject(Reject),
    /// Decide questions here as they come
    Attach,
    /// Look at lines and messages that could not be handled
    Dead(Dead),
    /// Check a team file and the mailbox folder
    Check(Check),
    /// Show what agents may be: types with the tools and rights that each leaves
    Types(Types),
    /// Print the JSON Schema of team files, for editors
    Schema,
    /// Explain a verb, `formats`, `clerk` or `program`
    Help(Help),
    /// Print completions for a shell
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// `init`
#[derive(Debug, clap::Args)]
pub struct Init {
    /// The team's name, and that of its file in `teams/`
    #[arg(default_value = "team")]
    pub name: String,
}

/// `run`
#[derive(Debug, clap::Args)]
pub struct Run {
    /// A team file or its name in `teams/`, a message, or both in this order; without a message the
    /// team file's `start` and `tasks` are sent
    #[arg(value_name = "TEAM] [MESSAGE", num_args = 0..=2)]
    pub words: Vec<String>,
    /// Give up after this long
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Where nobody is at a terminal: wait for `postroom approve`, instead of refusing what has to be
    /// asked for
    #[arg(long)]
    pub wait_approvals: bool,
    /// Let this provider think for everybody, whatever the team file says
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `up`
#[derive(Debug, clap::Args)]
pub struct Up {
    /// A team file, or its name in `teams/`; may be left out where `teams/` holds one
    pub team: Option<String>,
    /// Go on in the background
    #[arg(short, long)]
    pub detach: bool,
    /// Let this provider think for everybody, whatever the team file says
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// This is the process that goes on in the background.
    #[arg(long, hide = true)]
    pub in_background: bool,
}

/// `down`
#[derive(Debug, clap::Args)]
pub struct Down {
    /// First work off all mail that is there
    #[arg(long, conflicts_with = "force")]
    pub drain: bool,
    /// Do not wait for tools in hand
    #[arg(long)]
    pub force: bool,
}

/// `status`
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Exit 0 when all is well, 1 when the team is stuck, 3 when it is down, 5 when somebody is
    /// needed
    #[arg(long)]
    pub check: bool,
}

/// `send`
#[derive(Debug, clap::Args)]
pub struct Send {
    /// Who gets it
    pub name: String,
    /// What it says; `-` reads it from standard input
    pub text: String,
    /// Wait for the answer and print that
    #[arg(long)]
    pub wait: bool,
    /// Give up waiting after this long
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    pub timeout: Option<u64>,
    /// End the tool that is in the receiver's hand
    #[arg(long)]
    pub interrupt: bool,
    /// In whose name: `user`, or somebody outside the team
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// An id of your own, so that sending again has no second effect
    #[arg(long)]
    pub id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `wait`
#[derive(Debug, clap::Args)]
pub struct Wait {
    /// Ids of messages, or the beginnings of ids
    #[arg(required_unless_present_any = ["task", "idle"], value_name = "ID")]
    pub ids: Vec<String>,
    /// Wait until this task has ended; may be given several times
    #[arg(long, value_name = "ID")]
    pub task: Vec<String>,
    /// Wait until nobody has anything to do
    #[arg(long)]
    pub idle: bool,
    /// Give up after this long
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `inbox`
#[derive(Debug, clap::Args)]
pub struct Inbox {
    /// Whose
    #[arg(default_value = "user")]
    pub name: String,
    /// How many of the latest
    #[arg(short = 'n', long, default_value_t = 20)]
    pub lines: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `log`
#[derive(Debug, clap::Args)]
pub struct Log {
    /// Only mail from or to these
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Go on as mail comes
    #[arg(short, long)]
    pub follow: bool,
    /// Only mail since then: `10m`, `2h`, `1d`, or a time as in the lines
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// How many of the latest, where no `--since` is given
    #[arg(short = 'n', long, default_value_t = 100)]
    pub lines: usize,
    /// Print the lines as JSON
    #[arg(long)]
    pub json: bool,
}

/// `show`
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The id of a message, or its beginning
    pub id: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `trace`
#[derive(Debug, clap::Args)]
pub struct Trace {
    /// A teammate, or the id of a trace or its beginning, which shows its calls, too; else the latest
    /// life of every teammate
    pub id: Option<String>,
    /// The earlier lives of teammates, too
    #[arg(short, long)]
    pub all: bool,
    /// Go on as things happen, until the trace ends; without an ID into the next lives as well
    #[arg(short, long)]
    pub follow: bool,
}

/// A teammate.
#[derive(Debug, clap::Args)]
pub struct Name {
    /// Which teammate
    pub name: String,
}

/// `stop`
#[derive(Debug, clap::Args)]
pub struct Stop {
    /// Which teammate
    pub name: String,
    /// First work off the mail that lies before
    #[arg(long)]
    pub drain: bool,
}

/// `approvals`
#[derive(Debug, clap::Args)]
pub struct Approvals {
    /// Print JSON, one question a line
    #[arg(long)]
    pub json: bool,
}

/// `approve`
#[derive(Debug, clap::Args)]
pub struct Approve {
    /// The question's id, or the beginning of it
    pub id: String,
    /// What to tell whoever asks
    pub reason: Option<String>,
    /// The same may happen again without asking, until the teammate is started anew
    #[arg(long)]
    pub always: bool,
}

/// `reject`
#[derive(Debug, clap::Args)]
pub struct Reject {
    /// The question's id, or the beginning of it
    pub id: String,
    /// Why; whoever asks is told
    pub why: String,
}

/// `task`
#[derive(Debug, clap::Args)]
pub struct Task {
    /// What to do.
    #[command(subcommand)]
    pub verb: TaskVerb,
}

impl Task {
    /// Whether it speaks for somebody else than `name`.
    pub fn is_for_other_than(&self, name: &AgentName) -> bool {
        let by = match &self.verb {
            TaskVerb::Claim { by, .. } => by,
            TaskVerb::Update(it) => &it.by,
            TaskVerb::Add { .. }
            | TaskVerb::List { .. }
            | TaskVerb::Show { .. }
            | TaskVerb::Retry { .. }
            | TaskVerb::Cancel { .. } => return false,
        };
        by.as_ref().is_some_and(|by| by != name.as_str())
    }
}

/// `task …`
#[derive(Debug, Subcommand)]
pub enum TaskVerb {
    /// Add a task and print its id
    Add {
        /// What is to be done, in a few words
        title: String,
        /// The work in full, where the title does not say it all
        #[arg(long)]
        description: Option<String>,
        /// Who shall do it; else whoever is free
        #[arg(long, value_name = "NAME")]
        assignee: Option<String>,
        /// As what agent type it shall be done; else as what whoever takes it is
        #[arg(long, value_name = "TYPE")]
        agent_type: Option<String>,
        /// A task that has to be done first; may be given several times
        #[arg(long, value_name = "ID")]
        depends_on: Vec<String>,
        /// An id of your own, with a letter in it
        #[arg(long)]
        id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List tasks
    List {
        /// Only those that are pending, in_progress, done, failed or cancelled
        #[arg(long)]
        status: Option<String>,
        /// Print JSON, one task a line
        #[arg(long)]
        json: bool,
    },
    /// Show a task whole
    Show {
        /// Its id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Claim a task and print the attempt alone; a lost race is exit 1
    Claim {
        /// Its id
        id: String,
        /// In whose name
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
        /// How long the claim holds unless it is renewed. Default: 900
        #[arg(long, value_name = "SECONDS")]
        lease: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a task if it stands as expected; else exit 1
    Update(TaskUpdate),
    /// Try a failed task again
    Retry {
        /// Its id
        id: String,
    },
    /// Take a task off the board
    Cancel {
        /// Its id
        id: String,
    },
}

/// `task update`
#[derive(Debug, clap::Args)]
pub struct TaskUpdate {
    /// Its id
    pub id: String,
    /// In whose name
    #[arg(long = "as", value_name = "NAME")]
    pub by: Option<String>,
    /// The present attempt, as `claim` printed it
    #[arg(long)]
    pub attempt: Option<u64>,
    /// How the task stands as you know it
    #[arg(long, value_name = "STATUS")]
    pub expected_status: String,
    /// How it shall stand; `in_progress` renews a claim
    #[arg(long)]
    pub status: String,
    /// What came of it
    #[arg(long)]
    pub result: Option<String>,
    /// How long the claim holds from now on
    #[arg(long, value_name = "SECONDS")]
    pub lease: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `dead`
#[derive(Debug, clap::Args)]
pub struct Dead {
    /// What to do.
    #[command(subcommand)]
    pub verb: DeadVerb,
}

/// `dead …`
#[derive(Debug, Subcommand)]
pub enum DeadVerb {
    /// List dead letters
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one whole
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Send again what can be read by now
    Retry {
        /// Ids, or the beginnings of ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Strike from the list; the mailbox keeps the line
    Drop {
        /// Ids, or the beginnings of ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// `check`
#[derive(Debug, clap::Args)]
pub struct Check {
    /// A team file, or its name in `teams/`; else all of them
    pub team: Option<String>,
}

/// `types`
#[derive(Debug, clap::Args)]
pub struct Types {
    /// A type, to show everything about it; else all of them
    pub name: Option<String>,
    /// A team file, or its name in `teams/`; may be left out where `teams/` holds one
    #[arg(long)]
    pub team: Option<String>,
    /// Print what a teammate, or a subagent of the lead, is told: exactly as it is sent
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub prompt: bool,
    /// Print JSON, one type a line
    #[arg(long)]
    pub json: bool,
}

/// `help`
#[derive(Debug, clap::Args)]
pub struct Help {
    /// A verb, `formats`, `clerk` or `program`
    pub topic: Vec<String>,
}
