//! Words of a line: bare, or in quotes where there are blanks in them.
//!
//! In double quotes `\"` stands for a quote and every other backslash for itself, so that a regular
//! expression stays as it is written; in single quotes everything stands for itself.

/// The first word of `text` and what stands behind it; none where there is no word.
pub fn split_first(text: &str) -> Result<Option<(String, &str)>, String> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('\'') {
        let (word, rest) = quoted.split_once('\'').ok_or("the quote `'` is not closed")?;
        return Ok(Some((word.to_owned(), rest)));
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return in_double_quotes(quoted).map(Some);
    }
    if text.is_empty() {
        return Ok(None);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    Ok(Some((word.to_owned(), rest)))
}

/// All words of `text`.
pub fn split_all(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some((word, behind)) = split_first(rest)? {
        if !behind.is_empty() && !behind.starts_with(char::is_whitespace) {
            return Err("a blank is missing behind a quote".to_owned());
        }
        words.push(word);
        rest = behind;
    }
    Ok(words)
}

fn in_double_quotes(text: &str) -> Result<(String, &str), String> {
    let mut word = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Ok((word, letters.as_str())),
            '\\' if letters.as_str().starts_with('"') => {
                letters.next();
                word.push('"');
            }
            _ => word.push(letter),
        }
    }
    Err("the quote `\"` is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_quoted() {
        let words = split_all(r#" a "b \"c\" \w+" 'd "e"' "" größe "#).unwrap();
        assert_eq!(words, ["a", r#"b "c" \w+"#, r#"d "e""#, "", "größe"]);
        for bad in ["'a", "\"a", "\"a\\\"", "\"a\"b"] {
            assert!(split_all(bad).is_err(), "{bad}");
        }
    }
}
