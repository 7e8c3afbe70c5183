//! Reads the definition of an agent type, in either vocabulary and from either kind of file: fields
//! with values in, a type with all its faults and notes out.

use std::time::Duration;

use serde_json::{Map, Value};

use super::type_words::{apart, is_all, subtree};
use super::{
    AgentType, Origin, PathGrant, PathRule, Pattern, PermissionMode, Rule, Ruling, TOOLS_TO_COME,
    TypeLimits, TypeMode, TypeName,
    budget_file::read_budget,
    tool_pattern::{Slip, tool_pattern},
    type_fields::{
        LIMIT_FIELDS, NETWORK_FIELDS, PERMISSION_FIELDS, TYPE_FIELDS, field_like, is_field,
        one_like,
    },
};
use crate::base::text::listed;

const RULINGS: &[(&str, Ruling)] =
    &[("allow", Ruling::Allow), ("ask", Ruling::Ask), ("deny", Ruling::Deny)];

/// The most retries of a subagent that fails.
const MOST_RETRIES: u64 = 10;

/// How a definition is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Written for postroom: what it does not know is a fault.
    Strict,
    /// Written for whatever system: what is not known is left out and noted; numbers may be texts.
    Lenient,
}

/// A definition that was read.
#[derive(Debug)]
pub struct Defined {
    /// The type, usable where there is no fault.
    pub agent_type: AgentType,
    /// Whether it shall take the place of a built-in type.
    pub replaces: bool,
    /// What is wrong: the way to it through the fields, and why.
    pub faults: Vec<(Vec<String>, String)>,
    /// What was left out.
    pub notes: Vec<String>,
}

/// Reads a definition.
pub fn read_type(
    name: TypeName,
    origin: Origin,
    fields: &Map<String, Value>,
    manner: Manner,
) -> Defined {
    let mut reader = TypeReader { fields, manner, faults: Vec::new(), notes: Vec::new() };
    reader.check_keys();
    let mut it = AgentType::new(name, origin);
    reader.texts(&mut it);
    reader.tools(&mut it);
    reader.numbers(&mut it);
    reader.permission_mode(&mut it);
    reader.permissions(&mut it);
    reader.budget(&mut it);
    let replaces = reader.flag("replaces").unwrap_or_default();
    let TypeReader { faults, notes, .. } = reader;
    Defined { agent_type: it, replaces, faults, notes }
}

struct TypeReader<'a> {
    fields: &'a Map<String, Value>,
    manner: Manner,
    faults: Vec<(Vec<String>, String)>,
    notes: Vec<String>,
}

impl<'a> TypeReader<'a> {
    fn check_keys(&mut self) {
        let fields = self.fields;
        let is_known = |key: &&String| key.as_str() != "name" && is_field(key);
        let unknown: Vec<&String> = fields.keys().filter(|key| !is_known(key)).collect();
        for key in &unknown {
            if let Some(meant) = field_like(key).filter(|_| self.manner == Manner::Lenient) {
                self.fault(&[key], format!("{key:?} is written {meant:?}"));
            }
        }
        match self.manner {
            Manner::Lenient if !unknown.is_empty() => {
                self.notes.push(format!("left out, since not known here: {}", listed(unknown)));
            }
            Manner::Lenient => {}
            Manner::Strict => {
                let valid = listed(TYPE_FIELDS.iter().map(|(name, _)| *name));
                for key in unknown {
                    self.fault(&[key], format!("a type has no {key:?}; valid are {valid}"));
                }
            }
        }
        for (name, aliases) in TYPE_FIELDS {
            let mut given = [*name].into_iter().chain(aliases.iter().copied());
            let first = given.find(|key| fields.contains_key(*key));
            if let (Some(first), Some(second)) =
                (first, given.find(|key| fields.contains_key(*key)))
            {
                self.fault(&[second], format!("{second:?} means the same as {first:?}: keep one"));
            }
        }
    }

