//! Agent programs as teammates: they judge by themselves what they may do, so what postroom lets them
//! do is told them as one of their own modes, and where that says too little people are told.

use std::path::Path;

use crate::{
    guard::{Rights, Verdict, decide},
    model::{AgentName, AgentType, PathGrant, PermissionMode, Preset, Rule, Ruling, Team},
    tools::ToolSet,
};

/// What changes files in a workspace.
const EDITING: [&str; 2] = ["write_file", "edit_file"];

/// The mode for a program that judges by itself: the strictest of all layers of `rights`, and no
/// milder than the tools allow that are left whole. A program can't be told to ask us, nor of parts of
/// tools or of paths, so a tool that would be asked for is not left, nor one that is forbidden in part.
pub fn mode_for_program(rights: &Rights, tools: &ToolSet) -> PermissionMode {
    let is_left = |tool: &str| {
        tools.find(tool).is_ok()
            && matches!(decide(rights, tool, &[]), Verdict::Allow)
            && !rights.layers().any(|layer| is_cut(layer, tool))
    };
    let most = match (EDITING.into_iter().all(is_left), is_left("bash")) {
        (true, true) => PermissionMode::Bypass,
        (true, false) => PermissionMode::Auto,
        (false, true) => PermissionMode::Default,
        (false, false) => PermissionMode::Plan,
    };
    rights.layers().map(|layer| layer.mode).fold(most, PermissionMode::min)
}

/// Whether a layer keeps a part of a tool.
fn is_cut(layer: &Rights, tool: &str) -> bool {
    let is_kept = |rule: &Rule| match rule.ruling {
        Ruling::Deny => true,
        Ruling::Ask => layer.mode != PermissionMode::Bypass,
        Ruling::Allow => false,
    };
    layer.rules.iter().any(|rule| rule.pattern.tool == tool && is_kept(rule))
        || layer.only.iter().any(|pattern| pattern.tool == tool)
        || layer.paths.iter().any(|rule| match rule.grant {
            PathGrant::Deny | PathGrant::Ask => true,
            // Writing is asked for where it lies in the workspace; elsewhere it was never let.
            PathGrant::Allow => !Path::new(&rule.path).is_absolute(),
            PathGrant::AllowWrite => false,
        })
}

/// What people have to know of teammates whose rights a program holds: that it does, and what of the
/// team file it can't be told.
pub fn notes_on_programs(team: &Team) -> Vec<String> {
    let names = team.teammates.keys();
    let programs = names.filter_map(|name| Some((name, team.program_of(name)?)));
    programs.map(|(name, preset)| note_on(team, name, preset)).collect()
}

fn note_on(team: &Team, name: &AgentName, preset: Preset) -> String {
    let untold = |it: &AgentType| {
        let mut patterns = it.tools.iter().flatten().chain(&it.disallowed_tools);
        !it.rules.is_empty() || !it.paths.is_empty() || patterns.any(|it| it.of.is_some())
    };
    let held = format!("{name}: {}", preset.holds_rights());
    if team.rules.is_empty() && !team.type_of(name).is_some_and(untold) {
        return held;
    }
    format!(
        "{held}; rules and paths can't be told it: its mode is stricter where they keep it from \
         editing or commands, and they do not keep it from reading"
    )
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;

    use super::*;
    use crate::{
        model::{Origin, PathRule, Pattern, TypeName},
        tools::set,
    };

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    /// A type with this mode, these tools and this rule.
    fn narrow(mode: Option<PermissionMode>, tools: &[&str], deny: &[&str]) -> AgentType {
        let tools: Vec<Pattern> = tools.iter().map(|it| pattern(it)).collect();
        let deny = deny.iter().map(|it| Rule { ruling: Ruling::Deny, pattern: pattern(it) });
        AgentType {
            permission_mode: mode,
            tools: (!tools.is_empty()).then_some(tools),
            rules: deny.collect(),
            ..AgentType::new(TypeName::named("any"), Origin::BuiltIn)
        }
    }

    #[test]
    fn the_strictest_of_modes_tools_and_rules_holds() {
        let all = ToolSet::new(set::built_in());
        let secret = PathRule { path: "secret".to_owned(), grant: PathGrant::Deny };
        let mut table = String::new();
        let cases = [
            ("a type that says nothing", narrow(None, &[], &[])),
            ("a type in auto", narrow(Some(PermissionMode::Auto), &[], &[])),
            ("no bash", narrow(None, &["read_file", "write_file", "edit_file"], &[])),
            ("no editing", narrow(None, &["read_file", "bash"], &[])),
            ("half of editing", narrow(None, &["edit_file"], &[])),
            ("reading", narrow(None, &["read_file"], &[])),
            ("bash denied", narrow(None, &[], &["bash"])),
            ("a part of bash denied", narrow(None, &[], &["bash(rm:*)"])),
            ("a part of writing left", narrow(None, &["write_file(src/**)", "edit_file"], &[])),
            ("a path denied", AgentType { paths: vec![secret], ..narrow(None, &[], &[]) }),
        ];
        for (what, it) in cases {
            let modes = PermissionMode::ALL.map(|mode| {
                let rights = Rights::new(mode, Vec::new()).narrowed(&it);
                mode_for_program(&rights, &all.narrowed(&it)).as_str()
            });
            let _ = writeln!(table, "{what}: {}", modes.join(" "));
        }
        let ask = Rule { ruling: Ruling::Ask, pattern: pattern("bash") };
        let rights = Rights::new(PermissionMode::Auto, vec![ask]);
        let _ = writeln!(table, "bash asks in auto: {}", mode_for_program(&rights, &all));
        let rights = Rights::new(PermissionMode::Bypass, Vec::new()).planning();
        let _ = writeln!(table, "a plan to come: {}", mode_for_program(&rights, &all));
        expect![[r#"
            a type that says nothing: plan default auto bypass
            a type in auto: plan default auto auto
            no bash: plan default auto auto
            no editing: plan default default default
            half of editing: plan plan plan plan
            reading: plan plan plan plan
            bash denied: plan default auto auto
            a part of bash denied: plan default auto auto
            a part of writing left: plan plan plan plan
            a path denied: plan plan plan plan
            bash asks in auto: auto
            a plan to come: plan
        "#]]
        .assert_eq(&table);
    }
}
