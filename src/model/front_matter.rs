//! A Markdown file that defines an agent: fields between two lines of dashes, then its prompt.
//!
//! The fields are YAML by their makers' intent and often not by its rules: a description with a colon
//! in it is enough. Such a file is read line by line, each a key and the rest.

use serde_json::{Map, Value};

use super::type_fields::is_field;

/// A file in its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct FrontMatter {
    /// What stands between the dashes.
    pub fields: Map<String, Value>,
    /// All behind them.
    pub body: String,
    /// What was odd about it.
    pub notes: Vec<String>,
}

/// Takes a file apart; an error where it begins a front matter and never ends it, since what it
/// restricts may stand anywhere in it.
pub fn front_matter(text: &str) -> Result<FrontMatter, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let Some(behind) = opened(&text) else {
        return Ok(FrontMatter {
            fields: Map::new(),
            body: text.trim().to_owned(),
            notes: vec!["has no front matter: the whole file is its prompt".to_owned()],
        });
    };
    let Some((head, body)) = closed(behind) else {
        return Err("its front matter has no end: a line `---` is missing".to_owned());
    };
    let (fields, notes) = match serde_saphyr::from_str::<Value>(head) {
        Ok(Value::Object(fields)) => (fields, Vec::new()),
        Ok(Value::Null) => (Map::new(), Vec::new()),
        Ok(_) | Err(_) => {
            let note = "its front matter is no YAML; it was read as lines of a key and the rest";
            (by_lines(head)?, vec![note.to_owned()])
        }
    };
    Ok(FrontMatter { fields, body: body.trim().to_owned(), notes })
}

/// What stands behind the first line, where that is dashes.
fn opened(text: &str) -> Option<&str> {
    let (first, behind) = text.trim_start().split_once('\n')?;
    (first.trim_end() == "---").then_some(behind)
}

/// What stands before and behind the next line of dashes.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((text.get(..place)?, text.get(place + line.len()..)?));
        }
        place += line.len();
    }
    None
}

/// `key: rest of line`; an indented line goes on with the text before it, or with its list. An error
/// where a restriction could get lost: in a line of no field, or as one of two of a field.
fn by_lines(head: &str) -> Result<Map<String, Value>, String> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (number, line) in head.lines().enumerate() {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let is_key =
            |key: &str| !key.is_empty() && key.chars().all(is_plain) && !key.starts_with('-');
        // An indented line is a field only where it is one of ours: no restriction gets lost in a text.
        let pair = line.split_once(':').filter(|(key, _)| is_key(key));
        let inner = line.trim_start().split_once(':').filter(|(key, _)| is_field(key));
        let pair = pair.or(inner);
        let is_there = |key: &str| fields.iter().any(|(known, _)| known == key);
        if let Some((key, _)) = pair.filter(|(key, _)| is_field(key) && is_there(key)) {
            return Err(format!("its front matter has {key:?} twice"));
        }
        match (pair, fields.last_mut()) {
            (Some((key, rest)), _) => {
                fields.push((key.to_owned(), unquoted(rest.trim()).to_owned()));
            }
            (None, Some((_, text))) => {
                let more = line.trim();
                // An item of a list joins the names before it, as a comma list has them.
                let (joint, more) = match more.strip_prefix("- ") {
                    Some(item) => (", ", unquoted(item.trim())),
                    None => (" ", more),
                };
                if !text.is_empty() && !more.is_empty() {
                    text.push_str(joint);
                }
                text.push_str(more);
            }
            (None, None) if line.trim().is_empty() || line.starts_with('#') => {}
            (None, None) => {
                return Err(format!("line {} of its front matter is of no field", number + 1));
            }
        }
    }
    Ok(fields.into_iter().map(|(key, text)| (key, Value::String(text))).collect())
}

fn unquoted(text: &str) -> &str {
    let within = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|it| it.strip_suffix(quote))
            .filter(|it| !it.contains(quote))
    };
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(text: &str) -> Value {
        Value::Object(front_matter(text).unwrap().fields)
    }

    #[test]
    fn yaml_is_read_as_yaml_and_the_rest_line_by_line() {
        let read = front_matter(
            "\u{feff}---\r\nname: a\r\ntools: [Read, Grep]\r\n---\r\n\r\nBe kind.\r\n",
        )
        .unwrap();
        assert_eq!(Value::Object(read.fields), json!({"name": "a", "tools": ["Read", "Grep"]}));
        assert_eq!((read.body.as_str(), read.notes.len()), ("Be kind.", 0));
        let odd = "---\nname: a\ndescription: Use for code: review\ntools:\n  - Read\n  - Grep\nx: \"q\"\n---\nb";
        assert_eq!(
            fields(odd),
            json!({"name": "a", "description": "Use for code: review", "tools": "Read, Grep", "x": "q"})
        );
        assert_eq!(front_matter(odd).unwrap().notes.len(), 1);
        assert_eq!(
            fields("---\ndescription: >\n  one\n  two\n---\n"),
            json!({"description": "one two\n"})
        );
    }

    #[test]
    fn without_front_matter_all_is_the_prompt() {
        for text in ["You review.", "", "--- x\n---\n"] {
            let read = front_matter(text).unwrap();
            assert_eq!((read.fields.len(), read.notes.len()), (0, 1), "{text}");
            assert_eq!(read.body, text.trim());
        }
        assert_eq!(front_matter("---\n---\nbody").unwrap().body, "body");
        assert!(front_matter("---\nname: a\nno end").is_err());
        for lost in ["- tools: Read\nname: a: b", "name: a\ntools: Read\ntools: '*'"] {
            assert!(front_matter(&format!("---\n{lost}\n---\nx")).is_err(), "{lost}");
        }
        assert_eq!(fields("---\nname:\ta: b\n\ttools: Read\n---\n")["tools"], "Read");
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(---\n)?[a-z:>|&*!%@`'\"\\[\\]{}# \t\n-]{0,80}(\n---\n)?.{0,20}") {
            drop(front_matter(&text));
        }
    }
}
