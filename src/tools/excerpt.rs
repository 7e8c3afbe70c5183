//! Shows a change of a text in a few lines, as diffs do.
//!
//! It finds the one stretch between what is the same at the beginning and at the end; it does not
//! look for the smallest change.

use std::fmt::Write;

use super::content::counted;

/// How many unchanged lines are shown on either side.
const AROUND: usize = 2;
/// How many lines that go or come are shown.
const LINES: usize = 20;
/// How much of a line is shown, in characters.
const WIDTH: usize = 200;

/// What is changed from `before` to `after`: the place, the lines that go and those that come.
pub fn change(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let first = old.iter().zip(&new).take_while(same).count();
    let room = old.len().min(new.len()) - first;
    let last = old.iter().rev().zip(new.iter().rev()).take(room).take_while(same).count();
    let middle = |lines: &[&str]| -> String {
        lines.get(first..lines.len() - last).unwrap_or_default().join("\n")
    };
    if old.len() == new.len() && first == old.len() {
        return "only line ends differ\n".to_owned();
    }
    let mut shown = format!("@@ line {} @@\n", first + 1);
    let lead = old.iter().take(first).skip(first.saturating_sub(AROUND));
    mark(&mut shown, ' ', lead.copied());
    shown.push_str(&replaced(&middle(&old), &middle(&new)));
    mark(&mut shown, ' ', old.iter().skip(old.len() - last).take(AROUND).copied());
    shown
}

/// The lines of `old` as those that go and the lines of `new` as those that come.
pub fn replaced(old: &str, new: &str) -> String {
    let mut shown = String::new();
    mark(&mut shown, '-', old.lines());
    mark(&mut shown, '+', new.lines());
    shown
}

fn mark<'a>(shown: &mut String, sign: char, mut lines: impl Iterator<Item = &'a str>) {
    for line in lines.by_ref().take(LINES) {
        shown.push(sign);
        push_short(shown, line, WIDTH);
        shown.push('\n');
    }
    let rest = lines.count();
    if rest > 0 {
        let _ = writeln!(shown, "{sign}… {} more", counted(rest, "line"));
    }
}

/// Adds at most `most` characters of `line`, and an ellipsis where that is not all.
pub fn push_short(shown: &mut String, line: &str, most: usize) {
    let mut letters = line.chars();
    shown.extend(letters.by_ref().take(most));
    if letters.next().is_some() {
        shown.push('…');
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_change_shows_its_place_and_its_lines() {
        let before = "one\ntwo\nthree\nfour\nfive\nsix\n";
        let after = "one\ntwo\nthree\nFOUR\nand\nfive\nsix\n";
        let shown = [
            change(before, after),
            change(before, "one\ntwo\nthree\nfour\nfive\n"),
            change("", "new\n"),
            change("a\na\n", "a\na\na\n"),
            change("a\r\nb\r\n", "a\nb\n"),
            change(&"x\n".repeat(50), &"y".repeat(300)),
        ];
        expect![[r"
            @@ line 4 @@
             two
             three
            -four
            +FOUR
            +and
             five
             six
            --
            @@ line 6 @@
             four
             five
            -six
            --
            @@ line 1 @@
            +new
            --
            @@ line 3 @@
             a
             a
            +a
            --
            only line ends differ
            --
            @@ line 1 @@
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -x
            -… 30 lines more
            +yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…
        "]].assert_eq(&shown.join("--\n"));
    }
}
