//! The agent types of a team: built in, in its file, and in the Markdown files of its folders.

use std::collections::BTreeMap;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use serde_json::Map;

use super::{
    AgentName, AgentType, Origin, Placed, ProviderEntry, Report, Team, TypeName, built_in_types,
    find_type,
    front_matter::{FrontMatter, front_matter},
    jsonc::Reader,
    provider_entry::unknown_provider,
    type_file::{Defined, Manner, read_type},
};
use crate::base::text::headline;

/// Where agent files lie unless the team file says otherwise; the folder may be missing.
pub const AGENT_FOLDER: &str = "teams/agents";
/// The type that is taken where none is named.
const DEFAULT_TYPE: &str = "general-purpose";

/// A Markdown file that may define a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// Its path as it is shown.
    pub path: String,
    /// Its text, or why it can't be read.
    pub text: Result<String, String>,
}

/// Gives the agent files of a folder, in order; an error where there is no such folder.
pub type AgentFolders<'f> = dyn Fn(&str) -> Result<Vec<AgentFile>, String> + 'f;

/// The types of a team and what of their definitions was not used.
pub struct Types {
    /// By name.
    pub known: BTreeMap<TypeName, AgentType>,
    /// What of them was not used.
    pub reports: Vec<Report>,
    /// The type where none is named.
    pub default_type: TypeName,
    /// Who may think for them.
    providers: BTreeMap<String, ProviderEntry>,
}

impl<'a> Reader<'a> {
    /// All types of a team file.
    pub fn types(
        &mut self,
        root: &Object<'a>,
        folders: &AgentFolders<'_>,
        providers: &BTreeMap<String, ProviderEntry>,
    ) -> Types {
        let mut types = Types {
            known: built_in_types().into_iter().map(|it| (it.name.clone(), it)).collect(),
            reports: Vec::new(),
            default_type: TypeName::named(DEFAULT_TYPE),
            providers: providers.clone(),
        };
        self.own_types(root, &mut types);
        self.folders(root, folders, &mut types);
        self.default_type(root, &mut types);
        types
    }

    /// The type where none is named: a subagent has to be able to be it, whoever says that it is.
    fn default_type(&mut self, root: &Object<'a>, types: &mut Types) {
        let given = self.string(root, "default_agent").unwrap_or_else(|| Placed {
            place: self.place(root),
            value: types.default_type.to_string(),
        });
        let may_be = AgentType::may_be_spawned;
        let found = find_type(&types.known, &types.reports, &given.value, may_be);
        let found = found.map(|it| it.name.clone());
        let found = found.map_err(|why| format!("\"default_agent\": {why}"));
        if let Some(name) = self.kept(given.place, found) {
            types.default_type = name;
        }
    }

    /// The type that the value of `key` names.
    pub fn known_type(
        &mut self,
        given: &Placed<String>,
        key: &str,
        types: &Types,
    ) -> Option<TypeName> {
        let found = find_type(&types.known, &types.reports, &given.value, |_| true);
        let found = found.map(|it| it.name.clone());
        self.kept(given.place, found.map_err(|why| format!("{key:?}: {why}")))
    }

    fn own_types(&mut self, root: &Object<'a>, types: &mut Types) {
        let Some(Value::Object(entries)) = self.wanted(root, "agents", "an object") else { return };
        for entry in &entries.properties {
            let Value::Object(fields) = &entry.value else {
                self.fault(&entry.value, "a type is an object, such as {\"description\": \"…\"}");
                continue;
            };
            let place = self.place(entry);
            let name = type_name(entry.name.as_str());
            let Some(name) = self.kept(place, name) else { continue };
            self.check_twice(fields);
            let map = as_map(fields);
            let mut read = read_type(name.clone(), Origin::TeamFile(place), &map, Manner::Strict);
            types.check_provider(&mut read);
            let is_fine = read.faults.is_empty();
            for (way, why) in &read.faults {
                let place = self.place_of(entry, Some(fields), way);
                self.fault_at(place, why.clone());
            }
            let report = |text| Report { file: None, of: Some(name.clone()), text };
            let mut notes = std::mem::take(&mut read.notes);
            notes.extend(undescribed(&read.agent_type));
            types.reports.extend(notes.into_iter().map(report));
            let known = types.known.get(&name).map(|it| it.origin.clone());
            match known {
                Some(Origin::TeamFile(_)) => {
                    self.fault(entry, &format!("there are two types called {name}"));
                }
                Some(_) if !read.replaces => self.fault(
                    entry,
                    &format!(
                        "{name} is a built-in type; \"replaces\": true puts this one in its place"
                    ),
                ),
                Some(_) | None if is_fine => drop(types.known.insert(name, read.agent_type)),
                Some(_) | None => {}
            }
        }
    }

