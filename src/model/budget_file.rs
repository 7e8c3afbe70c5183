//! Reads budgets and prices as team files and definitions of types state them: values in, faults with
//! the way to them out.

use std::collections::BTreeMap;

use jsonc_parser::ast::Object;
use serde_json::{Map, Value};

use super::{Budget, Cost, Per, Price, Prices, jsonc::Reader, price::micro_dollars};
use crate::base::text::{headline, listed};

/// The keys of a budget.
pub const BUDGET_KEYS: &[&str] = &["max_cost_usd", "max_tokens", "per"];
/// The keys of a price.
pub const PRICE_KEYS: &[&str] = &["input", "output", "cache_write", "cache_read"];

/// What is wrong: the way to it through the fields, and why.
pub type Faults = Vec<(Vec<String>, String)>;

/// Reads the value of a `budget`.
pub fn read_budget(value: &Value) -> (Budget, Faults) {
    let mut faults = Faults::new();
    let mut budget = Budget::default();
    if value.is_null() {
        return (budget, faults);
    }
    let Some(fields) = object_of(value, "\"budget\"", &mut faults) else { return (budget, faults) };
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let why = match key.as_str() {
            "max_cost_usd" => {
                budget.max_cost = dollars(value).map(Cost::of_micro);
                budget.max_cost.is_none().then(|| amount_wanted(key))
            }
            "max_tokens" => {
                budget.max_tokens = value.as_u64();
                let why = "\"max_tokens\" has to be a whole number from 0, or null";
                budget.max_tokens.is_none().then(|| why.to_owned())
            }
            "per" => {
                let found = Per::WORDS.iter().find(|(word, _)| value.as_str() == Some(word));
                budget.per = found.map(|(_, per)| *per).unwrap_or_default();
                let valid = listed(Per::WORDS.iter().map(|(word, _)| *word));
                found.is_none().then(|| format!("\"per\" has to be one of {valid}"))
            }
            _ => Some(unknown("a budget", key, BUDGET_KEYS)),
        };
        faults.extend(why.map(|why| (vec![key.clone()], why)));
    }
    (budget, faults)
}

/// Reads the value of `prices`.
pub fn read_prices(value: &Value) -> (Prices, Faults) {
    let mut faults = Faults::new();
    let mut prices = BTreeMap::new();
    if value.is_null() {
        return (Prices::default(), faults);
    }
    for (model, value) in object_of(value, "\"prices\"", &mut faults).into_iter().flatten() {
        let mut wrong = Faults::new();
        if let Some(price) = read_price(value, &mut wrong) {
            prices.insert(model.clone(), price);
        }
        let at_model = |(way, why): (Vec<String>, String)| {
            ([model.clone()].into_iter().chain(way).collect(), why)
        };
        faults.extend(wrong.into_iter().map(at_model));
    }
    (Prices::stated(prices), faults)
}

fn read_price(value: &Value, faults: &mut Faults) -> Option<Price> {
    let fields = object_of(value, "a price", faults)?;
    let stated: BTreeMap<&str, Option<u64>> =
        fields.iter().map(|(key, value)| (key.as_str(), dollars(value))).collect();
    for (key, amount) in &stated {
        let why = if PRICE_KEYS.contains(key) {
            amount.is_none().then(|| amount_wanted(key))
        } else {
            Some(unknown("a price", key, PRICE_KEYS))
        };
        faults.extend(why.map(|why| (vec![(*key).to_owned()], why)));
    }
    for key in ["input", "output"].into_iter().filter(|key| !stated.contains_key(key)) {
        faults
            .push((Vec::new(), format!("a price needs {key:?}, in dollars for a million tokens")));
    }
    let amount = |key: &str| stated.get(key).copied().flatten();
    let (input, output) = (amount("input")?, amount("output")?);
    let cached = |key| if stated.contains_key(key) { amount(key) } else { Some(input) };
    let (cache_write, cache_read) = (cached("cache_write")?, cached("cache_read")?);
    faults.is_empty().then_some(Price { input, output, cache_write, cache_read })
}

fn object_of<'v>(
    value: &'v Value,
    what: &str,
    faults: &mut Faults,
) -> Option<&'v Map<String, Value>> {
    let found = value.as_object();
    if found.is_none() {
        faults.push((Vec::new(), format!("{what} has to be an object")));
    }
    found
}

fn dollars(value: &Value) -> Option<u64> {
    value.as_number().and_then(|number| micro_dollars(&number.to_string()))
}

fn amount_wanted(key: &str) -> String {
    let key = headline(key, 80);
    format!("{key:?} has to be an amount of dollars with at most 6 decimals, such as 2.5")
}

