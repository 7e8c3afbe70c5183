//! Reads a team file: JSON in which comments and trailing commas are allowed. All faults are found
//! at once, each with its place.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jsonc_parser::ast::{Object, ObjectProp, Value};

use super::{
    AgentName, AgentType, Claims, Durability, Limits, OnUnknownType, PermissionMode, Placed,
    ProviderEntry, Rule, Ruling, Team, TeamFault, Teammate, TypeMode, TypeName,
    jsonc::Reader,
    team_types::{AgentFolders, Types},
    tool_pattern::tool_pattern,
};
use crate::base::text::listed;

/// Reads the text of a team file called `default_name` (its file's name without ending).
/// `folders` gives the agent files of the folders that it names.
pub fn read_team(
    text: &str,
    default_name: &str,
    folders: &AgentFolders<'_>,
) -> Result<Team, Vec<TeamFault>> {
    let mut reader = Reader::new(text);
    let team = reader.parse().and_then(|root| reader.team(&root, default_name, folders));
    reader.faults.sort();
    match team {
        Some(team) if reader.faults.is_empty() => Ok(team),
        _ => Err(reader.faults),
    }
}

/// The keys of a team file.
pub const TEAM_KEYS: &[&str] = &[
    "$schema",
    "team",
    "lead",
    "provider",
    "teammates",
    "outside",
    "permission_mode",
    "limits",
    "rules",
    "approver",
    "durability",
    "tasks",
    "start",
    "providers",
    "agents",
    "agent_folders",
    "default_agent",
    "on_unknown_type",
    "budget",
    "prices",
];
const TEAM_KEYS_TO_COME: &[&str] = &["hooks"];
/// The keys of a teammate.
pub const TEAMMATE_KEYS: &[&str] = &[
    "type",
    "agent_type",
    "role",
    "description",
    "system_prompt",
    "provider",
    "model",
    "permission_mode",
    "script",
    "count",
    "claims",
    "plan_required",
    "approver",
    "budget",
];
const TEAMMATE_KEYS_TO_COME: &[&str] = &[];
/// The keys of a team's limits.
pub const TEAM_LIMIT_KEYS: &[&str] = &[
    "tool_timeout_s",
    "grace_s",
    "mail_per_minute",
    "question_timeout_s",
    "max_depth",
    "max_children",
];
const MODES: &[(&str, PermissionMode)] = &[
    ("plan", PermissionMode::Plan),
    ("default", PermissionMode::Default),
    ("auto", PermissionMode::Auto),
    ("bypass", PermissionMode::Bypass),
];
const YES_NO: &[(&str, bool)] = &[("true", true), ("false", false)];
const CLAIMS: &[(&str, Claims)] =
    &[("any", Claims::Any), ("assigned", Claims::Assigned), ("none", Claims::None)];
const ON_UNKNOWN: &[(&str, OnUnknownType)] =
    &[("refuse", OnUnknownType::Refuse), ("default", OnUnknownType::Default)];
const DURABILITIES: &[(&str, Durability)] =
    &[("kill", Durability::Kill), ("power", Durability::Power)];
const MOST_OF_A_KIND: u64 = 1000;

/// What a teammate gets unless its entry says otherwise.
struct Defaults<'t> {
    mode: PermissionMode,
    types: &'t Types,
    providers: &'t BTreeMap<String, ProviderEntry>,
}

impl<'a> Reader<'a> {
    fn team(
        &mut self,
        root: &Object<'a>,
        default_name: &str,
        folders: &AgentFolders<'_>,
    ) -> Option<Team> {
        self.check_keys(root, "the team file", TEAM_KEYS, TEAM_KEYS_TO_COME);
        let providers = self.providers(root);
        let provider = self.known_provider(root, &providers);
        let name = self.team_name(root, default_name);
        let mode = self.choice(root, "permission_mode", MODES).unwrap_or(PermissionMode::Default);
        let types = self.types(root, folders, &providers);
        let order = self.teammates(root, &Defaults { mode, types: &types, providers: &providers });
        let teammates: BTreeMap<_, _> = order.iter().cloned().collect();
        let outside = self.outside(root, &teammates);
        let lead = self.lead(root, &teammates);
        let first = order.into_iter().next().map(|(name, _)| name);
        let mut team = Team {
            name,
            lead: lead.or(first)?,
            teammates,
            types: BTreeMap::new(),
            providers: BTreeMap::new(),
            provider: provider.unwrap_or_else(|| "clerk".to_owned()),
            default_type: types.default_type.clone(),
            on_unknown_type: self.choice(root, "on_unknown_type", ON_UNKNOWN).unwrap_or_default(),
            reports: Vec::new(),
            outside,
            limits: self.limits(root),
            budget: self.budget(root),
            prices: self.prices(root),
            rules: self.rules(root),
            approver: AgentName::user(),
            durability: self.choice(root, "durability", DURABILITIES).unwrap_or_default(),
            tasks: Vec::new(),
            start: Vec::new(),
        };
        team.set_types(types);
        team.providers = providers;
        team.approver = self.approver(root, &team).unwrap_or(team.approver);
        self.teammates_approvers(root, &mut team);
        team.tasks = self.tasks(root, &team);
        team.start = self.errands(root, &team);
        Some(team)
    }