    /// The value of a field under whichever of its names it has, and that name.
    fn get(&self, name: &str) -> Option<(&'a str, &'a Value)> {
        let (_, aliases) = TYPE_FIELDS.iter().find(|(field, _)| *field == name)?;
        let found =
            self.fields.iter().find(|(key, _)| *key == name || aliases.contains(&key.as_str()));
        found.map(|(key, value)| (key.as_str(), value))
    }

    fn fault(&mut self, way: &[&str], why: String) {
        self.faults.push((way.iter().map(|key| (*key).to_owned()).collect(), why));
    }

    /// A fault in what is written for postroom, else something that is left out.
    fn fault_or_note(&mut self, way: &[&str], why: String) {
        match self.manner {
            Manner::Strict => self.fault(way, why),
            Manner::Lenient => self.notes.push(why),
        }
    }

    fn texts(&mut self, it: &mut AgentType) {
        it.description = self.text("description").unwrap_or_default();
        it.system_prompt = self.text("system_prompt").unwrap_or_default();
        it.model = self.text("model").filter(|model| model != "inherit");
        it.provider = self.text("provider");
        if let Some(mode) = self.choice(&["mode"], self.get("mode"), TypeMode::WORDS) {
            it.mode = mode;
        }
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let (key, value) = self.get(name)?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            // `description: 7` in a front matter.
            Value::Number(_) | Value::Bool(_) if self.manner == Manner::Lenient => {
                Some(value.to_string())
            }
            _ => {
                self.fault(&[key], format!("{key:?} has to be a string"));
                None
            }
        }
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        let (key, value) = self.get(name)?;
        let read = match value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if self.manner == Manner::Lenient => text.parse().ok(),
            _ => None,
        };
        if read.is_none() {
            self.fault(&[key], format!("{key:?} has to be true or false"));
        }
        read
    }

    fn numbers(&mut self, it: &mut AgentType) {
        if let Some((key, value)) = self.get("max_turns")
            && let Some(turns) = self.number(&[key], value, 1)
        {
            it.max_turns = usize::try_from(turns).unwrap_or(usize::MAX);
        }
        it.allow_nesting = self.flag("allow_nesting").unwrap_or_default();
        it.plan_required = self.flag("plan_required").unwrap_or_default();
        if let Some((key, value)) = self.get("temperature") {
            let text = value.as_str().filter(|_| self.manner == Manner::Lenient);
            let number = value.as_f64().or_else(|| text.and_then(|text| text.parse().ok()));
            it.temperature = number.filter(|it| (0.0..=2.0).contains(it));
            if it.temperature.is_none() {
                self.fault(&[key], format!("{key:?} has to be a number from 0 to 2"));
            }
        }
    }

    fn number(&mut self, way: &[&str], value: &Value, least: u64) -> Option<u64> {
        let text = value.as_str().filter(|_| self.manner == Manner::Lenient);
        let number = value.as_u64().or_else(|| text.and_then(|text| text.trim().parse().ok()));
        let found = number.filter(|number| *number >= least);
        if found.is_none() {
            let key = way.last().copied().unwrap_or_default();
            self.fault(way, format!("{key:?} has to be a whole number from {least}"));
        }
        found
    }

    fn choice<T: Copy>(
        &mut self,
        way: &[&str],
        given: Option<(&str, &Value)>,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let (key, value) = given?;
        let found = choices.iter().find(|(word, _)| value.as_str() == Some(word));
        if found.is_none() {
            let valid = listed(choices.iter().map(|(word, _)| *word));
            self.fault(way, format!("{key:?} has to be one of {valid}"));
        }
        found.map(|(_, value)| *value)
    }

    /// The mode, in the words of several systems.
    fn permission_mode(&mut self, it: &mut AgentType) {
        let Some((key, value)) = self.get("permission_mode") else { return };
        let mode = match value.as_str() {
            Some("plan") => PermissionMode::Plan,
            Some("default" | "manual") => PermissionMode::Default,
            Some("auto") => PermissionMode::Auto,
            Some("bypass" | "bypassPermissions") => PermissionMode::Bypass,
            Some("acceptEdits") => {
                it.rules.extend(["edit_file", "write_file"].map(|tool| Rule {
                    ruling: Ruling::Allow,
                    pattern: Pattern { tool: tool.to_owned(), of: None },
                }));
                PermissionMode::Default
            }
            Some("dontAsk") => {
                it.is_fail_closed = true;
                PermissionMode::Default
            }
            _ => {
                let why = format!(
                    "{key:?} has to be one of plan, default, auto and bypass, or of acceptEdits, \
                     dontAsk, manual and bypassPermissions"
                );
                return self.fault(&[key], why);
            }
        };
        it.permission_mode = Some(mode);
    }

    fn tools(&mut self, it: &mut AgentType) {
        if let Some((key, value)) = self.get("tools") {
            let names = self.names(key, value).unwrap_or_default();
            if value.is_null() && self.manner == Manner::Lenient {
                self.notes
                    .push(format!("{key:?} is empty, so it has no tools; leave it out for all"));
            }
            if !names.iter().any(|name| is_all(name)) {
                let patterns =
                    names.iter().filter_map(|name| self.pattern(&[key], name, Ruling::Allow));
                it.tools = Some(patterns.collect());
            }
        }
        if let Some((key, value)) = self.get("disallowed_tools") {
            let names = self.names(key, value).unwrap_or_default();
            if names.iter().any(|name| is_all(name)) {
                it.tools = Some(Vec::new());
            }
            for name in names.iter().filter(|name| !is_all(name)) {
                it.disallowed_tools.extend(self.pattern(&[key], name, Ruling::Deny));
            }
        }
    }

    /// Names in a list, or in a text with commas.
    fn names(&mut self, key: &str, value: &Value) -> Option<Vec<String>> {
        match value {
            Value::String(text) => Some(apart(text)),
            Value::Array(list) if list.iter().all(Value::is_string) => {
                Some(list.iter().filter_map(Value::as_str).flat_map(apart).collect())
            }
            Value::Null if self.manner == Manner::Lenient => Some(Vec::new()),
            _ => {
                self.fault(&[key], format!("{key:?} lists names of tools"));
                None
            }
        }
    }

    /// A tool, or a part of one, of which `ruling` is said. What can't be taken as it stands is a fault
    /// where to leave it out would give more than was meant.
    fn pattern(&mut self, way: &[&str], name: &str, ruling: Ruling) -> Option<Pattern> {
        let slip = match tool_pattern(name) {
            Ok(pattern) => {
                if TOOLS_TO_COME.contains(&pattern.tool.as_str()) {
                    self.notes.push(format!("tool {} is missing in this version", pattern.tool));
                }
                return Some(pattern);
            }
            Err(slip) => slip,
        };
        match slip {
            Slip::InPart { tool } if ruling == Ruling::Deny => {
                self.notes.push(format!("{tool} can't be denied in part, so it is denied: {name}"));
                return Some(Pattern { tool, of: None });
            }
            Slip::OfServer(_) => self.notes.push(slip.to_string()),
            Slip::NoPattern(_) | Slip::Unknown { .. } | Slip::InPart { .. } => {
                let tell = if slip.loosens(ruling) { Self::fault } else { Self::fault_or_note };
                tell(self, way, slip.to_string());
            }
        }
        None
    }

    fn permissions(&mut self, it: &mut AgentType) {
        let Some((key, value)) = self.get("permissions") else { return };
        let Some(parts) = self.object(&[key], value, PERMISSION_FIELDS) else { return };
        for (part, value) in parts {
            match part.as_str() {
                "tools" => self.permitted_tools(it, value),
                "paths" => self.paths(it, value),
                "network" => self.network(value),
                "limits" => self.limits(it, value),
                _ => {}
            }
        }
    }

    fn object<'v>(
        &mut self,
        way: &[&str],
        value: &'v Value,
        known: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let key = way.last().copied().unwrap_or_default();
        let Some(fields) = value.as_object() else {
            self.fault(way, format!("{key:?} has to be an object"));
            return None;
        };
        for unknown in fields.keys().filter(|it| !known.is_empty() && !known.contains(&it.as_str()))
        {
            let why = format!("{key:?} has no {unknown:?}; valid are {}", listed(known));
            let is_slip = one_like(unknown, known).is_some();
            let tell = if is_slip { Self::fault } else { Self::fault_or_note };
            tell(self, &[way, &[unknown.as_str()]].concat(), why);
        }
        Some(fields)
    }

    fn permitted_tools(&mut self, it: &mut AgentType, value: &Value) {
        let way = ["permissions", "tools"];
        let Some(fields) = self.object(&way, value, &[]) else { return };
        for (name, word) in fields {
            let way = [&way[..], &[name.as_str()]].concat();
            let Some(ruling) = self.choice(&way, Some((name, word)), RULINGS) else { continue };
            let Some(pattern) = self.pattern(&way, name, ruling) else { continue };
            if ruling == Ruling::Deny && pattern.of.is_none() {
                // A tool that touches nothing is not judged by rules: it is taken away.
                it.disallowed_tools.push(pattern);
            } else {
                it.rules.push(Rule { ruling, pattern });
            }
        }
    }

    fn paths(&mut self, it: &mut AgentType, value: &Value) {
        let way = ["permissions", "paths"];
        let Some(fields) = self.object(&way, value, &[]) else { return };
        for (path, word) in fields {
            let way = [&way[..], &[path.as_str()]].concat();
            let grant = self.choice(&way, Some((path, word)), PathGrant::WORDS);
            match (subtree(path), grant) {
                (Ok(path), Some(grant)) => it.paths.push(PathRule { path, grant }),
                (Ok(_), None) => {}
                (Err(why), _) => self.fault(&way, why),
            }
        }
    }

    fn budget(&mut self, it: &mut AgentType) {
        let Some((key, value)) = self.get("budget") else { return };
        let (budget, faults) = read_budget(value);
        let of_type = |(way, why)| ([vec![key.to_owned()], way].concat(), why);
        self.faults.extend(faults.into_iter().map(of_type));
        it.budget = budget;
    }

    fn network(&mut self, value: &Value) {
        if self.object(&["permissions", "network"], value, NETWORK_FIELDS).is_some() {
            let why = "\"network\" has no effect yet: no tool of this version reaches a host";
            self.notes.push(why.to_owned());
        }
    }

    fn limits(&mut self, it: &mut AgentType, value: &Value) {
        let way = ["permissions", "limits"];
        let Some(fields) = self.object(&way, value, LIMIT_FIELDS) else { return };
        let mut limits = TypeLimits::default();
        for (key, value) in fields {
            let way = [&way[..], &[key.as_str()]].concat();
            let least = u64::from(key != "max_retries");
            if !LIMIT_FIELDS.contains(&key.as_str()) {
                continue;
            }
            let Some(number) = self.number(&way, value, least) else { continue };
            match key.as_str() {
                "max_file_size" => limits.max_file_size = Some(number),
                "timeout_seconds" => limits.timeout = Some(Duration::from_secs(number)),
                "max_retries" if number > MOST_RETRIES => {
                    self.fault(&way, format!("\"max_retries\" is at most {MOST_RETRIES}"));
                }
                "max_retries" => limits.max_retries = u32::try_from(number).unwrap_or_default(),
                _ => {
                    let turns = usize::try_from(number).unwrap_or(usize::MAX);
                    let stated = self.get("max_turns").map_or(turns, |_| it.max_turns);
                    it.max_turns = turns.min(stated);
                }
            }
        }
        it.limits = limits;
    }
}
