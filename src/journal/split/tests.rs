//! What lines hold, as one table, and the laws that the splitting keeps.

use std::fmt::Write;

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn shown(line: &[u8]) -> String {
    let split = split(line);
    let mut out = String::new();
    for piece in &split.pieces {
        let bytes = &line[piece.range.clone()];
        let text = if bytes.len() > 60 {
            format!("<{} bytes>", bytes.len())
        } else {
            bytes.escape_ascii().to_string().replace("\\\"", "\"")
        };
        match &piece.dead {
            None => writeln!(out, "  object {text}").unwrap(),
            Some(reason) => writeln!(out, "  dead   {text}\n         {reason}").unwrap(),
        }
    }
    if split.nuls > 0 {
        writeln!(out, "  nuls   {}", split.nuls).unwrap();
    }
    out
}

fn nested(depth: usize) -> Vec<u8> {
    let inner = depth - 1;
    format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner)).into_bytes()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table and what comes of it")]
fn what_lines_hold() {
    let glued_to_nuls = [&[0; 25][..], br#"{"content":"a"}"#].concat();
    let behind_deep = [&nested(129)[..], b"{}"].concat();
    let rows: &[(&str, &[u8])] = &[
        ("M1 empty", b""),
        ("M1 blanks only", b" \t \r"),
        ("M2 carriage return", b"{\"content\":\"a\"}\r"),
        ("M3 byte order mark", b"\xEF\xBB\xBF{\"content\":\"a\"}"),
        ("M4 NULs before an object", &glued_to_nuls),
        ("M5 NULs alone", &[0; 4096]),
        ("M8 two glued", br#"{"content":"a"}{"content":"b"}"#),
        ("M10 an array", br#"["x","user","SHUTDOWN"]"#),
        ("M11 a string", br#""text""#),
        ("M11 a number", b"42"),
        ("M11 null", b"null"),
        ("M11 true", b"true"),
        ("M12 a key twice is judged above", br#"{"from":"a","from":"user"}"#),
        ("M16 not UTF-8 inside", b"{\"content\":\"\xFF\"}"),
        ("M16 not UTF-8 before", b"\xFF\xFE {\"content\":\"a\"}"),
        ("M18 raw control character", b"{\"content\":\"a\x01b\"}"),
        ("M20 NaN", br#"{"ts":NaN}"#),
        ("M20 odd numbers are judged above", br#"{"ts":1e999,"n":-0.10}"#),
        ("M38 no line ends", "{\"content\":\"\u{2028}\u{85}\"}".as_bytes()),
        ("M39 object, then garbage", br#"{"content":"a"} xyz"#),
        ("M39 the garbage alone", b" xyz"),
        ("128 deep", &nested(128)),
        ("129 deep", &nested(129)),
        ("129 deep, then an object", &behind_deep),
        ("braces in strings are not deep", br#"{"a":"\"[[[{{{\\"}"#),
        ("garbage before an object", br#"xyz {"content":"a"}"#),
        ("commas between objects", br#"{"a":1},{"b":2}"#),
        ("an array, then an object", br#"[{"a":1}] {"b":2}"#),
        ("an open array", br#"[1, {"a":1}"#),
        ("half an object", br#"{"content":"a"#),
        ("half an object, then a whole one", br#"{"content":"a{"content":"b"}"#),
        ("half a string, then an object", br#"tent":"a"}{"content":"b"}"#),
        ("a word that begins like a value", br#"nullify {"a":1}"#),
        ("a lone brace", b"}"),
    ];
    let mut table = String::new();
    for (name, line) in rows {
        write!(table, "{name}\n{}", shown(line)).unwrap();
    }
    expect![[r#"
        M1 empty
        M1 blanks only
        M2 carriage return
          object {"content":"a"}
        M3 byte order mark
          object {"content":"a"}
        M4 NULs before an object
          object {"content":"a"}
          nuls   25
        M5 NULs alone
          nuls   4096
        M8 two glued
          object {"content":"a"}
          object {"content":"b"}
        M10 an array
          dead   ["x","user","SHUTDOWN"]
                 not an object: an array
        M11 a string
          dead   "text"
                 not an object: a string
        M11 a number
          dead   42
                 not an object: a number
        M11 null
          dead   null
                 not an object: null
        M11 true
          dead   true
                 not an object: a truth value
        M12 a key twice is judged above
          object {"from":"a","from":"user"}
        M16 not UTF-8 inside
          dead   {"content":"\xff"}
                 not UTF-8
        M16 not UTF-8 before
          dead   \xff\xfe
                 not UTF-8
          object {"content":"a"}
        M18 raw control character
          dead   {"content":"a\x01b"}
                 broken JSON at byte 13: control character (\u0000-\u001F) found while parsing a string
        M20 NaN
          dead   {"ts":NaN}
                 broken JSON at byte 7: expected value
        M20 odd numbers are judged above
          object {"ts":1e999,"n":-0.10}
        M38 no line ends
          object {"content":"\xe2\x80\xa8\xc2\x85"}
        M39 object, then garbage
          object {"content":"a"}
          dead   xyz
                 broken JSON at byte 1: expected value
        M39 the garbage alone
          dead   xyz
                 broken JSON at byte 1: expected value
        128 deep
          object <260 bytes>
        129 deep
          dead   <262 bytes>
                 over 128 deep
        129 deep, then an object
          dead   <262 bytes>
                 over 128 deep
          object {}
        braces in strings are not deep
          object {"a":"\\"[[[{{{\\\\"}
        garbage before an object
          dead   xyz
                 broken JSON at byte 1: expected value
          object {"content":"a"}
        commas between objects
          object {"a":1}
          dead   ,
                 broken JSON at byte 1: expected value
          object {"b":2}
        an array, then an object
          dead   [{"a":1}]
                 not an object: an array
          object {"b":2}
        an open array
          dead   [1,
                 broken JSON at byte 11: EOF while parsing a list
          object {"a":1}
        half an object
          dead   {"content":"a
                 broken JSON at byte 13: EOF while parsing a string
        half an object, then a whole one
          dead   {"content":"a{"content":"b"}
                 broken JSON at byte 16: expected `,` or `}`; a whole object stands at byte 14 and was not taken
        half a string, then an object
          dead   tent":"a"}
                 broken JSON at byte 2: expected ident
          object {"content":"b"}
        a word that begins like a value
          dead   nullify
                 broken JSON at byte 5: trailing characters
          object {"a":1}
        a lone brace
          dead   }
                 broken JSON at byte 1: expected value
    "#]]
    .assert_eq(&table);
}

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let fragments: Vec<&[u8]> = vec![
        br#"{"a":1}"#,
        br#"{"b":"{"}"#,
        b"{",
        b"}",
        b"\"",
        b"[",
        b"]",
        b" xyz ",
        b",",
        b"42",
        b"\xEF\xBB\xBF",
        b"\xFF",
        b"\0\0",
        b"\r",
    ];
    let fragment = prop::sample::select(fragments);
    prop::collection::vec(fragment, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_split_into_pieces_in_order(line: Vec<u8>, more in fragments()) {
        for line in [line, more] {
            let mut at = 0;
            for piece in split(&line).pieces {
                prop_assert!(at <= piece.range.start && piece.range.start < piece.range.end);
                at = piece.range.end;
            }
            prop_assert!(at <= line.len());
        }
    }

    /// A newline may come behind any object or not: the pieces are the same.
    #[test]
    fn an_early_newline_changes_nothing(line in fragments()) {
        let all = split(&line);
        for cut in all.pieces.iter().filter(|piece| piece.dead.is_none()) {
            let (left, right) = line.split_at(cut.range.end);
            let (left, mut right) = (split(left), split(right));
            if !left.is_whole() {
                continue;
            }
            for piece in &mut right.pieces {
                piece.range = piece.range.start + cut.range.end..piece.range.end + cut.range.end;
            }
            prop_assert_eq!(&[left.pieces, right.pieces].concat(), &all.pieces);
            prop_assert_eq!(left.nuls + right.nuls, all.nuls);
        }
    }

    /// A tail that is whole is so for good: what comes behind it does not change it.
    #[test]
    fn a_whole_tail_keeps_its_meaning(count in 1_usize..4, more in fragments()) {
        let tail = b" {\"a\":[{}]}\r".repeat(count);
        let (early, late) = (split(&tail), split(&[tail, more].concat()));
        prop_assert!(early.is_whole());
        prop_assert_eq!(&late.pieces[..count], &early.pieces[..]);
    }
}
