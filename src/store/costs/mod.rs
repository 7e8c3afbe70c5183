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

/// What the tries of a call have taken, as far as it was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of each try, by the model that was asked.
    pub tries: Vec<(String, Tokens)>,
    /// Money, where whoever answered says so.
    pub cost: Option<Cost>,
}

impl Usage {
    fn tokens(&self) -> Tokens {
        self.tries.iter().map(|(_, tokens)| *tokens).fold(Tokens::default(), Tokens::plus)
    }
}

/// A call that is under way.
#[derive(Debug)]
pub struct OpenCall(Call);

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
        if let Some(refusal) = self.refusal(&call, &priced_by) {
            return Ok(Err(refusal));
        }
        self.append(CostLine::Started(call.clone()))?;
        Ok(Ok(OpenCall(call)))
    }

    /// Writes down that a call has ended, with what it has taken, and under the model that was asked
    /// last. A server that counts no tokens has not counted: nobody knows then what it has taken. What
    /// the answer says about its cost goes before prices.
    pub fn end(&self, open: &OpenCall, usage: &Usage) -> Result<Charge, StoreError> {
        let last = usage.tries.last().map(|(model, _)| model.clone());
        let call = Call { model: last.unwrap_or_else(|| open.0.model.clone()), ..open.0.clone() };
        let prices = &self.team.prices;
        let is_free = prices.of(&call.model, 0).is_some_and(|price| price.is_free());
        let tokens = usage.tokens();
        let has_answered = !usage.tries.is_empty();
        let is_counted = !tokens.is_nothing() || usage.cost.is_some() || (is_free && has_answered);
        let by_price = || {
            let parts = usage.tries.iter().filter(|(_, tokens)| !tokens.is_nothing());
            let costs = parts.map(|(model, tokens)| prices.cost(model, *tokens));
            costs
                .collect::<Option<Vec<Cost>>>()
                .map(|it| it.into_iter().fold(Cost::default(), Cost::plus))
        };
        let charge = if is_counted {
            Charge { tokens: Some(tokens), cost: usage.cost.or_else(by_price) }
        } else {
            call.unknown()
        };
        self.append(CostLine::Ended { call, charge })?;
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

    fn refusal(&self, call: &Call, priced_by: &PricedBy) -> Option<String> {
        if call.model == CLERK_MODEL {
            return None;
        }
        let prices = &self.team.prices;
        let models = match priced_by {
            PricedBy::Prices(models) => models.as_slice(),
            PricedBy::Answer => &[],
        };
        let unknown = models.iter().find(|model| prices.of(model, 0).is_none());
        let is_free = |model: &String| prices.of(model, 0).is_some_and(|price| price.is_free());
        // What costs nothing takes nothing from an amount of money.
        let is_free = !models.is_empty() && models.iter().all(is_free);
        let (now, spending) = (self.store.now(), self.spending.lock());
        let of_call = budgets_of(&self.team).into_iter().filter(|(whose, _)| whose.pays(call));
        of_call.into_iter().find_map(|(whose, budget)| {
            if let (Some(_), Some(model)) = (budget.max_cost, unknown) {
                return Some(no_price(&whose, model));
            }
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
