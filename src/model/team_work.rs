//! What a team begins with: tasks for its board, and messages.

use jsonc_parser::ast::{Object, Value};

use super::{AgentName, Errand, Team, TeamTask, TypeName, jsonc::Reader};
use crate::base::text::listed;

/// The keys of a task.
pub const TASK_KEYS: &[&str] = &["title", "description", "assignee", "agent_type", "depends_on"];

impl<'a> Reader<'a> {
    /// `start` is a list of `{to, content}`.
    pub fn errands(&mut self, root: &Object<'a>, team: &Team) -> Vec<Errand> {
        let mut errands = Vec::new();
        for (fields, place) in self.objects(root, "start") {
            self.check_keys(fields, "an entry of \"start\"", &["to", "content"], &[]);
            let to = self.member(fields, "to", team).unwrap_or_else(|| team.lead.clone());
            match self.string(fields, "content") {
                Some(content) => errands.push(Errand { to, content: content.value }),
                None => self.fault_at(place, "an entry of \"start\" needs \"content\"".to_owned()),
            }
        }
        errands
    }

    /// `tasks` is a list of `{title, description, assignee, depends_on}`; a dependency is named by its
    /// title, or by its number in the list counted from 1.
    pub fn tasks(&mut self, root: &Object<'a>, team: &Team) -> Vec<TeamTask> {
        let keys = TASK_KEYS;
        let mut tasks: Vec<TeamTask> = Vec::new();
        for (fields, place) in self.objects(root, "tasks") {
            self.check_keys(fields, "an entry of \"tasks\"", keys, &[]);
            let depends_on = self.dependencies(fields, &tasks);
            let description = self.string(fields, "description").map(|it| it.value);
            let assignee = self.assignee(fields, team);
            let agent_type = self.task_type(fields, team);
            let title = self.string(fields, "title").map(|it| it.value);
            if title.is_none() {
                self.fault_at(place, "an entry of \"tasks\" needs \"title\"".to_owned());
            }
            tasks.push(TeamTask {
                title: title.unwrap_or_default(),
                description: description.unwrap_or_default(),
                assignee,
                agent_type,
                depends_on,
            });
        }
        tasks
    }

    /// Who a task is for: a teammate, or whoever is of a type.
    fn assignee(&mut self, fields: &Object<'a>, team: &Team) -> Option<AgentName> {
        let given = fields.get("assignee").and_then(|it| it.value.as_string_lit());
        let name = given.and_then(|it| AgentName::new(it.value.to_string()).ok());
        let of_type = name.filter(|name| {
            !team.teammates.contains_key(name)
                && TypeName::new(name.as_str()).is_ok_and(|it| team.types.contains_key(&it))
        });
        of_type.or_else(|| self.member(fields, "assignee", team))
    }

    fn task_type(&mut self, fields: &Object<'a>, team: &Team) -> Option<TypeName> {
        let given = self.string(fields, "agent_type")?;
        let place = given.place;
        let found = team.spawnable(&given.value).map(|it| it.name.clone());
        self.kept(place, found.map_err(|why| why.to_string()))
    }

    fn dependencies(&mut self, fields: &Object<'a>, before: &[TeamTask]) -> Vec<usize> {
        let Some(Value::Array(list)) = self.wanted(fields, "depends_on", "a list") else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for element in &list.elements {
            let text = match element {
                Value::StringLit(text) => text.value.to_string(),
                Value::NumberLit(number) => number.value.to_owned(),
                _ => String::new(),
            };
            let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let by_title = before.iter().position(|task| task.title == text);
            match by_title.or(number).filter(|place| *place < before.len()) {
                Some(place) => found.push(place),
                None => {
                    let why =
                        format!("no task before this one is called {text:?}, or has that number");
                    self.fault(element, &why);
                }
            }
        }
        found
    }

    fn member(&mut self, fields: &Object<'a>, key: &str, team: &Team) -> Option<AgentName> {
        let given = self.string(fields, key)?;
        let name = AgentName::new(given.value.clone()).ok().map(|name| team.resolve(name));
        let known = name.filter(|name| team.teammates.contains_key(name));
        if known.is_none() {
            let names = listed(team.teammates.keys());
            let why =
                format!("{key:?} is {:?}, who is no teammate; there are {names}", given.value);
            self.fault_at(given.place, why);
        }
        known
    }
}
