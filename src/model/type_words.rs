//! How lists of names, and paths, are written in definitions of types.

/// Whether a name stands for all tools.
pub fn is_all(name: &str) -> bool {
    name == "*" || name == "all"
}

/// The parts of a text between commas that stand in no brackets.
pub fn apart(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if letter == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    let trimmed = parts.iter().map(|part| part.trim().trim_matches(['[', ']', '"', '\'']).trim());
    trimmed.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A path as rules have it: the top of a subtree.
pub fn subtree(text: &str) -> Result<String, String> {
    let path = text.trim().trim_end_matches("/**").trim_end_matches("/*").trim_end_matches('/');
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_empty() && text.trim().starts_with('/') {
        return Ok("/".to_owned());
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("{text:?} has `..` in it: name the folder itself"));
    }
    if path.contains(['*', '?', '[']) {
        return Err(format!(
            "{text:?} is a pattern: a path rule names a folder and covers all below it"
        ));
    }
    Ok(if path == "." || path == "**" { String::new() } else { path.to_owned() })
}
