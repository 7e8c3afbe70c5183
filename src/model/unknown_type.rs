//! The type that a name means, or why it means none: one text for all who ask.

use std::collections::BTreeMap;

use super::{AgentType, Report, Team, TypeName};
use crate::base::text::{headline, listed, nearest};

/// Why a name means no type that may be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownType {
    /// There is none; a definition that could not be used may be why.
    #[error("no type is called {shown:?}{hint}; valid types are {valid}{about}")]
    NoType {
        /// What was given.
        shown: String,
        /// Which was likely meant.
        hint: String,
        /// Which there are.
        valid: String,
        /// What was reported of it.
        about: String,
    },
    /// There is one, for teammates alone.
    #[error(
        "{name} is a primary type: a teammate may be one and a subagent may not; valid types are \
         {valid}"
    )]
    Primary {
        /// Which.
        name: TypeName,
        /// Which there are for subagents.
        valid: String,
    },
}

/// The one of `types` that `given` means, where it `may_be` had.
pub fn find_type<'t>(
    types: &'t BTreeMap<TypeName, AgentType>,
    reports: &[Report],
    given: &str,
    may_be: fn(&AgentType) -> bool,
) -> Result<&'t AgentType, UnknownType> {
    let name = TypeName::new(given.trim()).ok();
    let valid = || listed(types.values().filter(|it| may_be(it)).map(|it| &it.name));
    match name.as_ref().and_then(|name| types.get(name)) {
        Some(it) if may_be(it) => Ok(it),
        Some(it) => Err(UnknownType::Primary { name: it.name.clone(), valid: valid() }),
        None => {
            let likely = nearest(given, types.keys().map(TypeName::as_str));
            let about = reports.iter().find(|it| name.is_some() && it.of == name);
            Err(UnknownType::NoType {
                shown: headline(given, 80),
                hint: likely.map(|it| format!("; did you mean {it}?")).unwrap_or_default(),
                valid: valid(),
                about: about.map(|it| format!(" ({it})")).unwrap_or_default(),
            })
        }
    }
}

impl Team {
    /// The type called `given`, as which a subagent may work or a task may be done.
    pub fn spawnable(&self, given: &str) -> Result<&AgentType, UnknownType> {
        find_type(&self.types, &self.reports, given, AgentType::may_be_spawned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, TypeMode, built_in_types};

    #[test]
    fn a_name_means_a_type_or_is_told_with_the_report_about_it() {
        let boss = TypeName::named("boss");
        let primary =
            AgentType { mode: TypeMode::Primary, ..AgentType::new(boss.clone(), Origin::BuiltIn) };
        let all = built_in_types().into_iter().chain([primary]);
        let types: BTreeMap<_, _> = all.map(|it| (it.name.clone(), it)).collect();
        let reports = [Report {
            file: Some("teams/agents/critic.md".to_owned()),
            of: Some(TypeName::named("critic")),
            text: "not used: it is not UTF-8".to_owned(),
        }];
        let why = |given, may_be| find_type(&types, &reports, given, may_be).unwrap_err();
        let spawned = AgentType::may_be_spawned as fn(&AgentType) -> bool;
        let valid = "analyst, code-review, explore, general, general-purpose and plan";
        let rows = [
            ("critic", " (teams/agents/critic.md: not used: it is not UTF-8)"),
            ("crit", ""),
            ("agents", ""),
            ("", ""),
        ];
        for (given, about) in rows {
            let wanted = format!("no type is called {given:?}; valid types are {valid}{about}");
            assert_eq!(why(given, spawned).to_string(), wanted);
        }
        let told = why("boss", spawned).to_string();
        assert!(told.starts_with("boss is a primary type") && told.ends_with(valid), "{told}");
        assert_eq!(find_type(&types, &reports, " boss ", |_| true).unwrap().name, boss);
        assert!(
            why("bosss", |_| true)
                .to_string()
                .contains("did you mean boss?; valid types are analyst, boss")
        );
    }
}