    /// The place of the deepest field on the way that is there.
    pub fn place_of(
        &self,
        entry: &ObjectProp<'a>,
        fields: Option<&Object<'a>>,
        way: &[String],
    ) -> super::Place {
        let (mut place, mut within) = (self.place(entry), fields);
        for key in way {
            let Some(property) = within.and_then(|it| it.get(key)) else { break };
            place = self.place(property);
            within = property.value.as_object();
        }
        place
    }

    fn folders(&mut self, root: &Object<'a>, folders: &AgentFolders<'_>, types: &mut Types) {
        let Some(value) = self.wanted(root, "agent_folders", "a list of folders") else {
            // Nobody has asked for the folder: that there is none is no fault.
            for file in folders(AGENT_FOLDER).unwrap_or_default() {
                types.take(file);
            }
            return;
        };
        let Value::Array(list) = value else { return };
        for element in &list.elements {
            let Value::StringLit(folder) = element else {
                self.fault(element, "\"agent_folders\" lists folders, such as \".claude/agents\"");
                continue;
            };
            match folders(&folder.value) {
                Ok(files) => files.into_iter().for_each(|file| types.take(file)),
                Err(why) => self.fault(element, &why),
            }
        }
    }
}

impl Types {
    /// A type's provider is one that there is.
    fn check_provider(&self, read: &mut Defined) {
        let unknown = read.agent_type.provider.clone();
        if let Some(unknown) = unknown.filter(|it| !self.providers.contains_key(it)) {
            let why = unknown_provider(&unknown, self.providers.keys());
            read.faults.push((vec!["provider".to_owned()], why));
        }
    }

    /// Takes up the type of a Markdown file, or reports why not.
    fn take(&mut self, file: AgentFile) {
        let AgentFile { path, text } = file;
        let report = |of, text| Report { file: Some(path.clone()), of, text };
        let Markdown { name, fields, mut notes } =
            match text.and_then(|text| read_markdown(&path, &text)) {
                Ok(read) => read,
                Err(why) => {
                    let of = as_name(stem(&path)).ok();
                    return self.reports.push(report(of, format!("not used: {why}")));
                }
            };
        match self.usable(&path, &name, &fields) {
            Ok(defined) => {
                notes.extend(defined.notes);
                notes.extend(undescribed(&defined.agent_type));
                self.reports.extend(notes.into_iter().map(|note| report(Some(name.clone()), note)));
                self.known.insert(name, defined.agent_type);
            }
            Err(why) => {
                let why = format!("{name} is not used: {why}");
                self.reports.push(report(Some(name), why));
            }
        }
    }

    /// The type that the fields of a Markdown file define, where it can be had.
    fn usable(
        &self,
        path: &str,
        name: &TypeName,
        fields: &Map<String, serde_json::Value>,
    ) -> Result<Defined, String> {
        if !fields.contains_key("system_prompt") {
            return Err("it has no prompt: nothing stands behind its front matter".to_owned());
        }
        let origin = Origin::Markdown(path.to_owned());
        let mut read = read_type(name.clone(), origin, fields, Manner::Lenient);
        self.check_provider(&mut read);
        match self.known.get(name).map(|it| &it.origin) {
            _ if !read.faults.is_empty() => {
                let whys: Vec<&str> = read.faults.iter().map(|(_, why)| why.as_str()).collect();
                Err(whys.join("; "))
            }
            Some(Origin::BuiltIn) if !read.replaces => Err(
                "there is a built-in type of that name; `replaces: true` puts this one in its place"
                    .to_owned(),
            ),
            Some(Origin::BuiltIn) | None => Ok(read),
            Some(other) => Err(format!("there is a type of that name already, from {other}")),
        }
    }
}

