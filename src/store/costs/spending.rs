//! What was spent, by whom, in which window: a fold of the journal's lines and nothing else.

use std::collections::BTreeMap;

use super::line::{Call, CostLine, Ledger, Settled};
use crate::{
    base::Timestamp,
    model::{AgentName, Budget, Cost, Team, Tokens, TypeName, Window},
};

/// What many calls have taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// How many calls.
    pub calls: u64,
    /// Their tokens, as far as known.
    pub tokens: Tokens,
    /// Their cost, as far as known.
    pub cost: Cost,
    /// Calls whose tokens are known and whose model has no known price.
    pub unpriced: u64,
    /// Calls that were cut off or have failed: nobody knows what they have taken.
    pub unknown: u64,
}

impl Spent {
    /// Takes a call.
    pub fn add(&mut self, it: &Settled) {
        self.calls += 1;
        self.tokens = self.tokens.plus(it.charge.tokens.unwrap_or_default());
        self.cost = self.cost.plus(it.charge.cost.unwrap_or_default());
        self.unknown += u64::from(it.charge.tokens.is_none());
        self.unpriced += u64::from(it.charge.tokens.is_some() && it.charge.cost.is_none());
    }

    /// Whether all of its cost is known.
    pub fn is_known(&self) -> bool {
        self.unpriced == 0 && self.unknown == 0
    }

    /// Whether it is known to have cost nothing.
    pub fn is_free(&self) -> bool {
        self.is_known() && self.cost.is_nothing()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            tokens: self.tokens.plus(other.tokens),
            cost: self.cost.plus(other.cost),
            unpriced: self.unpriced + other.unpriced,
            unknown: self.unknown + other.unknown,
        }
    }
}

/// Whose a budget is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// All of the team.
    Team,
    /// A teammate, with its subagents.
    Teammate(AgentName),
    /// All that bear a type.
    Type(TypeName),
}

impl Whose {
    /// Whether a call is paid from it.
    pub fn pays(&self, call: &Call) -> bool {
        match self {
            Self::Team => true,
            Self::Teammate(name) => *name == call.teammate,
            Self::Type(name) => *name == call.agent_type,
        }
    }
}

impl std::fmt::Display for Whose {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Team => out.write_str("the team"),
            Self::Teammate(name) => write!(out, "{name}"),
            Self::Type(name) => write!(out, "the type {name}"),
        }
    }
}

/// What was spent, by day: as much memory as there are names and days.
#[derive(Debug, Clone, Default)]
pub struct Spending {
    ledger: Ledger,
    days: BTreeMap<Whose, BTreeMap<i64, Spent>>,
}

impl Spending {
    /// Takes the next line of the journal; gives the calls of which is now known how they ended.
    pub fn take(&mut self, at: Option<Timestamp>, line: CostLine) -> Vec<Settled> {
        let settled = self.ledger.take(at, line);
        for it in &settled {
            // What does not say when it was counts in every window.
            let day = it.at.map_or(i64::MAX, |at| at.start_of_day().0);
            let (name, kind) = (it.call.teammate.clone(), it.call.agent_type.clone());
            for whose in [Whose::Team, Whose::Teammate(name), Whose::Type(kind)] {
                self.days.entry(whose).or_default().entry(day).or_default().add(it);
            }
        }
        settled
    }

    /// The calls that are open.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What was spent since a window's start.
    pub fn in_window(&self, whose: &Whose, window: Window) -> Spent {
        let from = window.from.map_or(i64::MIN, |from| from.0);
        let days = self.days.get(whose).into_iter().flat_map(|days| days.range(from..));
        days.map(|(_, spent)| *spent).fold(Spent::default(), Spent::plus)
    }

    /// What is used up of a budget, and how, where it is.
    pub fn used_up(&self, whose: &Whose, budget: &Budget, now: Timestamp) -> Option<UsedUp> {
        let window = budget.per.window(now);
        let spent = self.in_window(whose, window);
        let per = budget.per.as_str();
        let (limit, spent) = match (budget.max_cost, budget.max_tokens) {
            (Some(most), _) if spent.cost >= most => {
                (format!("max_cost_usd {} {per}", most.exact()), spent.cost.to_string())
            }
            (_, Some(most)) if spent.tokens.total() >= most => {
                (format!("max_tokens {most} {per}"), format!("{} tokens", spent.tokens.total()))
            }
            _ => return None,
        };
        Some(UsedUp { whose: whose.clone(), limit, spent, until: window.until })
    }
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// Whose.
    pub whose: Whose,
    /// Its limit, as the team file states it.
    pub limit: String,
    /// What was spent.
    pub spent: String,
    /// When its next window begins; never where it is for ever.
    pub until: Option<Timestamp>,
}

impl std::fmt::Display for UsedUp {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { whose, limit, spent, until } = self;
        write!(out, "the budget of {whose} is used up ({limit}; spent {spent})")?;
        match until {
            Some(until) => write!(out, " until {until}"),
            None => write!(out, " and never begins anew"),
        }
    }
}

/// All budgets of a team that have a limit.
pub fn budgets_of(team: &Team) -> Vec<(Whose, Budget)> {
    let teammates = team.teammates.iter();
    let teammates = teammates.map(|(name, it)| (Whose::Teammate(name.clone()), it.budget));
    let types = team.types.values().map(|it| (Whose::Type(it.name.clone()), it.budget));
    let all = [(Whose::Team, team.budget)].into_iter().chain(teammates).chain(types);
    all.filter(|(_, budget)| !budget.is_unlimited()).collect()
}
