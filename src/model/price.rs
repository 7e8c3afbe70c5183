//! Prices and costs, in whole numbers: no sum of money is ever rounded but where it is shown.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::Tokens;

/// The model of the clerk, which costs nothing and takes no tokens.
pub const CLERK_MODEL: &str = "clerk";
/// When the built-in table of prices was put together.
pub const PRICES_OF: &str = "2026-10-24";

/// A dollar in the unit of prices.
const MICRO: u64 = 1_000_000;
/// A dollar in the unit of costs: the price of a token whose million costs a micro-dollar is 1.
const PICO: u128 = 1_000_000_000_000;

/// What a model costs, in micro-dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Of tokens that it reads anew.
    pub input: u64,
    /// Of tokens that it writes.
    pub output: u64,
    /// Of tokens that it reads and puts into its cache.
    pub cache_write: u64,
    /// Of tokens that it reads from its cache.
    pub cache_read: u64,
}

impl Price {
    /// Nothing.
    pub const FREE: Self = Self { input: 0, output: 0, cache_write: 0, cache_read: 0 };

    /// Whether no token costs anything.
    pub fn is_free(&self) -> bool {
        *self == Self::FREE
    }

    /// What these tokens cost.
    pub fn of(&self, tokens: Tokens) -> Cost {
        let parts = [
            (self.input, tokens.input),
            (self.output, tokens.output),
            (self.cache_write, tokens.cache_write),
            (self.cache_read, tokens.cache_read),
        ];
        let costs = parts.map(|(price, count)| Cost(u128::from(price) * u128::from(count)));
        costs.into_iter().fold(Cost::default(), Cost::plus)
    }
}

/// An amount of money, exact: in millionths of a micro-dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cost(u128);

impl Cost {
    /// So many micro-dollars.
    pub fn of_micro(micro: u64) -> Self {
        Self(u128::from(micro) * u128::from(MICRO))
    }

    /// An amount of dollars as programs print it, rounded to what a cost can say; none where it is no
    /// amount.
    pub fn of_dollars(dollars: f64) -> Option<Self> {
        Self::try_from(format!("{dollars:.12}")).ok()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Whether it is nothing.
    pub fn is_nothing(&self) -> bool {
        self.0 == 0
    }

    /// As text in dollars, with all its digits.
    pub fn exact(&self) -> String {
        let text = format!("{}.{:012}", self.0 / PICO, self.0 % PICO);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

impl fmt::Display for Cost {
    /// `$0.0123`, rounded; what is not nothing is not shown as nothing.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = PICO / 10_000;
        let shown = match (self.0.saturating_add(unit / 2)) / unit {
            0 if !self.is_nothing() => return out.pad("<$0.0001"),
            shown => shown,
        };
        out.pad(&format!("${}.{:04}", shown / 10_000, shown % 10_000))
    }
}

impl From<Cost> for String {
    fn from(cost: Cost) -> Self {
        cost.exact()
    }
}

impl TryFrom<String> for Cost {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        decimal(&text, 12).map(Self).ok_or_else(|| format!("{text:?} is no amount of dollars"))
    }
}

/// Reads an amount of dollars as people write it, such as `0.075`, exactly: the unit is a
/// micro-dollar.
pub fn micro_dollars(text: &str) -> Option<u64> {
    decimal(text, 6).and_then(|micro| u64::try_from(micro).ok())
}

/// A decimal number in units of its last of `places` places.
fn decimal(text: &str, places: usize) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let part = part.trim_end_matches('0');
    if whole.is_empty() || !is_plain(whole) || !is_plain(part) || part.len() > places {
        return None;
    }
    u128::from_str(&format!("{whole}{part:0<places$}")).ok()
}

/// Prices by the names of models: those of the team file, then the built-in table.
///
/// A name in it also holds for the same model with a date or `latest` behind it:
/// `claude-sonnet-4-5` for `claude-sonnet-4-5-20250929`, and never for another model whose name
/// begins so. Of several that fit the longest counts. What is not in it has no known price.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// The prices that a team states.
    pub fn stated(prices: BTreeMap<String, Price>) -> Self {
        Self(prices)
    }

    /// The price of `model`, where it is known, for a call in which it has read so many tokens:
    /// some models cost more for long prompts.
    pub fn of(&self, model: &str, read: u64) -> Option<Price> {
        if model == CLERK_MODEL {
            return Some(Price::FREE);
        }
        let fits =
            |(name, price): (&String, &Price)| is_of(name, model).then_some((name.len(), *price));
        let stated = self.0.iter().filter_map(fits).max_by_key(|(length, _)| *length);
        stated.map(|(_, price)| price).or_else(|| built_in(model, read))
    }

    /// What a call of `model` has cost, where that is known.
    pub fn cost(&self, model: &str, tokens: Tokens) -> Option<Cost> {
        Some(self.of(model, tokens.read())?.of(tokens))
    }
}

/// Whether `model` is the model called `name`, maybe of some date.
fn is_of(name: &str, model: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let Some(version) = rest.strip_prefix(['-', '@', ':']) else { return rest.is_empty() };
    let digits = version.bytes().filter(u8::is_ascii_digit).count();
    let is_date = digits >= 4 && version.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    version == "latest" || is_date
}

