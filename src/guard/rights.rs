//! What a run may do, in layers: those of the agent itself above those of whoever called it. A call
//! is judged in each, and the strictest verdict holds, so no layer can give what one above it lacks.

use std::sync::Arc;

use crate::model::{AgentType, PathRule, Pattern, PermissionMode, Rule, Ruling, TypeName};

/// What a run may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The type that this layer is of; none where it is the teammate's own.
    pub of: Option<TypeName>,
    /// How side effects are judged.
    pub mode: PermissionMode,
    /// What the team file, or somebody who was asked, says about single things.
    pub rules: Vec<Rule>,
    /// What is said about paths.
    pub paths: Vec<PathRule>,
    /// What is left of the tools that are named here: nothing that no pattern matches.
    pub only: Vec<Pattern>,
    /// Whether what would be asked for is refused.
    pub is_fail_closed: bool,
    /// The rights of the caller, which hold, too.
    pub above: Option<Arc<Rights>>,
}

impl Rights {
    /// Rights of one layer.
    pub fn new(mode: PermissionMode, rules: Vec<Rule>) -> Self {
        Self {
            of: None,
            mode,
            rules,
            paths: Vec::new(),
            only: Vec::new(),
            is_fail_closed: false,
            above: None,
        }
    }

    /// The same while a plan waits for approval: no side effects, whatever the rules say.
    #[must_use]
    pub fn planning(&self) -> Self {
        Self { mode: PermissionMode::Plan, ..self.clone() }
    }

    /// The same with nobody to ask.
    #[must_use]
    pub fn fail_closed(&self) -> Self {
        Self { is_fail_closed: true, ..self.clone() }
    }

    /// What an agent of type `it` has of these rights when their bearer calls it.
    #[must_use]
    pub fn narrowed(&self, it: &AgentType) -> Self {
        let mode = it.permission_mode.map_or(self.mode, |mode| mode.min(self.mode));
        let taken_away = it.disallowed_tools.iter().filter(|pattern| pattern.of.is_some());
        let denied = taken_away.map(|it| Rule { ruling: Ruling::Deny, pattern: it.clone() });
        let confined = it.tools.iter().flatten().filter(|pattern| pattern.of.is_some());
        Self {
            of: Some(it.name.clone()),
            mode,
            rules: self
                .rules
                .iter()
                .cloned()
                .chain(it.rules.iter().cloned())
                .chain(denied)
                .collect(),
            paths: it.paths.clone(),
            only: confined.cloned().collect(),
            is_fail_closed: self.is_fail_closed
                || it.is_fail_closed
                || mode == PermissionMode::Plan,
            above: Some(Arc::new(self.clone())),
        }
    }

    /// The same where `patterns` happen without asking, in all layers: somebody who may has said so.
    #[must_use]
    pub fn allowing(&self, patterns: &[Pattern]) -> Self {
        let mut rights = self.clone();
        let allowed = patterns.iter().cloned();
        rights.rules.extend(allowed.map(|pattern| Rule { ruling: Ruling::Allow, pattern }));
        rights.above = rights.above.map(|above| Arc::new(above.allowing(patterns)));
        rights
    }

    /// All layers, from the agent's own to the outermost caller's.
    pub fn layers(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |layer| layer.above.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        guard::{Access, Verdict, decide},
        model::{Origin, PathGrant, TOOL_NAMES},
    };

    fn pattern() -> impl Strategy<Value = Pattern> {
        let texts = [
            "bash",
            "bash(ls:*)",
            "bash(git status)",
            "write_file",
            "write_file(src/**)",
            "edit_file(src/a.rs)",
            "read_file",
            "grep",
            "subagent",
            "background_run",
            "team_shutdown",
        ];
        prop::sample::select(texts.to_vec()).prop_map(|text| Pattern::parse(text).unwrap())
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let rulings = prop::sample::select(vec![Ruling::Allow, Ruling::Ask, Ruling::Deny]);
        (rulings, pattern()).prop_map(|(ruling, pattern)| Rule { ruling, pattern })
    }

    fn path_rule() -> impl Strategy<Value = PathRule> {
        let grants = PathGrant::WORDS.iter().map(|(_, grant)| *grant).collect::<Vec<_>>();
        let paths = prop::sample::select(vec!["", "src", "src/a.rs", "docs"]);
        (paths, prop::sample::select(grants))
            .prop_map(|(path, grant)| PathRule { path: path.to_owned(), grant })
    }

    prop_compose! {
        fn agent_type()(
            tools in prop::option::of(prop::collection::vec(pattern(), 0..6)),
            disallowed_tools in prop::collection::vec(pattern(), 0..3),
            allow_nesting in any::<bool>(),
            mode in prop::option::of(prop::sample::select(PermissionMode::ALL.to_vec())),
            is_fail_closed in any::<bool>(),
            rules in prop::collection::vec(rule(), 0..4),
            paths in prop::collection::vec(path_rule(), 0..3),
        ) -> AgentType {
            AgentType {
                tools,
                disallowed_tools,
                allow_nesting,
                permission_mode: mode,
                is_fail_closed,
                rules,
                paths,
                ..AgentType::new(TypeName::named("any"), Origin::BuiltIn)
            }
        }
    }

