//! Agent types: what someone is, whether a teammate or a subagent.
//!
//! A type never gives anything: it says what is left of what its bearer's caller has. Built-in types,
//! their turns and their tools are those that users of older systems know.

use std::{fmt, time::Duration};

use super::{Budget, Pattern, PermissionMode, Place, Rule, TypeName, tool::counts_as};

/// A type of agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentType {
    /// What it is called by.
    pub name: TypeName,
    /// When to use it, in a few words; models that may delegate read it.
    pub description: String,
    /// What its bearer is told behind what its caller was told.
    pub system_prompt: String,
    /// Who may bear it.
    pub mode: TypeMode,
    /// The tools it has at most, all if absent; a pattern with brackets confines its tool to that.
    pub tools: Option<Vec<Pattern>>,
    /// The tools it does not have; a pattern with brackets takes that part of its tool away.
    pub disallowed_tools: Vec<Pattern>,
    /// The most turns of its model for one piece of work.
    pub max_turns: usize,
    /// Whether it may delegate in its turn.
    pub allow_nesting: bool,
    /// How its side effects are judged, where the caller's mode is not stricter.
    pub permission_mode: Option<PermissionMode>,
    /// Whether what would be asked for is refused.
    pub is_fail_closed: bool,
    /// What it says about single tools; only what its caller may do can be allowed.
    pub rules: Vec<Rule>,
    /// What it says about paths: the most specific wins.
    pub paths: Vec<PathRule>,
    /// How far one piece of work may go.
    pub limits: TypeLimits,
    /// How much all its bearers may spend together.
    pub budget: Budget,
    /// The provider that thinks for it, where it is not its caller's.
    pub provider: Option<String>,
    /// The model, where it is not its caller's.
    pub model: Option<String>,
    /// How freely the model chooses its words, from 0; the model's own default if absent.
    pub temperature: Option<f64>,
    /// Whether it may change nothing before a plan is approved.
    pub plan_required: bool,
    /// Where it was defined.
    pub origin: Origin,
}

/// Who may bear a type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TypeMode {
    /// Teammates and subagents.
    #[default]
    All,
    /// Teammates alone.
    Primary,
    /// Subagents alone.
    Subagent,
}

impl TypeMode {
    /// The words for them in definitions.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("all", Self::All), ("primary", Self::Primary), ("subagent", Self::Subagent)];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Primary => "primary",
            Self::Subagent => "subagent",
        }
    }
}

/// What is said of a path and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// Relative to the workspace, without `.` or `..`; or absolute. Empty for the whole workspace.
    pub path: String,
    /// What.
    pub grant: PathGrant,
}

/// What may happen to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathGrant {
    /// Reading; nothing is said of writing but that it is not granted: it is asked for.
    Allow,
    /// Reading and writing.
    AllowWrite,
    /// Both are asked for.
    Ask,
    /// Neither.
    Deny,
}

impl PathGrant {
    /// The words for them in definitions.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("allow", Self::Allow),
        ("allow_write", Self::AllowWrite),
        ("ask", Self::Ask),
        ("deny", Self::Deny),
    ];
}

/// How far one piece of work of a type may go; absent limits are those of its caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeLimits {
    /// The largest file that is read or written, in bytes.
    pub max_file_size: Option<u64>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How often it is begun again, with a fresh context, when it has failed.
    pub max_retries: u32,
}

/// Where a type was defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In this program.
    BuiltIn,
    /// In the team file.
    TeamFile(Place),
    /// In a Markdown file, as its path is written under the workspace.
    Markdown(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => out.write_str("built in"),
            Self::TeamFile(place) => write!(out, "the team file, {place}"),
            Self::Markdown(path) => out.write_str(path),
        }
    }
}

/// The most turns where a type does not say.
pub const MOST_TURNS: usize = 200;

impl AgentType {
    /// A type that takes nothing away but the right to delegate, as a configured one begins.
    pub fn new(name: TypeName, origin: Origin) -> Self {
        Self {
            name,
            description: String::new(),
            system_prompt: String::new(),
            mode: TypeMode::All,
            tools: None,
            disallowed_tools: Vec::new(),
            max_turns: MOST_TURNS,
            allow_nesting: false,
            permission_mode: None,
            is_fail_closed: false,
            rules: Vec::new(),
            paths: Vec::new(),
            limits: TypeLimits::default(),
            budget: Budget::default(),
            provider: None,
            model: None,
            temperature: None,
            plan_required: false,
            origin,
        }
    }

    /// Whether a tool is left by the allow-list, then by the deny-list, then by whether it may
    /// delegate. What does the same as another tool counts as that one, too.
    pub fn lets(&self, tool: &str) -> bool {
        let is_it = |it: &Pattern| it.tool == tool || it.tool == counts_as(tool);
        let is_allowed = self.tools.as_ref().is_none_or(|tools| tools.iter().any(is_it));
        let is_denied = self.disallowed_tools.iter().any(|it| it.of.is_none() && is_it(it));
        let may_nest = self.allow_nesting || counts_as(tool) != "subagent";
        is_allowed && !is_denied && may_nest
    }

    /// Whether nothing that its bearer does has side effects.
    pub fn only_reads(&self) -> bool {
        self.permission_mode == Some(PermissionMode::Plan)
    }

