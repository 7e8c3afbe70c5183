//! What the calls of models have cost, and whether the next one may be made.
//!
//! A call is written down before it is made and when it has ended, each in a line that says all about
//! it. What is decided is decided by these lines, never by a trace.
//!
//! Budgets are hard: a call is refused once what is known to be spent has reached one. Calls that are
//! under way at that time may go past it, by one call for each run that is under way. A call that was
//! cut off counts for nothing in a budget, since nobody knows what it has taken; it is shown.

mod line;
mod spending;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;

pub use line::{Call, Charge, CostLine, Ledger, PricedBy, Settled};
pub use spending::{Spending, Spent, UsedUp, Whose, budgets_of};

use super::{Store, StoreError, layout};
use crate::{
    base::{Timestamp, text::headline},
    journal::Journal,
    model::{Budget, CLERK_MODEL, Cost, Team, Tokens},
};

/// The costs of a team, for the holder of the daemon's lock.
#[derive(Clone)]
pub struct Costs {
    store: Store,
    journal: Arc<dyn Journal>,
    team: Arc<Team>,
    spending: Arc<Mutex<Spending>>,
}

/// What an answer says that it has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read and written.
    pub tokens: Tokens,
    /// Money, where it says so.
    pub cost: Option<Cost>,
}

/// A call that is under way.
#[derive(Debug)]
pub struct OpenCall(Call);

impl OpenCall {
    /// The same, answered by another model than the one that was asked first, where it was.
    #[must_use]
    pub fn by(self, model: Option<String>) -> Self {
        Self(Call { model: model.unwrap_or(self.0.model), ..self.0 })
    }
}

impl Costs {
    /// Reads what was spent. Calls that were open were cut off by the death of their daemon.
    pub fn open(store: &Store, team: Arc<Team>) -> Result<Self, StoreError> {
        let journal = store.journals.open(&layout::costs())?;
        journal.close_tail()?;
        let mut spending = Spending::default();
        read(&*journal, |at, line| drop(spending.take(at, line)))?;
        let has_open = spending.ledger().has_open();
        let spending = Arc::new(Mutex::new(spending));
        let costs = Self { store: store.clone(), journal, team, spending };
        if has_open {
            costs.append(CostLine::Opened)?;
        }
        Ok(costs)
    }

    /// Writes down that a call is going to be made, unless a budget forbids it; then it gives why,
    /// and what to change.
    pub fn begin(
        &self,
        call: Call,
        priced_by: PricedBy,
    ) -> Result<Result<OpenCall, String>, StoreError> {
        if let Some(refusal) = self.refusal(&call, priced_by) {
            return Ok(Err(refusal));
        }
        self.append(CostLine::Started(call.clone()))?;
        Ok(Ok(OpenCall(call)))
    }

    /// Writes down that a call has ended: with what it has taken, or none where nobody knows that. A
    /// server that counts no tokens has not counted. What the answer says about its cost goes before
    /// prices.
    pub fn end(&self, open: &OpenCall, usage: Option<Usage>) -> Result<Charge, StoreError> {
        let call = &open.0;
        let is_free = self.team.prices.of(&call.model, 0).is_some_and(|price| price.is_free());
        let has_counted = |it: &Usage| is_free || it.cost.is_some() || !it.tokens.is_nothing();
        let charge = usage.filter(has_counted).map_or_else(
            || call.unknown(),
            |Usage { tokens, cost }| Charge {
                tokens: Some(tokens),
                cost: cost.or_else(|| self.team.prices.cost(&call.model, tokens)),
            },
        );
        self.append(CostLine::Ended { call: call.clone(), charge })?;
        Ok(charge)
    }

    /// The budgets that are used up now.
    pub fn used_up(&self) -> Vec<UsedUp> {
        let (now, spending) = (self.store.now(), self.spending.lock());
        let budgets = budgets_of(&self.team).into_iter();
        budgets.filter_map(|(whose, budget)| spending.used_up(&whose, &budget, now)).collect()
    }

    /// A line that may be in the journal though its append has failed counts all the same: a budget
    /// may be thought fuller than it is, never emptier.
    fn append(&self, line: CostLine) -> Result<(), StoreError> {
        let at = self.store.now();
        let appended = self.journal.append(&line.to_text(at)).map_err(StoreError::from);
        if appended.as_ref().err().is_none_or(|why| !why.is_passing()) {
            self.spending.lock().take(Some(at), line);
        }
        appended.map(drop)
    }

    fn refusal(&self, call: &Call, priced_by: PricedBy) -> Option<String> {
        if call.model == CLERK_MODEL {
            return None;
        }
        let price = self.team.prices.of(&call.model, 0);
        let (now, spending) = (self.store.now(), self.spending.lock());
        let of_teammate = self.team.teammates.get(&call.teammate).map(|it| it.budget);
        let of_type = self.team.types.get(&call.agent_type).map(|it| it.budget);
        let budgets = [
            (Whose::Team, Some(self.team.budget)),
            (Whose::Teammate(call.teammate.clone()), of_teammate),
            (Whose::Type(call.agent_type.clone()), of_type),
        ];
        budgets.into_iter().find_map(|(whose, budget)| {
            let budget = budget?;
            let is_unknown = price.is_none() && priced_by == PricedBy::Prices;
            if budget.max_cost.is_some() && is_unknown {
                return Some(no_price(&whose, &call.model));
            }
            // What costs nothing takes nothing from an amount of money.
            let is_free =
                priced_by == PricedBy::Prices && price.is_some_and(|price| price.is_free());
            let max_cost = budget.max_cost.filter(|_| !is_free);
            let budget = Budget { max_cost, ..budget };
            spending.used_up(&whose, &budget, now).map(|it| refused(&it))
        })
    }
}

fn refused(it: &UsedUp) -> String {
    let key = match &it.whose {
        Whose::Team => "`budget` in the team file".to_owned(),
        Whose::Teammate(name) => format!("`budget` of {name} in the team file"),
        Whose::Type(name) => format!("`budget` of the type {name}"),
    };
    let wait = if it.until.is_some() { "wait until then, or raise" } else { "raise" };
    format!(
        "no further model call: {it}; {wait} {key}, then `postroom down` and `postroom up`; \
         `postroom cost` shows what was spent on what"
    )
}

fn no_price(whose: &Whose, model: &str) -> String {
    let model = headline(model, 80);
    format!(
        "no model call: the budget of {whose} has max_cost_usd, and the price of the model {model} \
         is not known; add it to the team file, in dollars for a million tokens, such as \"prices\": \
         {{{model:?}: {{\"input\": 3.0, \"output\": 15.0}}}}, then `postroom down` and `postroom up`"
    )
}

/// Reads all lines of costs in order; for whoever only looks. What is no line of ours, such as what a
/// kill has left of one, is passed over.
pub fn read_costs(
    store: &Store,
    take: impl FnMut(Option<Timestamp>, CostLine),
) -> Result<(), StoreError> {
    read(&*store.journals.open(&layout::costs())?, take)
}

fn read(
    journal: &dyn Journal,
    mut take: impl FnMut(Option<Timestamp>, CostLine),
) -> Result<(), StoreError> {
    let mut place = journal.start()?;
    loop {
        let batch = journal.read(place, 1024)?;
        if batch.lines.is_empty() {
            return Ok(());
        }
        place = batch.next;
        let bodies = batch.lines.into_iter().filter_map(|line| line.body.ok());
        for (at, line) in bodies.filter_map(|body| CostLine::read(&body)) {
            take(at, line);
        }
    }
}