fn unknown(whose: &str, key: &str, valid: &[&str]) -> String {
    format!("{whose} has no {key:?}; valid are {}", listed(valid))
}

impl<'a> Reader<'a> {
    /// The budget that an object states.
    pub fn budget(&mut self, fields: &Object<'a>) -> Budget {
        self.read_by(fields, "budget", read_budget)
    }

    /// The prices that a team file states.
    pub fn prices(&mut self, root: &Object<'a>) -> Prices {
        self.read_by(root, "prices", read_prices)
    }

    fn read_by<T: Default>(
        &mut self,
        fields: &Object<'a>,
        key: &str,
        read: fn(&Value) -> (T, Faults),
    ) -> T {
        let Some(property) = fields.get(key) else { return T::default() };
        if let Some(below) = property.value.as_object() {
            self.check_twice(below);
        }
        let (value, faults) = read(&property.value.clone().into());
        for (way, why) in faults {
            let place = self.place_of(property, property.value.as_object(), &way);
            self.fault_at(place, why);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::model::{Cost, Per, Tokens, TypeName, read_team};

    #[test]
    fn budgets_and_prices_are_read_wherever_they_may_stand() {
        let team = read_team(
            r#"{"budget": {"max_cost_usd": 5, "max_tokens": null},
                "prices": {"m": {"input": 3.0, "output": 15, "cache_write": 3.75, "cache_read": 0.3}, "n": {"input": 1, "output": 2}},
                "agents": {"x": {"budget": {"max_tokens": 7, "per": "life"}}},
                "teammates": {"a": {"budget": {"max_cost_usd": 0.25, "per": "month"}}, "b": {"budget": null}}}"#,
            "t",
            &|_| Ok(Vec::new()),
        )
        .unwrap();
        assert_eq!(team.budget.max_cost, Some(Cost::of_micro(5_000_000)));
        assert_eq!((team.budget.max_tokens, team.budget.per), (None, Per::Day));
        let of = |name: &str| {
            team.teammates.iter().find(|(it, _)| it.as_str() == name).unwrap().1.budget
        };
        assert_eq!((of("a").max_cost, of("a").per), (Some(Cost::of_micro(250_000)), Per::Month));
        assert!(of("b").is_unlimited());
        let it = team.types[&TypeName::named("x")].budget;
        assert_eq!((it.max_tokens, it.per), (Some(7), Per::Life));
        let tokens = Tokens { input: 1, output: 1, cache_read: 1, cache_write: 1 };
        assert_eq!(team.prices.cost("m", tokens).unwrap().exact(), "0.00002205");
        assert_eq!(team.prices.cost("n", tokens).unwrap().exact(), "0.000005");
        assert_eq!(team.prices.cost("o", tokens), None);
    }

    #[test]
    fn their_faults_come_with_their_places() {
        let faults = read_team(
            r#"{"budget": {"max_cost_usd": -1, "max_tokens": 1.5, "per": "week", "max": 1, "per": "day"},
"prices": {"m": {"input": "3", "output": 15}, "n": {"input": 1}, "o": 7,
  "p": {"input": 1e-9, "output": 1, "cached": 2}},
"agents": {"x": {"budget": {"max_tokens": "7"}}, "y": {"budget": 5}},
"teammates": {"a": {"budget": []}, "b": {"budget": {"max_cost_usd": 0.0000001}}}}"#,
            "t",
            &|_| Ok(Vec::new()),
        )
        .unwrap_err();
        let told = faults.iter().fold(String::new(), |told, fault| format!("{told}{fault}\n"));
        expect![[r#"
            1:13: "max_cost_usd" has to be an amount of dollars with at most 6 decimals, such as 2.5
            1:33: "max_tokens" has to be a whole number from 0, or null
            1:67: a budget has no "max"; valid are max_cost_usd, max_tokens and per
            1:77: "per" is there twice
            2:18: "input" has to be an amount of dollars with at most 6 decimals, such as 2.5
            2:47: a price needs "output", in dollars for a million tokens
            2:66: a price has to be an object
            3:9: "input" has to be an amount of dollars with at most 6 decimals, such as 2.5
            3:37: a price has no "cached"; valid are input, output, cache_write and cache_read
            4:29: "max_tokens" has to be a whole number from 0, or null
            4:56: "budget" has to be an object
            5:21: "budget" has to be an object
            5:53: "max_cost_usd" has to be an amount of dollars with at most 6 decimals, such as 2.5
        "#]]
        .assert_eq(&told);
    }
}