fn built_in(model: &str, read: u64) -> Option<Price> {
    let fits = |row: &&Row| is_of(row.name, model) && (row.above == 0 || read > row.above);
    let found = TABLE.iter().filter(fits).max_by_key(|row| (row.name.len(), row.above))?;
    Some(found.price)
}

/// A row of the built-in table: a price for calls that read more than so many tokens.
struct Row {
    name: &'static str,
    above: u64,
    price: Price,
}

/// Input, output, what is put into the cache for five minutes, and what is read from it, each in
/// thousandths of a dollar for a million tokens.
const fn row(name: &'static str, above: u64, prices: [u64; 4]) -> Row {
    let [input, output, cache_write, cache_read] = prices;
    let price = Price {
        input: input * 1000,
        output: output * 1000,
        cache_write: cache_write * 1000,
        cache_read: cache_read * 1000,
    };
    Row { name, above, price }
}

/// List prices of well-known models as they were on [`PRICES_OF`]. They are a default and may have
/// changed since: `prices` in the team file override them. What is not listed is not known.
const TABLE: &[Row] = &[
    row("claude-fable-5-1", 0, [10_000, 50_000, 12_500, 250]),
    row("claude-fable-5", 0, [10_000, 50_000, 12_500, 1_000]),
    row("claude-opus-5-5", 0, [4_000, 20_000, 5_000, 200]),
    row("claude-opus-5", 0, [5_000, 25_000, 6_250, 500]),
    row("claude-opus-4-8", 0, [5_000, 25_000, 6_250, 500]),
    row("claude-opus-4-7", 0, [5_000, 25_000, 6_250, 500]),
    row("claude-opus-4-6", 0, [5_000, 25_000, 6_250, 500]),
    row("claude-opus-4-5", 0, [5_000, 25_000, 6_250, 500]),
    row("claude-opus-4-1", 0, [15_000, 75_000, 18_750, 1_500]),
    row("claude-opus-4-0", 0, [15_000, 75_000, 18_750, 1_500]),
    row("claude-opus-4", 0, [15_000, 75_000, 18_750, 1_500]),
    row("claude-sonnet-5-5", 0, [2_000, 10_000, 2_500, 100]),
    row("claude-sonnet-5", 0, [2_000, 10_000, 2_500, 200]),
    row("claude-sonnet-4-6", 0, [3_000, 15_000, 3_750, 300]),
    row("claude-sonnet-4-5", 0, [3_000, 15_000, 3_750, 300]),
    row("claude-sonnet-4-0", 0, [3_000, 15_000, 3_750, 300]),
    row("claude-sonnet-4", 0, [3_000, 15_000, 3_750, 300]),
    row("claude-3-7-sonnet", 0, [3_000, 15_000, 3_750, 300]),
    row("claude-haiku-5-5", 0, [100, 500, 125, 10]),
    row("claude-haiku-5-5", 100_000, [500, 2_500, 625, 50]),
    row("claude-haiku-4-5", 0, [1_000, 5_000, 1_250, 100]),
    row("claude-3-5-haiku", 0, [800, 4_000, 1_000, 80]),
    row("gpt-5.5", 0, [5_000, 30_000, 5_000, 500]),
    row("gpt-5.5", 272_000, [10_000, 45_000, 10_000, 1_000]),
    row("gpt-5.4", 0, [2_500, 15_000, 2_500, 250]),
    row("gpt-5.4", 272_000, [5_000, 22_500, 5_000, 500]),
    row("gpt-5.4-mini", 0, [750, 4_500, 750, 75]),
    row("gpt-5.4-nano", 0, [200, 1_250, 200, 20]),
    row("gpt-5.2", 0, [1_750, 14_000, 1_750, 175]),
    row("gpt-5.1", 0, [1_250, 10_000, 1_250, 125]),
    row("gpt-5", 0, [1_250, 10_000, 1_250, 125]),
    row("gpt-5-mini", 0, [250, 2_000, 250, 25]),
    row("gpt-5-nano", 0, [50, 400, 50, 5]),
    row("gpt-4.1", 0, [2_000, 8_000, 2_000, 500]),
    row("gpt-4.1-mini", 0, [400, 1_600, 400, 100]),
    row("gpt-4.1-nano", 0, [100, 400, 100, 25]),
    row("gpt-4o", 0, [2_500, 10_000, 2_500, 1_250]),
    row("gpt-4o-mini", 0, [150, 600, 150, 75]),
    row("o3", 0, [2_000, 8_000, 2_000, 500]),
    row("o4-mini", 0, [1_100, 4_400, 1_100, 275]),
];

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn models_are_known_by_name_and_date_and_no_other_is_taken_for_them() {
        let own = Price { input: 1, output: 2, cache_write: 3, cache_read: 4 };
        let stated = [("gpt-5-mini", own), ("my/model:7b", own)];
        let stated = stated.into_iter().map(|(name, price)| (name.to_owned(), price));
        let prices = Prices::stated(stated.collect());
        let mut table = String::new();
        for (model, read) in [
            ("clerk", 0),
            ("claude-sonnet-4-5", 0),
            ("claude-sonnet-4-5-20250929", 0),
            ("claude-sonnet-4-20250514", 0),
            ("claude-sonnet-4-9", 0),
            ("claude-sonnet-5-latest", 0),
            ("claude-haiku-5-5", 100_000),
            ("claude-haiku-5-5", 100_001),
            ("gpt-4o-2024-08-06", 0),
            ("gpt-4o-mini", 0),
            ("gpt-4o-audio", 0),
            ("gpt-5-mini-2025-08-07", 0),
            ("my/model:7b", 0),
            ("my/model:70b", 0),
            ("gpt-5.9", 0),
            ("clerk-2", 0),
            ("", 0),
        ] {
            let price = prices.of(model, read);
            let price = price.map(|it| [it.input, it.output, it.cache_write, it.cache_read]);
            writeln!(table, "{model} {read}: {price:?}").unwrap();
        }
        expect![[r#"
            clerk 0: Some([0, 0, 0, 0])
            claude-sonnet-4-5 0: Some([3000000, 15000000, 3750000, 300000])
            claude-sonnet-4-5-20250929 0: Some([3000000, 15000000, 3750000, 300000])
            claude-sonnet-4-20250514 0: Some([3000000, 15000000, 3750000, 300000])
            claude-sonnet-4-9 0: None
            claude-sonnet-5-latest 0: Some([2000000, 10000000, 2500000, 200000])
            claude-haiku-5-5 100000: Some([100000, 500000, 125000, 10000])
            claude-haiku-5-5 100001: Some([500000, 2500000, 625000, 50000])
            gpt-4o-2024-08-06 0: Some([2500000, 10000000, 2500000, 1250000])
            gpt-4o-mini 0: Some([150000, 600000, 150000, 75000])
            gpt-4o-audio 0: None
            gpt-5-mini-2025-08-07 0: Some([1, 2, 3, 4])
            my/model:7b 0: Some([1, 2, 3, 4])
            my/model:70b 0: None
            gpt-5.9 0: None
            clerk-2 0: None
             0: None
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn amounts_are_exact_and_shown_short() {
        let price = Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_write: 3_750_000,
            cache_read: 300_000,
        };
        let tokens = Tokens { input: 1, output: 1, cache_read: 1, cache_write: 1 };
        assert_eq!(price.of(tokens).exact(), "0.00002205");
        assert_eq!(price.of(Tokens { input: 1_000_000, ..Tokens::default() }).exact(), "3");
        let mut table = String::new();
        for text in ["0", "0.00004", "0.00005", "0.0123499", "1.99995", "1234.5", "0.000000000001"]
        {
            let cost = Cost::try_from(text.to_owned()).unwrap();
            writeln!(table, "{text}: {cost} {}", cost.exact()).unwrap();
        }
        expect![[r#"
            0: $0.0000 0
            0.00004: <$0.0001 0.00004
            0.00005: $0.0001 0.00005
            0.0123499: $0.0123 0.0123499
            1.99995: $2.0000 1.99995
            1234.5: $1234.5000 1234.5
            0.000000000001: <$0.0001 0.000000000001
        "#]]
        .assert_eq(&table);
        for text in ["", ".", ".5", "-1", "1e3", "0.0000000000001", "1,5", "1.2.3", "NaN"] {
            assert!(Cost::try_from(text.to_owned()).is_err(), "{text}");
        }
        let dollars = [0.0, 0.150_956_000_000_000_03, 1e-5, 12.5, 1e-14];
        let dollars = dollars.map(|it| Cost::of_dollars(it).unwrap().exact());
        assert_eq!(dollars, ["0", "0.150956", "0.00001", "12.5", "0"]);
        for odd in [-0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Cost::of_dollars(odd), None);
        }
        assert_eq!(micro_dollars("0.075"), Some(75_000));
        assert_eq!(micro_dollars("3.0"), Some(3_000_000));
        assert_eq!(micro_dollars("0.0000001"), None);
        assert_eq!(
            Price { input: u64::MAX, ..price }
                .of(Tokens { input: u64::MAX, ..tokens })
                .plus(Cost(u128::MAX)),
            Cost(u128::MAX)
        );
    }

    proptest! {
        #[test]
        fn amounts_are_read_as_they_were_written(amount: u128) {
            let cost = Cost(amount);
            prop_assert_eq!(Cost::try_from(cost.exact()), Ok(cost));
        }

        #[test]
        fn the_cost_of_a_sum_is_the_sum_of_the_costs(counts: [u32; 8], price: [u32; 4]) {
            let [a, b, c, d, e, f, g, h] = counts.map(u64::from);
            let [input, output, cache_write, cache_read] = price.map(u64::from);
            let price = Price { input, output, cache_write, cache_read };
            let one = Tokens { input: a, output: b, cache_read: c, cache_write: d };
            let other = Tokens { input: e, output: f, cache_read: g, cache_write: h };
            prop_assert_eq!(price.of(one.plus(other)), price.of(one).plus(price.of(other)));
        }
    }
}