    /// The file's name with what a name may not hold left out serves where none is given.
    fn team_name(&mut self, root: &Object<'a>, default_name: &str) -> AgentName {
        let given = self.string(root, "team");
        let named = given.and_then(|given| {
            let named = AgentName::for_member(&given.value).map_err(|why| why.to_string());
            self.kept(given.place, named)
        });
        named.unwrap_or_else(|| {
            let plain =
                default_name.to_lowercase().replace(|it: char| !it.is_ascii_alphanumeric(), "-");
            let plain = plain.trim_matches('-').to_owned();
            AgentName::for_member(&plain).unwrap_or_else(|_| AgentName::named("team"))
        })
    }

    /// The teammates in the order of the file.
    fn teammates(
        &mut self,
        root: &Object<'a>,
        defaults: &Defaults<'_>,
    ) -> Vec<(AgentName, Teammate)> {
        let mut order = Vec::new();
        let Some(Value::Object(entries)) = self.wanted(root, "teammates", "an object") else {
            if root.get("teammates").is_none() {
                self.fault(root, "no \"teammates\": a team needs at least one");
            }
            return order;
        };
        if entries.properties.is_empty() {
            self.fault(entries, "\"teammates\" is empty: a team needs at least one");
        }
        for entry in &entries.properties {
            let Value::Object(fields) = &entry.value else {
                self.fault(&entry.value, "a teammate is an object, such as {}");
                continue;
            };
            let Some(teammate) = self.teammate(entry, fields, defaults) else { continue };
            for name in self.names(entry, fields) {
                if order.iter().any(|(known, _)| *known == name) {
                    self.fault(entry, &format!("there are two teammates called {name}"));
                } else {
                    order.push((name, teammate.clone()));
                }
            }
        }
        order
    }

    /// The name of an entry, or the numbered names of one with a `count`.
    fn names(&mut self, entry: &ObjectProp<'a>, fields: &Object<'a>) -> Vec<AgentName> {
        let base = entry.name.as_str().to_owned();
        let texts = match self.number(fields, "count") {
            None => vec![base],
            Some(count) if (1..=MOST_OF_A_KIND).contains(&count.value) => {
                (1..=count.value).map(|number| format!("{base}-{number}")).collect()
            }
            Some(count) => {
                self.fault_at(count.place, "\"count\" has to be from 1 to 1000".to_owned());
                vec![base]
            }
        };
        let place = self.place(entry);
        let named = texts.iter().map(|text| AgentName::for_member(text));
        let named: Result<Vec<_>, _> = named.collect();
        self.kept(place, named.map_err(|why| why.to_string())).unwrap_or_default()
    }

    fn teammate(
        &mut self,
        entry: &ObjectProp<'a>,
        fields: &Object<'a>,
        defaults: &Defaults<'_>,
    ) -> Option<Teammate> {
        self.check_keys(fields, "a teammate", TEAMMATE_KEYS, TEAMMATE_KEYS_TO_COME);
        if let (Some(_), Some(second)) = (fields.get("role"), fields.get("description")) {
            self.fault(second, "\"description\" means the same as \"role\": keep one");
        }
        let role = self.string(fields, "role").or_else(|| self.string(fields, "description"));
        let it = self.type_of(entry, fields, defaults.types)?;
        let is_default = it.name == defaults.types.default_type;
        let description = it.description.clone();
        let role = role.map(|it| it.value).or(Some(description).filter(|_| !is_default));
        Some(Teammate {
            agent_type: it.name.clone(),
            provider: self.known_provider(fields, defaults.providers),
            model: self.string(fields, "model").map(|it| it.value),
            role: role.unwrap_or_default(),
            system_prompt: self
                .string(fields, "system_prompt")
                .map(|it| it.value)
                .unwrap_or_default(),
            script: self.string(fields, "script"),
            permission_mode: self.mode(fields, it, defaults.mode),
            plan_required: self.choice(fields, "plan_required", YES_NO).unwrap_or_default(),
            approver: None,
            claims: self.choice(fields, "claims", CLAIMS),
            budget: self.budget(fields),
        })
    }