/// A Markdown file whose type has a name.
struct Markdown {
    name: TypeName,
    fields: Map<String, serde_json::Value>,
    notes: Vec<String>,
}

fn read_markdown(path: &str, text: &str) -> Result<Markdown, String> {
    let FrontMatter { mut fields, body, mut notes } = front_matter(text)?;
    let given = match fields.remove("name") {
        Some(serde_json::Value::String(name)) if !name.trim().is_empty() => name,
        _ => {
            let stem = stem(path).to_owned();
            notes.push(format!("has no name; its file's serves: {stem}"));
            stem
        }
    };
    let name = as_name(&given)?;
    if name.as_str() != given {
        notes.push(format!("its name {given:?} is written {name} here"));
    }
    if !body.is_empty() {
        fields.insert("system_prompt".to_owned(), body.into());
    }
    Ok(Markdown { name, fields, notes })
}

/// What a file is called, without its folder and ending.
fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".md").unwrap_or(file)
}

/// A name that a type may have: an assignee is a member or a type, so none is both.
fn type_name(text: &str) -> Result<TypeName, String> {
    if AgentName::RESERVED.contains(&text) {
        return Err(format!("{text:?} is no name of a type: it is reserved"));
    }
    TypeName::new(text).map_err(|why| why.to_string())
}

/// A name as it may be written here.
fn as_name(given: &str) -> Result<TypeName, String> {
    let plain = given.trim().to_lowercase();
    let plain = plain.replace(|it: char| !it.is_ascii_alphanumeric() && it != '_', "-");
    let plain: String = plain.trim_matches(['-', '_']).chars().take(64).collect();
    type_name(&plain).map_err(|_| format!("{:?} is no name for a type", headline(given, 80)))
}

/// An object of the team file as fields of a definition.
fn as_map(fields: &Object<'_>) -> Map<String, serde_json::Value> {
    match Value::Object(fields.clone()).into() {
        serde_json::Value::Object(map) => map,
        _ => Map::new(),
    }
}

impl Team {
    /// Takes what was read of its types.
    pub(super) fn set_types(&mut self, types: Types) {
        (self.types, self.reports) = (types.known, types.reports);
        self.default_type = types.default_type;
    }
}

