//! Text for people: shortened, and made harmless for a terminal.

use std::fmt::Write;

/// At most about `most` characters of `text`: its beginning and its end, with a note of how much
/// is left out between them. Shorter text comes back as it is.
pub fn shorten(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most * 3 / 4, most - most * 3 / 4);
    let mut short: String = text.chars().take(head).collect();
    let _ = write!(short, "\n… {} characters left out …\n", count - head - tail);
    short.extend(text.chars().skip(count - tail));
    short
}

/// The first line of `text`, cut to `most` characters with an ellipsis: for lists and titles.
pub fn headline(text: &str, most: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let cut = line.chars().count() > most || line.len() < text.len();
    let mut short: String = line.chars().take(most.saturating_sub(usize::from(cut))).collect();
    if cut {
        short.push('…');
    }
    short
}

/// Spells out what could steer a terminal or deceive its reader: control characters other than
/// newline and tab, bidirectional overrides, zero-width characters.
pub fn for_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' || character == '\t' || !is_harmful(character) {
            safe.push(character);
        } else {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        }
    }
    safe
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(character, '\u{e0000}'..='\u{e007f}')
}

/// The one of `names` that was likely meant by `given`: at most two letters away.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.map(|name| (strsim::levenshtein(given, name), name));
    distances.filter(|(far, _)| *far < 3).min().map(|(_, name)| name)
}

/// Whether `given` is `name` with a slip: a letter in six is wrong, left out, added or has changed
/// places, and one in any name.
pub fn is_slip_of(given: &str, name: &str) -> bool {
    strsim::osa_distance(given, name) <= (name.len() / 6).max(1)
}

/// `names` as a list for a sentence: `a, b and c`.
pub fn listed<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_both_ends() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("0123456789", 8), "012345\n… 2 characters left out …\n89");
        assert_eq!(headline("one\ntwo", 10), "one…");
        assert_eq!(headline("0123456789", 4), "012…");
    }

    #[test]
    fn terminals_are_not_steered() {
        let text = "a\x1b[31mred\u{202e}x\u{200b}\ttab\nline\rback";
        let safe = "a\\u{1b}[31mred\\u{202e}x\\u{200b}\ttab\nline\\u{d}back";
        assert_eq!(for_terminal(text), safe);
        assert_eq!(for_terminal("größe 日本 👍"), "größe 日本 👍");
    }

    #[test]
    fn lists_read_like_a_sentence() {
        assert_eq!(listed::<&str>([]), "none");
        assert_eq!(listed(["a", "b", "c"]), "a, b and c");
    }
}