    /// What a teammate is: as it says, else as its own name says, else the default.
    fn type_of<'t>(
        &mut self,
        entry: &ObjectProp<'a>,
        fields: &Object<'a>,
        types: &'t Types,
    ) -> Option<&'t AgentType> {
        if let (Some(_), Some(second)) = (fields.get("type"), fields.get("agent_type")) {
            self.fault(second, "\"agent_type\" means the same as \"type\": keep one");
        }
        let given = self.string(fields, "type").or_else(|| self.string(fields, "agent_type"));
        let name = match &given {
            Some(given) => self.known_type(given, "type", types)?,
            None => {
                let own = TypeName::new(entry.name.as_str()).ok();
                let own = own.filter(|name| types.known.contains_key(name));
                own.unwrap_or_else(|| types.default_type.clone())
            }
        };
        let it = types.known.get(&name)?;
        if it.mode == TypeMode::Subagent {
            let place = given.map_or_else(|| self.place(entry), |given| given.place);
            let why =
                format!("{name} is a type for subagents alone; give this teammate a \"type\"");
            self.fault_at(place, why);
        }
        Some(it)
    }

    /// How a teammate's side effects are judged: a type only ever tightens that.
    fn mode(
        &mut self,
        fields: &Object<'a>,
        it: &AgentType,
        of_team: PermissionMode,
    ) -> PermissionMode {
        let of_type = it.permission_mode;
        let Some(own) = self.choice(fields, "permission_mode", MODES) else {
            return of_type.map_or(of_team, |mode| mode.min(of_team));
        };
        if let Some(strict) = of_type.filter(|strict| *strict < own)
            && let Some(property) = fields.get("permission_mode")
        {
            let why = format!(
                "\"permission_mode\" {own} is looser than {strict}, which its type {} says",
                it.name
            );
            self.fault(property, &why);
        }
        own
    }

    fn lead(
        &mut self,
        root: &Object<'a>,
        teammates: &BTreeMap<AgentName, Teammate>,
    ) -> Option<AgentName> {
        let given = self.string(root, "lead")?;
        let known =
            AgentName::new(given.value.clone()).ok().filter(|it| teammates.contains_key(it));
        if known.is_none() {
            let names = listed(teammates.keys());
            let why =
                format!("\"lead\" is {:?}, who is no teammate; there are {names}", given.value);
            self.fault_at(given.place, why);
        }
        known
    }

    fn outside(
        &mut self,
        root: &Object<'a>,
        teammates: &BTreeMap<AgentName, Teammate>,
    ) -> BTreeSet<AgentName> {
        let mut names = BTreeSet::new();
        let Some(Value::Array(list)) = self.wanted(root, "outside", "a list of names") else {
            return names;
        };
        for element in &list.elements {
            let Value::StringLit(text) = element else {
                self.fault(element, "\"outside\" lists names");
                continue;
            };
            let named = AgentName::for_member(&text.value).map_err(|why| why.to_string());
            let place = self.place(element);
            let Some(name) = self.kept(place, named) else { continue };
            if teammates.contains_key(&name) {
                self.fault(element, &format!("{name} is a teammate and can't be outside, too"));
            }
            names.insert(name);
        }
        names
    }

    fn limits(&mut self, root: &Object<'a>) -> Limits {
        let mut limits = Limits::default();
        let Some(Value::Object(fields)) = self.wanted(root, "limits", "an object") else {
            return limits;
        };
        self.check_keys(fields, "\"limits\"", TEAM_LIMIT_KEYS, &[]);
        let seconds = |it: Placed<u64>| Duration::from_secs(it.value);
        if let Some(limit) = self.number(fields, "tool_timeout_s") {
            limits.tool_timeout = seconds(limit);
        }
        if let Some(limit) = self.number(fields, "grace_s") {
            limits.grace = seconds(limit);
        }
        if let Some(limit) = self.number(fields, "mail_per_minute") {
            limits.mail_per_minute = u32::try_from(limit.value).unwrap_or(u32::MAX);
        }
        let count = |it: Placed<u64>| usize::try_from(it.value).unwrap_or(usize::MAX);
        if let Some(limit) = self.number(fields, "max_depth") {
            limits.max_depth = count(limit);
        }
        if let Some(limit) = self.number(fields, "max_children") {
            limits.max_children = count(limit);
        }
        if fields.get("question_timeout_s").is_some_and(|it| it.value.as_null_keyword().is_some()) {
            limits.question_timeout = None;
        } else if let Some(limit) = self.number(fields, "question_timeout_s") {
            limits.question_timeout = Some(seconds(limit));
        }
        limits
    }

    fn rules(&mut self, root: &Object<'a>) -> Vec<Rule> {
        let Some(Value::Object(fields)) = self.wanted(root, "rules", "an object") else {
            return Vec::new();
        };
        self.check_keys(fields, "\"rules\"", &["allow", "ask", "deny"], &[]);
        let rulings = [("allow", Ruling::Allow), ("ask", Ruling::Ask), ("deny", Ruling::Deny)];
        let mut rules = Vec::new();
        for (key, ruling) in rulings {
            let Some(Value::Array(list)) = self.wanted(fields, key, "a list of rules") else {
                continue;
            };
            for element in &list.elements {
                let text = element.as_string_lit().map(|text| text.value.to_string());
                let read = text.ok_or_else(|| format!("{key:?} lists texts such as \"bash(ls)\""));
                let place = self.place(element);
                let read = read.and_then(|it| tool_pattern(&it).map_err(|slip| slip.to_string()));
                if let Some(pattern) = self.kept(place, read) {
                    rules.push(Rule { ruling, pattern });
                }
            }
        }
        rules
    }

    /// Who approves plans: a member.
    fn approver(&mut self, fields: &Object<'a>, team: &Team) -> Option<AgentName> {
        let given = self.string(fields, "approver")?;
        let name = AgentName::new(given.value.clone()).ok().map(|name| team.resolve(name));
        let known = name.filter(|name| team.members().contains(name));
        if known.is_none() {
            let names = listed(team.members());
            let why =
                format!("\"approver\" is {:?}, who is no member; there are {names}", given.value);
            self.fault_at(given.place, why);
        }
        known
    }

    /// Approvers can be named only once all members are known.
    fn teammates_approvers(&mut self, root: &Object<'a>, team: &mut Team) {
        let Some(Value::Object(entries)) = root.get("teammates").map(|it| &it.value) else {
            return;
        };
        for entry in &entries.properties {
            let Value::Object(fields) = &entry.value else { continue };
            let Some(approver) = self.approver(fields, team) else { continue };
            let base = entry.name.as_str();
            let is_of = |name: &AgentName| {
                name.as_str() == base
                    || (fields.get("count").is_some()
                        && name.as_str().strip_prefix(base).is_some_and(|it| it.starts_with('-')))
            };
            for (name, teammate) in &mut team.teammates {
                if is_of(name) {
                    teammate.approver = Some(approver.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        let faults = read_team(text, "shop", &|_| Ok(Vec::new())).unwrap_err();
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn a_small_team_gets_the_defaults() {
        let text = r#"{
            // the older shape, with a comment and a trailing comma
            "teammates": {"boss": {}, "impl": {"count": 2, "role": "writes", "permission_mode": "auto"},},
            "outside": ["ci"], "limits": {"grace_s": 1},
            "tasks": [{"title": "list src", "assignee": "impl-2"}],
            "start": [{"to": "lead", "content": "list"}, {"content": "read README.md"}],
        }"#;
        let team = read_team(text, "shop", &|_| Ok(Vec::new())).unwrap();
        let names: Vec<_> = team.teammates.keys().map(AgentName::as_str).collect();
        assert_eq!((team.name.as_str(), team.lead.as_str()), ("shop", "boss"));
        assert_eq!(names, ["boss", "impl-1", "impl-2"]);
        assert_eq!(team.limits.grace, Duration::from_secs(1));
        assert_eq!(team.tasks[0].assignee.as_ref().unwrap().as_str(), "impl-2");
        assert_eq!(team.claims(&team.lead), Claims::Assigned);
        assert_eq!(team.claims(&AgentName::named("impl-1")), Claims::Any);
        assert_eq!(team.start[0].to.as_str(), "boss");
        assert_eq!(team.start[1].to.as_str(), "boss");
    }

    #[test]
    fn all_faults_come_at_once_with_their_places() {
        let text = r#"{
            "team": "../x", "led": "boss", "lead": "nobody", "provider": "gpt", "provider": "clerk",
            "teammates": {"User": {}, "user": {}, "a": {"scirpt": "x", "permission_mode": "yolo"},
                "a": {}, "b": {"count": 0, "type": "explore", "role": "x", "description": "y"}, "c": 7},
            "outside": ["a", 7, "A b"],
            "limits": {"grace_s": -1, "max_depth": 3},
            "durability": 1,
            "tasks": [{"assignee": "a"}, "x"],
            "start": [{"to": "zed", "content": "x", "depends_on": []}]
        }"#;
        expect_test::expect_file!["../../tests/golden/team-faults.txt"].assert_eq(&faults(text));
    }

    #[test]
    fn what_is_no_team_file_is_told_so() {
        for text in ["", "[]", "{", "{\"teammates\": {}}", "{'teammates': {\"a\": {}}}", "{}"] {
            assert!(!faults(text).is_empty(), "{text}");
        }
    }
}
