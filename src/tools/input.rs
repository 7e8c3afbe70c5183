//! From the JSON a model wrote to a tool's arguments, and the schema that tells the model what to
//! write. Both come from the same struct, so they can't differ.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::text::listed;

/// Reads the arguments of a tool from its input: an object, a text that holds one (some models
/// write that), or nothing. The error says what is valid.
pub fn arguments<T: DeserializeOwned + JsonSchema>(input: &Value) -> Result<T, String> {
    let object = match input {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => serde_json::from_str(text)
            .map_err(|why| format!("the input is no JSON object: {why}; {}", valid::<T>()))?,
        other => other.clone(),
    };
    if !object.is_object() {
        return Err(format!("the input has to be a JSON object; {}", valid::<T>()));
    }
    serde_json::from_value(object).map_err(|why| format!("{why}; {}", valid::<T>()))
}

/// The JSON Schema of a tool's arguments, with nothing in it that a model has no use for.
pub fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    tidy(&mut schema);
    schema
}

/// Takes number formats away, and `null` from what may be left out.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("format").is_some_and(Value::is_string) {
                fields.remove("format");
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `valid: path (string), offset (integer, optional)`.
fn valid<T: JsonSchema>() -> String {
    let schema = schema::<T>();
    let required = schema.get("required").and_then(Value::as_array);
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let shown = fields.map(|(name, field)| {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or("any");
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
        if is_required { format!("{name} ({kind})") } else { format!("{name} ({kind}, optional)") }
    });
    format!("valid: {}", listed(shown))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        /// What to open.
        path: String,
        offset: Option<usize>,
        #[serde(default)]
        all: bool,
    }

    #[test]
    fn objects_are_read_also_from_a_text() {
        let wanted = || Arguments { path: "a".to_owned(), offset: Some(2), all: false };
        assert_eq!(arguments(&json!({"path": "a", "offset": 2})), Ok(wanted()));
        assert_eq!(arguments(&json!(r#"{"path": "a", "offset": 2}"#)), Ok(wanted()));
    }

    #[test]
    fn errors_say_what_is_valid() {
        let inputs = [
            json!(null),
            json!({"path": 7}),
            json!({"path": "a", "ofset": 1}),
            json!({"path": "a", "offset": -1}),
            json!(["a"]),
            json!("{"),
            json!("[]"),
        ];
        let errors = inputs.map(|input| arguments::<Arguments>(&input).unwrap_err());
        expect![[r"
            missing field `path`; valid: all (boolean, optional), offset (integer, optional) and path (string)
            invalid type: integer `7`, expected a string; valid: all (boolean, optional), offset (integer, optional) and path (string)
            unknown field `ofset`, expected one of `path`, `offset`, `all`; valid: all (boolean, optional), offset (integer, optional) and path (string)
            invalid value: integer `-1`, expected usize; valid: all (boolean, optional), offset (integer, optional) and path (string)
            the input has to be a JSON object; valid: all (boolean, optional), offset (integer, optional) and path (string)
            the input is no JSON object: EOF while parsing an object at line 1 column 1; valid: all (boolean, optional), offset (integer, optional) and path (string)
            the input has to be a JSON object; valid: all (boolean, optional), offset (integer, optional) and path (string)"]].assert_eq(&errors.join("\n"));
    }

    #[test]
    fn schemas_are_plain() {
        let schema = serde_json::to_string_pretty(&schema::<Arguments>()).unwrap();
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "all": {
                  "default": false,
                  "type": "boolean"
                },
                "offset": {
                  "minimum": 0,
                  "type": "integer"
                },
                "path": {
                  "description": "What to open.",
                  "type": "string"
                }
              },
              "required": [
                "path"
              ],
              "type": "object"
            }"#]]
        .assert_eq(&schema);
    }
}