    /// Whether a subagent may be of this type.
    pub fn may_be_spawned(&self) -> bool {
        self.mode != TypeMode::Primary
    }
}

/// The types that are always there.
pub fn built_in_types() -> Vec<AgentType> {
    let reader = |name, description: &str, prompt: &str| AgentType {
        max_turns: 50,
        permission_mode: Some(PermissionMode::Plan),
        disallowed_tools: patterns(&["write_file", "edit_file", "bash", "subagent"]),
        ..built_in(name, description, prompt)
    };
    vec![
        AgentType {
            allow_nesting: true,
            ..built_in(
                "general-purpose",
                "Any work of several steps; has the tools and rights of whoever calls it.",
                "You carry out the task you are given, completely and by yourself. Your last \
                 message is all that your caller sees: report in it what you did, what you found \
                 and what is left.",
            )
        },
        reader(
            "explore",
            "Finds and reads files, and answers questions about them. Changes nothing.",
            "You search and read; you change nothing. Look broadly first, then read what matters. \
             Answer with what you found and where: paths with line numbers.",
        ),
        reader(
            "plan",
            "Reads what matters and lays out the steps of a change. Changes nothing.",
            "You plan a change; you do not make it. Read what the change touches. Answer with \
             numbered steps, each with the files it concerns, and with what could go wrong.",
        ),
        reader(
            "code-review",
            "Reads code and reports faults in it. Changes nothing.",
            "You review code; you change nothing. Report faults in the order of their weight, each \
             with path and line, why it is one, and what would mend it. Say so when there are none.",
        ),
        AgentType {
            max_turns: 20,
            disallowed_tools: patterns(&["subagent"]),
            ..built_in(
                "general",
                "Small work of few steps, with all tools but delegation.",
                "You carry out a small task. Your last message is all that your caller sees.",
            )
        },
        AgentType {
            max_turns: 25,
            temperature: Some(0.3),
            tools: Some(patterns(&["read_file", "list_files", "grep", "web_search", "fetch_url"])),
            ..built_in(
                "analyst",
                "Gathers facts from files and pages and weighs them.",
                "You gather facts and weigh them. Name the source of each. Keep apart what you know \
                 from what you conclude.",
            )
        },
    ]
}

fn built_in(name: &'static str, description: &str, prompt: &str) -> AgentType {
    AgentType {
        description: description.to_owned(),
        system_prompt: prompt.to_owned(),
        ..AgentType::new(TypeName::named(name), Origin::BuiltIn)
    }
}

fn patterns(names: &[&str]) -> Vec<Pattern> {
    names.iter().map(|name| Pattern { tool: (*name).to_owned(), of: None }).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::model::TOOL_NAMES;

    #[test]
    fn built_in_types_leave_these_tools() {
        let shown = built_in_types().into_iter().map(|it| {
            let left: Vec<&str> = TOOL_NAMES.iter().copied().filter(|tool| it.lets(tool)).collect();
            let mode = it.permission_mode.map_or("the caller's", PermissionMode::as_str);
            format!("{} {} {mode}: {}\n", it.name, it.max_turns, left.join(" "))
        });
        expect![[r"
            general-purpose 200 the caller's: read_file write_file edit_file list_files glob grep bash background_run background_check todo_write submit_plan decide_plan subagent subagent_send team_list team_send team_broadcast team_ask team_shutdown task_create task_list task_get task_update
            explore 50 plan: read_file list_files glob grep todo_write submit_plan decide_plan team_list team_send team_broadcast team_ask team_shutdown task_create task_list task_get task_update
            plan 50 plan: read_file list_files glob grep todo_write submit_plan decide_plan team_list team_send team_broadcast team_ask team_shutdown task_create task_list task_get task_update
            code-review 50 plan: read_file list_files glob grep todo_write submit_plan decide_plan team_list team_send team_broadcast team_ask team_shutdown task_create task_list task_get task_update
            general 20 the caller's: read_file write_file edit_file list_files glob grep bash background_run background_check todo_write submit_plan decide_plan team_list team_send team_broadcast team_ask team_shutdown task_create task_list task_get task_update
            analyst 25 the caller's: read_file list_files grep
        "]].assert_eq(&shown.collect::<String>());
    }

    #[test]
    fn the_allow_list_comes_first_then_the_deny_list_then_nesting() {
        let name = TypeName::named("x");
        let it = |tools: Option<&[&str]>, denied: &[&str], allow_nesting| AgentType {
            tools: tools.map(patterns),
            disallowed_tools: patterns(denied),
            allow_nesting,
            ..AgentType::new(name.clone(), Origin::BuiltIn)
        };
        let left = |it: AgentType| -> Vec<&str> {
            ["read_file", "bash", "background_run", "subagent", "subagent_send"]
                .into_iter()
                .filter(|tool| it.lets(tool))
                .collect()
        };
        assert_eq!(left(it(Some(&[]), &[], true)), [""; 0]);
        assert_eq!(
            left(it(Some(&["bash", "subagent"]), &["bash"], true)),
            ["subagent", "subagent_send"]
        );
        assert_eq!(left(it(Some(&["bash", "subagent"]), &[], false)), ["bash", "background_run"]);
        assert_eq!(left(it(None, &["background_run"], false)), ["read_file", "bash"]);
    }
}
