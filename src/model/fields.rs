//! The fields of a line, by their canonical names: aliases resolved, duplicates refused, values read
//! one by one so that the fault of one is told with its name.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::MessageId;
use crate::base::{Timestamp, text::listed};

/// Why a line is not what it should be: a fragment for a dead letter.
pub type Fault = String;

/// The known fields of one line. A field that is `null` counts as absent.
pub struct Fields<'a>(BTreeMap<&'static str, &'a RawValue>);

impl<'a> Fields<'a> {
    /// Takes the fields that `aliases` (key, canonical name) knows; others are passed over.
    pub fn read(
        body: &'a str,
        aliases: &'static [(&'static str, &'static str)],
    ) -> Result<Self, Fault> {
        let pairs: Pairs =
            serde_json::from_str(body).map_err(|why| format!("broken JSON: {why}"))?;
        let mut fields = BTreeMap::new();
        for (key, value) in pairs.0 {
            let Some((_, name)) = aliases.iter().find(|(alias, _)| *alias == key) else { continue };
            if fields.insert(*name, value).is_some() {
                let also = if key == *name { String::new() } else { format!(" (also {name})") };
                return Err(format!("duplicate key {key:?}{also}"));
            }
        }
        fields.retain(|_, value| value.get() != "null");
        Ok(Self(fields))
    }

    /// Whether the field is there.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        self.get(name, "a string")
    }

    /// True or false.
    pub fn bool(&self, name: &str) -> Result<Option<bool>, Fault> {
        self.get(name, "true or false")
    }

    /// A number from 0 to 255.
    pub fn small_number(&self, name: &str) -> Result<Option<u8>, Fault> {
        self.get(name, "a number from 0 to 255")
    }

    /// A whole number from 0.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        self.get(name, "a whole number from 0")
    }

    /// A text, or a whole number as text.
    pub fn text_or_number(&self, name: &str) -> Result<Option<String>, Fault> {
        if self.0.get(name).is_some_and(|raw| !raw.get().starts_with('"')) {
            return Ok(self.number(name)?.map(|number| number.to_string()));
        }
        self.text(name)
    }

    /// A list of texts and whole numbers, as texts.
    pub fn texts_or_numbers(&self, name: &str) -> Result<Option<Vec<String>>, Fault> {
        let wanted = "a list of strings or whole numbers";
        let Some(values) = self.get::<Vec<serde_json::Value>>(name, wanted)? else {
            return Ok(None);
        };
        let text = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => Ok(text),
            serde_json::Value::Number(number) if number.is_u64() => Ok(number.to_string()),
            _ => Err(format!("{name} has to be {wanted}")),
        };
        values.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// An id.
    pub fn id(&self, name: &str) -> Result<Option<MessageId>, Fault> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        MessageId::new(text).map(Some).map_err(|why| format!("bad {name}: {why}"))
    }

    /// A time; one that can't be read is unknown and no fault, since no time decides anything.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        let raw = self.0.get(name)?.get();
        Timestamp::parse(raw.trim_matches('"'))
    }

    /// One of `choices`, in either case.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = choices.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(&text));
        let Some((_, value)) = found else {
            let valid = listed(choices.iter().map(|(choice, _)| *choice));
            let text: String = text.chars().take(40).collect();
            return Err(format!("unknown {name} {text:?}; valid are {valid}"));
        };
        Ok(Some(*value))
    }

    fn get<T: DeserializeOwned>(&self, name: &str, wanted: &str) -> Result<Option<T>, Fault> {
        let Some(raw) = self.0.get(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|why| {
            let data = why.is_data() || why.to_string().starts_with("number out of range");
            let why = if data { String::new() } else { format!(" ({why})") };
            format!("{name} has to be {wanted}{why}")
        })
    }
}

/// All pairs of an object, repeated keys too.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Collect)
    }
}