    fn accesses() -> Vec<(&'static str, Access)> {
        let mut all = Vec::new();
        for path in ["src/a.rs", "src/b/c", "docs/x", "other", ".git/config"] {
            all.push(("read_file", Access::Read(PathBuf::from(path))));
            all.push(("grep", Access::Read(PathBuf::from(path))));
            all.push(("write_file", Access::Write(PathBuf::from(path))));
            all.push(("edit_file", Access::Write(PathBuf::from(path))));
        }
        for command in ["ls", "ls -l", "git status", "rm -rf x", "ls; git push"] {
            all.push(("bash", Access::Run(command.to_owned())));
            all.push(("background_run", Access::Run(command.to_owned())));
        }
        all.push(("grep", Access::Read(PathBuf::from("src"))));
        all.push(("team_shutdown", Access::Team("stop scout".to_owned())));
        all
    }

    fn rank(verdict: &Verdict) -> u8 {
        match verdict {
            Verdict::Allow => 0,
            Verdict::Ask(_) => 1,
            Verdict::Deny(_) => 2,
        }
    }

    proptest! {
        /// However types are nested, nobody has a tool or a right that somebody above lacks.
        #[test]
        fn no_descendant_has_more_than_an_ancestor(
            mode in prop::sample::select(PermissionMode::ALL.to_vec()),
            rules in prop::collection::vec(rule(), 0..5),
            nest in prop::collection::vec(agent_type(), 1..6),
            always in prop::collection::vec(pattern(), 0..2),
        ) {
            let mut rights = Rights::new(mode, rules);
            let mut tools: Vec<&str> = TOOL_NAMES.to_vec();
            for it in &nest {
                let own = rights.narrowed(it);
                let left: Vec<&str> = tools.iter().copied().filter(|tool| it.lets(tool)).collect();
                prop_assert!(left.iter().all(|tool| tools.contains(tool)));
                prop_assert!(own.mode <= rights.mode);
                for (tool, access) in accesses() {
                    for (upper, lower) in [
                        (&rights, &own),
                        (&rights.allowing(&always), &own.allowing(&always)),
                        (&rights.planning(), &rights.planning().narrowed(it)),
                        (&rights, &rights.fail_closed()),
                    ] {
                        let above = decide(upper, tool, std::slice::from_ref(&access));
                        let below = decide(lower, tool, std::slice::from_ref(&access));
                        prop_assert!(rank(&below) >= rank(&above), "{tool} {access:?}: {below:?}");
                    }
                }
                for tool in ["subagent", "team_send", "background_check"] {
                    let (above, below) = (decide(&rights, tool, &[]), decide(&own, tool, &[]));
                    prop_assert!(rank(&below) >= rank(&above), "{tool}: {below:?}");
                }
                (rights, tools) = (own, left);
            }
        }
    }

    #[test]
    fn a_type_takes_away_and_gives_nothing() {
        let of = |tools: &[&str], it: AgentType| AgentType {
            tools: Some(tools.iter().map(|it| Pattern::parse(it).unwrap()).collect()),
            ..it
        };
        let plain = || AgentType::new(TypeName::named("any"), Origin::BuiltIn);
        let run = |command: &str| [Access::Run(command.to_owned())];
        let free = Rights::new(PermissionMode::Bypass, Vec::new());
        let confined = free.narrowed(&of(&["Bash(git diff:*)", "Read"], plain()));
        assert_eq!(decide(&confined, "bash", &run("git diff HEAD")), Verdict::Allow);
        for command in ["git push", "git diff; rm x", "ls"] {
            let verdict = decide(&confined, "background_run", &run(command));
            assert!(matches!(verdict, Verdict::Deny(_)), "{command}: {verdict:?}");
        }
        let asking = Rights::new(PermissionMode::Default, Vec::new());
        let deny = Rule { ruling: Ruling::Deny, pattern: Pattern::parse("Task").unwrap() };
        let alone = Rights::new(PermissionMode::Bypass, vec![deny]);
        for tool in ["subagent", "subagent_send"] {
            assert!(matches!(decide(&alone, tool, &[]), Verdict::Deny(_)), "{tool}");
        }
        assert_eq!(decide(&alone, "team_send", &[]), Verdict::Allow);
        let loose = AgentType { permission_mode: Some(PermissionMode::Bypass), ..plain() };
        let below = asking.narrowed(&loose);
        assert_eq!(below.mode, PermissionMode::Default);
        assert!(matches!(decide(&below, "bash", &run("ls")), Verdict::Ask(_)));
        assert!(matches!(decide(&below.fail_closed(), "bash", &run("ls")), Verdict::Deny(_)));
        let only_reads = AgentType { permission_mode: Some(PermissionMode::Plan), ..plain() };
        assert!(free.narrowed(&only_reads).is_fail_closed);
    }
}