/// What is told of a type that says nothing of itself, though whoever delegates chooses by that.
fn undescribed(it: &AgentType) -> Option<String> {
    let why = "it has no description, by which models choose among types";
    it.description.trim().is_empty().then(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::{expect, expect_file};

    use super::*;
    use crate::{
        base::text::listed,
        model::{TOOL_NAMES, read_team},
    };

    /// Files in the shapes that are found in public collections.
    fn files() -> Vec<AgentFile> {
        let huge = "it has 2000000 bytes; at most 1048576 are read".to_owned();
        let texts: &[(&str, Result<&str, &str>)] = &[
            (
                "a01-commas.md",
                Ok("---\nname: commas\ndescription: Reads.\ntools: Read, Grep, Glob\n---\nRead."),
            ),
            (
                "a02-list.md",
                Ok("---\nname: a-list\ndescription: Lists.\ntools:\n  - Read\n  - LS\n---\nList."),
            ),
            (
                "a03-wildcard.md",
                Ok("---\nname: wildcard\ndescription: All.\ntools: \"*\"\n---\nDo."),
            ),
            (
                "a04-part.md",
                Ok(
                    "---\nname: part\ndescription: Git.\ntools: Bash(git diff:*), Bash(git log:*), Read\n---\nLook.",
                ),
            ),
            (
                "a05-unknown-keys.md",
                Ok(
                    "---\nname: colourful\ndescription: Keys.\ncolor: blue\nmemory: project\nmodel: sonnet\n---\nShine.",
                ),
            ),
            (
                "a06-colons.md",
                Ok(
                    "---\nname: colons\ndescription: Use for code: review: and more\ntools: Read\n---\nReview.",
                ),
            ),
            ("a07-no-name.md", Ok("---\ndescription: Nameless.\n---\nGo.")),
            (
                "a08-crlf.md",
                Ok("---\r\nname: crlf\r\ndescription: Ends.\r\ntools: Read\r\n---\r\nEnd.\r\n"),
            ),
            ("a09-no-front.md", Ok("# Role\n\nYou plan.")),
            ("a10-bom.md", Ok("\u{feff}---\nname: bom\ndescription: Marked.\n---\nMark.")),
            (
                "a11-block.md",
                Ok(
                    "---\nname: block\ndescription: >\n  Folded over\n  two lines.\nmaxTurns: 12\n---\nFold.",
                ),
            ),
            ("a12-unclosed.md", Ok("---\nname: unclosed\ndescription: No end.\n\nText.")),
            ("a13-empty.md", Ok("")),
            ("a14-not-utf8.md", Err("it is not UTF-8")),
            ("a15-blanks.md", Ok("---\nname: Code Helper\ndescription: Blanks.\n---\nHelp.")),
            ("a16-again.md", Ok("---\nname: commas\ndescription: Twice.\n---\nAgain.")),
            (
                "a17-no-tools.md",
                Ok("---\nname: no-tools\ndescription: Empty list.\ntools:\n---\nThink."),
            ),
            (
                "a18-mcp.md",
                Ok(
                    "---\nname: mcp\ndescription: Servers.\ntools: mcp__github__search, Reed, WebFetch\n---\nAsk.",
                ),
            ),
            ("a19-huge.md", Err(&huge)),
            (
                "a20-modes.md",
                Ok(
                    "---\nname: modes\ndescription: Modes.\npermissionMode: acceptEdits\ndisallowedTools: Agent(worker), Bash\n---\nEdit.",
                ),
            ),
            ("a21-built-in.md", Ok("---\nname: explore\ndescription: Mine.\n---\nExplore.")),
            (
                "a22-replaces.md",
                Ok(
                    "---\nname: plan\ndescription: Mine.\nreplaces: true\nmax_turns: \"7\"\n---\nPlan.",
                ),
            ),
            (
                "a23-wrong.md",
                Ok(
                    "---\nname: wrong\ndescription: Wrong.\nmaxTurns: many\npermissionMode: yolo\n---\nNo.",
                ),
            ),
            (
                "a24-tabs.md",
                Ok("---\nname:\ttabs\ndescription:\tTabbed.\n\ttools: Read\n---\nTab."),
            ),
            (
                "sub/a25-quoted.md",
                Ok(
                    "---\nname: 'quoted'\ndescription: \"Quoted: yes.\"\ntools: [\"Read\", 'Bash']\n---\nQuote.",
                ),
            ),
        ];
        let file = |(path, text): &(&str, Result<&str, &str>)| AgentFile {
            path: format!("teams/agents/{path}"),
            text: text.map(str::to_owned).map_err(str::to_owned),
        };
        texts.iter().map(file).collect()
    }

    #[test]
    fn agent_files_of_every_shape_load_or_say_why_not() {
        let team = read_team(r#"{"teammates": {"a": {}}}"#, "t", &|_| Ok(files())).unwrap();
        let mut told = String::new();
        for it in team.types.values().filter(|it| matches!(it.origin, Origin::Markdown(_))) {
            let tools: Vec<&str> =
                TOOL_NAMES.iter().copied().filter(|tool| it.lets(tool)).collect();
            let tools =
                if tools.len() > 6 { format!("{} tools", tools.len()) } else { tools.join(" ") };
            let mode = it.permission_mode.map_or("the caller's", |mode| mode.as_str());
            writeln!(
                told,
                "{} ({}, {} turns, {mode}): {}",
                it.name,
                it.origin,
                it.max_turns,
                it.description.trim()
            )
            .unwrap();
            writeln!(told, "    {tools}: {:?}", it.system_prompt).unwrap();
        }
        writeln!(told).unwrap();
        for it in &team.reports {
            let of = it.of.as_ref().map_or("nothing known", TypeName::as_str);
            writeln!(told, "{it} [of {of}]").unwrap();
        }
        expect_file!["../../tests/golden/agent-files.txt"].assert_eq(&told);
    }

    fn listing(faults: &[crate::model::TeamFault]) -> String {
        faults.iter().fold(String::new(), |told, fault| format!("{told}{fault}\n"))
    }

    fn types(agents: &str) -> Result<Team, String> {
        let text = format!("{{\"teammates\": {{\"a\": {{}}}}, \"agents\": {agents}}}");
        read_team(&text, "t", &|_| Ok(Vec::new())).map_err(|faults| listing(&faults))
    }

    #[test]
    fn what_an_agent_file_denies_is_never_had() {
        let denials = [
            "disallowedTools: '*'",
            "disallowedTools: [Bash, 'Write, Edit']",
            "disallowedTools: Bash(rm, Write",
            "disallowedTools: Bash Write",
            "permissions: {tools: {'bash(rm': deny}}",
            "permissions: {tools: {'bash(rm': ask}}",
            "permissions: {tools: {bsh: deny}}",
            "permissions: {tools: {Writ: ask}}",
            "permissions: {tools: {subagent(explore): ask}}",
            "permissions: {tools: {team_send(w): deny}}",
            "permissions: {tools: {NotebookEdit: deny, team_send(w): allow}}",
            "permissions: {tool: {bash: deny}}",
            "permission: {tools: {bash: deny}}",
            "tool: Read",
            "disallowedTool: Bash",
            "max_turn: 3",
            "disallowedTools: Bash # never\nx: a: b",
        ];
        let mut told = String::new();
        for denial in denials {
            let text = format!("---\nname: it\n{denial}\n---\nWork.");
            let file = AgentFile { path: "agents/a.md".to_owned(), text: Ok(text) };
            let team = read_team(r#"{"teammates": {"a": {}}}"#, "t", &|_| Ok(vec![file.clone()]));
            let team = team.unwrap();
            let has = |it: &AgentType| {
                let tools = ["bash", "write_file", "read_file"];
                tools.into_iter().filter(|tool| it.lets(tool)).collect::<Vec<_>>().join(" ")
            };
            let has = team.types.get(&TypeName::named("it")).map(has);
            writeln!(told, "{denial:?}: {has:?} {}", listed(&team.reports)).unwrap();
        }
        expect![[r#"
            "disallowedTools: '*'": Some("") agents/a.md: it has no description, by which models choose among types
            "disallowedTools: [Bash, 'Write, Edit']": Some("read_file") agents/a.md: it has no description, by which models choose among types
            "disallowedTools: Bash(rm, Write": None agents/a.md: it is not used: "Bash(rm, Write" has no `)` at its end
            "disallowedTools: Bash Write": None agents/a.md: it is not used: "Bash Write" is no rule: write `tool` or `tool(pattern)`
            "permissions: {tools: {'bash(rm': deny}}": None agents/a.md: it is not used: "bash(rm" has no `)` at its end
            "permissions: {tools: {'bash(rm': ask}}": None agents/a.md: it is not used: "bash(rm" has no `)` at its end
            "permissions: {tools: {bsh: deny}}": None agents/a.md: it is not used: no tool is called bsh; did you mean bash?
            "permissions: {tools: {Writ: ask}}": None agents/a.md: it is not used: no tool is called Writ; did you mean write_file?
            "permissions: {tools: {subagent(explore): ask}}": None agents/a.md: it is not used: what is said of subagent is said of all of it: write "subagent"
            "permissions: {tools: {team_send(w): deny}}": Some("bash write_file read_file") agents/a.md: team_send can't be denied in part, so it is denied: team_send(w) and agents/a.md: it has no description, by which models choose among types
            "permissions: {tools: {NotebookEdit: deny, team_send(w): allow}}": Some("bash write_file read_file") agents/a.md: no tool is called NotebookEdit, agents/a.md: what is said of team_send is said of all of it: write "team_send" and agents/a.md: it has no description, by which models choose among types
            "permissions: {tool: {bash: deny}}": None agents/a.md: it is not used: "permissions" has no "tool"; valid are tools, paths, network and limits
            "permission: {tools: {bash: deny}}": None agents/a.md: it is not used: "permission" is written "permissions"
            "tool: Read": None agents/a.md: it is not used: "tool" is written "tools"
            "disallowedTool: Bash": None agents/a.md: it is not used: "disallowedTool" is written "disallowed_tools"
            "max_turn: 3": None agents/a.md: it is not used: "max_turn" is written "max_turns"
            "disallowedTools: Bash # never\nx: a: b": None agents/a.md: it is not used: "Bash # never" is no rule: write `tool` or `tool(pattern)`
        "#]].assert_eq(&told);
    }

    #[test]
    fn a_missing_type_is_explained_by_its_report_and_no_other() {
        let file = |name: &str| AgentFile {
            path: format!("teams/agents/{name}.md"),
            text: Ok("---\nname: reviewer\nmaxTurns: many\n---\nReview.".to_owned()),
        };
        let of = |wanted: &str| {
            let text = format!(
                r#"{{"teammates": {{"a": {{"type": "{wanted}"}}}}, "agents": {{"user": {{}}}}}}"#
            );
            let faults = read_team(&text, "t", &|_| Ok(vec![file("code")])).unwrap_err();
            listing(&faults)
        };
        expect![[r#"
            1:30: "type": no type is called "reviewer"; valid types are analyst, code-review, explore, general, general-purpose and plan (teams/agents/code.md: reviewer is not used: "maxTurns" has to be a whole number from 1)
            1:55: "user" is no name of a type: it is reserved
            1:30: "type": no type is called "view"; valid types are analyst, code-review, explore, general, general-purpose and plan
            1:51: "user" is no name of a type: it is reserved
        "#]].assert_eq(&(of("reviewer") + &of("view")));
    }

    #[test]
    fn the_default_type_is_one_that_may_be_spawned() {
        let read = |text: &str| read_team(text, "t", &|_| Ok(Vec::new()));
        let told = |text: &str| listing(&read(text).unwrap_err());
        let named = r#"{"default_agent": "boss", "teammates": {"a": {}},
            "agents": {"boss": {"mode": "primary"}}}"#;
        let replaced = r#"{"teammates": {"a": {}},
            "agents": {"general-purpose": {"replaces": true, "mode": "primary"}}}"#;
        expect![[r#"
            1:19: "default_agent": boss is a primary type: a teammate may be one and a subagent may not; valid types are analyst, code-review, explore, general, general-purpose and plan
            1:1: "default_agent": general-purpose is a primary type: a teammate may be one and a subagent may not; valid types are analyst, code-review, explore, general and plan
        "#]].assert_eq(&(told(named) + &told(replaced)));
        let fine = read(&named.replace("primary", "all")).unwrap();
        assert_eq!(fine.default_type, TypeName::named("boss"));
    }

    #[test]
    fn both_vocabularies_mean_the_same() {
        let one = types(
            r#"{"x": {"description": "d", "mode": "subagent", "tools": ["read_file", "bash"],
                "disallowed_tools": ["grep"], "max_turns": 9, "allow_nesting": true,
                "permission_mode": "default", "temperature": 0.2, "plan_required": true}}"#,
        );
        let all = [
            r#""allowed_tools": ["Read", "execute_bash"], "denied_tools": ["search_code"], "max_iterations": 9, "can_spawn_subagent": true, "permission_mode": "manual""#,
            r#""tools": "Read, Bash", "disallowedTools": "Grep", "maxTurns": 9, "allow_nesting": true, "permissionMode": "manual""#,
        ];
        let one = one.unwrap().types[&TypeName::named("x")].clone();
        for other in all {
            let text = format!(
                r#"{{"x": {{"description": "d", "mode": "subagent", {other}, "temperature": 0.2, "plan_required": true}}}}"#
            );
            let other = types(&text).unwrap().types[&TypeName::named("x")].clone();
            assert_eq!(AgentType { origin: one.origin.clone(), ..other }, one);
        }
    }

    #[test]
    fn permissions_become_rules_paths_and_limits() {
        let team = types(
            r#"{"x": {"permissions": {
                "tools": {"bash": "deny", "edit_file(src/**)": "allow", "Write": "ask"},
                "paths": {"~/.ssh": "deny", "./docs/": "allow_write", "src/**": "ask", ".": "allow"},
                "network": {"allowed_domains": ["example.com"]},
                "limits": {"max_file_size": 10, "max_iterations": 15, "timeout_seconds": 300, "max_retries": 0}}},
              "y": {"permissions": {"limits": {"max_iterations": 500}}},
              "z": {"max_turns": 300, "permissions": {"limits": {"max_iterations": 500}}}}"#,
        )
        .unwrap();
        let it = &team.types[&TypeName::named("x")];
        let rules: Vec<String> =
            it.rules.iter().map(|it| format!("{:?} {}", it.ruling, it.pattern)).collect();
        assert_eq!(rules, ["Ask write_file", "Allow edit_file(src/**)"]);
        assert!(!it.lets("bash") && !it.lets("background_run"));
        let paths: Vec<String> =
            it.paths.iter().map(|it| format!("{:?} {:?}", it.grant, it.path)).collect();
        assert_eq!(
            paths,
            [r#"Allow """#, r#"AllowWrite "docs""#, r#"Ask "src""#, r#"Deny "~/.ssh""#]
        );
        assert_eq!(
            (it.max_turns, it.limits.max_file_size, it.limits.max_retries),
            (15, Some(10), 0)
        );
        assert_eq!(it.limits.timeout.unwrap().as_secs(), 300);
        let turns = |name| team.types[&TypeName::named(name)].max_turns;
        assert_eq!((turns("y"), turns("z")), (500, 300));
        assert!(team.reports[0].text.contains("no tool of this version reaches a host"));
    }

    #[test]
    fn all_faults_of_types_come_at_once_with_their_places() {
        let faults = types(
            r#"{
            "Bad Name": {}, "explore": {}, "x": 7,
            "y": {"tools": ["Raed", "bash("], "max_turns": 0, "maxTurns": 3, "mode": "both", "colour": 1,
                "permission_mode": "yolo", "temperature": 9, "allow_nesting": "yes", "provider": "gpt",
                "permissions": {"tools": {"bash": "perhaps", "nope": "deny"}, "paths": {"../x": "deny", "a*": "allow", "b": 1},
                    "limits": {"max_file_size": -1, "other": 2}, "more": {}}},
            "z": {"tools": 3, "tools": []}, "y": {}
        }"#,
        );
        expect_file!["../../tests/golden/type-faults.txt"].assert_eq(&faults.unwrap_err());
        let dangling = read_team(
            r#"{"default_agent": "explroe", "agent_folders": ["nowhere"],
                "agents": {"sub": {"mode": "subagent"}, "lead-only": {"mode": "primary"}},
                "teammates": {"a": {"type": "a13-empty"}, "sub": {}, "b": {"type": "explore", "permission_mode": "auto"},
                    "c": {"type": "plan", "agent_type": "plan"}},
                "tasks": [{"title": "x", "assignee": "explore", "agent_type": "lead-only"}]}"#,
            "t",
            &|folder| {
                if folder == "nowhere" {
                    Err("there is no folder nowhere".to_owned())
                } else {
                    Ok(files())
                }
            },
        );
        let told = listing(&dangling.unwrap_err());
        expect![[r#"
            1:19: "default_agent": no type is called "explroe"; did you mean explore?; valid types are analyst, code-review, explore, general, general-purpose, plan and sub
            1:48: there is no folder nowhere
            3:45: "type": no type is called "a13-empty"; valid types are analyst, code-review, explore, general, general-purpose, lead-only, plan and sub
            3:59: sub is a type for subagents alone; give this teammate a "type"
            3:95: "permission_mode" auto is looser than plan, which its type explore says
            4:43: "agent_type" means the same as "type": keep one
            5:79: lead-only is a primary type: a teammate may be one and a subagent may not; valid types are analyst, code-review, explore, general, general-purpose, plan and sub
        "#]].assert_eq(&told);
    }
}
