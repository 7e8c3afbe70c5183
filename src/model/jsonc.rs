//! Reads a JSON file that people write, with comments: values by key, every fault with its place.

use std::collections::BTreeSet;

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, Value},
    common::Ranged,
    parse_to_ast,
};

use super::{Place, Placed, TeamFault};
use crate::base::text::listed;

/// A text under reading, and what is wrong with it so far.
pub struct Reader<'a> {
    text: &'a str,
    /// All faults found so far.
    pub faults: Vec<TeamFault>,
}

impl<'a> Reader<'a> {
    /// Begins to read.
    pub fn new(text: &'a str) -> Self {
        Self { text, faults: Vec::new() }
    }

    /// The one object that the text is.
    pub fn parse(&mut self) -> Option<Object<'a>> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            ..ParseOptions::default()
        };
        let parsed = match parse_to_ast(self.text, &CollectOptions::default(), &options) {
            Ok(parsed) => parsed.value,
            Err(why) => {
                let place = Place { line: why.line_display(), column: why.column_display() };
                self.faults.push(TeamFault { place, why: format!("broken JSON: {}", why.kind()) });
                return None;
            }
        };
        match parsed {
            Some(Value::Object(root)) => Some(root),
            Some(_) | None => {
                let why = "a team file is one JSON object; `postroom init` writes one".to_owned();
                self.faults.push(TeamFault { place: Place { line: 1, column: 1 }, why });
                None
            }
        }
    }

    /// Finds keys that are not known, or there twice.
    pub fn check_keys(
        &mut self,
        fields: &Object<'a>,
        whose: &str,
        known: &[&str],
        to_come: &[&str],
    ) {
        let mut seen = BTreeSet::new();
        for property in &fields.properties {
            let key = property.name.as_str();
            if !seen.insert(key.to_owned()) {
                self.fault(property, &format!("{key:?} is there twice"));
            } else if to_come.contains(&key) {
                self.fault(property, &format!("{key:?} is not part of this version yet"));
            } else if !known.contains(&key) {
                let valid = listed(known);
                self.fault(property, &format!("{whose} has no {key:?}; valid are {valid}"));
            }
        }
    }
    /// Finds keys that are there twice, here and in all objects below.
    pub fn check_twice(&mut self, fields: &Object<'a>) {
        let mut seen = BTreeSet::new();
        for property in &fields.properties {
            let key = property.name.as_str();
            if !seen.insert(key.to_owned()) {
                self.fault(property, &format!("{key:?} is there twice"));
            }
            if let Value::Object(below) = &property.value {
                self.check_twice(below);
            }
        }
    }

    /// The objects of a list, each with its place.
    pub fn objects<'v>(&mut self, root: &'v Object<'a>, key: &str) -> Vec<(&'v Object<'a>, Place)> {
        let Some(Value::Array(list)) = self.wanted(root, key, "a list of objects") else {
            return Vec::new();
        };
        let mut objects = Vec::new();
        for element in &list.elements {
            match element {
                Value::Object(fields) => objects.push((fields, self.place(element))),
                _ => self.fault(element, &format!("{key:?} lists objects")),
            }
        }
        objects
    }

    /// The value of a key, which has to be an object or a list.
    pub fn wanted<'v>(
        &mut self,
        fields: &'v Object<'a>,
        key: &str,
        wanted: &str,
    ) -> Option<&'v Value<'a>> {
        let value = &fields.get(key)?.value;
        let fits = match wanted {
            "an object" => value.as_object().is_some(),
            _ => value.as_array().is_some(),
        };
        if !fits {
            self.fault(value, &format!("{key:?} has to be {wanted}"));
        }
        Some(value)
    }

    /// A text.
    pub fn string(&mut self, fields: &Object<'a>, key: &str) -> Option<Placed<String>> {
        let value = &fields.get(key)?.value;
        let place = self.place(value);
        match value {
            Value::StringLit(text) => Some(Placed { place, value: text.value.to_string() }),
            Value::NullKeyword(_) => None,
            _ => {
                self.fault(value, &format!("{key:?} has to be a string"));
                None
            }
        }
    }

    /// A whole number from 0.
    pub fn number(&mut self, fields: &Object<'a>, key: &str) -> Option<Placed<u64>> {
        let value = &fields.get(key)?.value;
        let place = self.place(value);
        let number = value.as_number_lit().and_then(|it| it.value.parse().ok());
        if number.is_none() {
            self.fault(value, &format!("{key:?} has to be a whole number from 0"));
        }
        number.map(|value| Placed { place, value })
    }

    /// One of a few words.
    pub fn choice<T: Copy>(
        &mut self,
        fields: &Object<'a>,
        key: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let given = match &fields.get(key)?.value {
            Value::BooleanLit(flag) => {
                Placed { place: self.place(flag), value: flag.value.to_string() }
            }
            _ => self.string(fields, key)?,
        };
        let found = choices.iter().find(|(choice, _)| *choice == given.value);
        if found.is_none() {
            let valid = listed(choices.iter().map(|(choice, _)| *choice));
            self.fault_at(given.place, format!("{key:?} has to be one of {valid}"));
        }
        found.map(|(_, value)| *value)
    }

    /// The value, or its fault noted.
    pub fn kept<T>(&mut self, place: Place, result: Result<T, String>) -> Option<T> {
        result.map_err(|why| self.fault_at(place, why)).ok()
    }

    /// Notes a fault.
    pub fn fault(&mut self, at: &impl Ranged, why: &str) {
        let place = self.place(at);
        self.fault_at(place, why.to_owned());
    }

    /// Notes a fault at a place.
    pub fn fault_at(&mut self, place: Place, why: String) {
        self.faults.push(TeamFault { place, why });
    }

    /// The place of a value.
    pub fn place(&self, at: &impl Ranged) -> Place {
        let before = self.text.get(..at.range().start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        Place { line: before.matches('\n').count() + 1, column }
    }
}
