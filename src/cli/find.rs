//! Finds what an id means, or its beginning.

use super::failure::Failure;

/// The shortest beginning of an id that is looked for.
const SHORTEST: usize = 3;
/// How many ids are named where a beginning fits several.
const NAMED: usize = 5;

/// The one of `all` that is called `given`, else the only one whose id begins so. `nothing` says what
/// there is instead.
pub fn by_beginning<T>(
    given: &str,
    all: impl IntoIterator<Item = T>,
    id_of: impl Fn(&T) -> &str,
    nothing: impl FnOnce() -> Failure,
) -> Result<T, Failure> {
    let mut found: Vec<T> = Vec::new();
    for it in all {
        if id_of(&it) == given {
            return Ok(it);
        }
        if id_of(&it).starts_with(given) {
            found.push(it);
        }
    }
    if given.len() < SHORTEST {
        return Err(Failure::usage(format!("{given:?} is too short: give {SHORTEST} or more")));
    }
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().take(NAMED).map(id_of).collect();
        let more = if found.len() > NAMED { ", …" } else { "" };
        let text =
            format!("{given:?} begins several ids: {}{more}; give more of it", ids.join(", "));
        return Err(Failure::usage(text));
    }
    found.pop().ok_or_else(nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(given: &str, all: &[&'static str]) -> Result<&'static str, String> {
        by_beginning(given, all.iter().copied(), |it| it, || Failure::failed("none"))
            .map_err(|why| why.text)
    }

    #[test]
    fn an_id_counts_before_a_beginning() {
        let all = ["abcd", "abce", "abc", "x", "bcde"];
        assert_eq!(find("abc", &all), Ok("abc"));
        assert_eq!(find("x", &all), Ok("x"));
        assert_eq!(find("bcd", &all), Ok("bcde"));
        assert_eq!(find("zzz", &all), Err("none".to_owned()));
        assert_eq!(find("bc", &all), Err("\"bc\" is too short: give 3 or more".to_owned()));
        let several = "\"abc\" begins several ids: abcd, abce; give more of it";
        assert_eq!(find("abc", &["abcd", "abce"]), Err(several.to_owned()));
    }
}
