//! Which proxy leads to a server, as the environment says it.

use ureq::{Proxy, http::Uri};

/// The proxy for `target`: that of its scheme, or of all. What runs on this machine is reached
/// without one, and so is what NO_PROXY names.
pub fn proxy_for(
    target: &Uri,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, String> {
    let host = target.host().unwrap_or_default();
    let get = |name: &str| {
        let value = env(name).or_else(|| env(&name.to_ascii_lowercase()));
        value.filter(|value| !value.trim().is_empty())
    };
    if is_here(host) || get("NO_PROXY").is_some_and(|list| is_listed(host, &list)) {
        return Ok(None);
    }
    let own = if target.scheme_str() == Some("http") { "HTTP_PROXY" } else { "HTTPS_PROXY" };
    let found = [own, "ALL_PROXY"].into_iter().find_map(|name| Some((name, get(name)?)));
    let Some((name, url)) = found else { return Ok(None) };
    match Proxy::new(url.trim()) {
        Ok(proxy) => Ok(Some(proxy)),
        // The address may hold a password, so it is not repeated.
        Err(_) => Err(format!("{name} is no address of a proxy, such as http://proxy:3128")),
    }
}

/// Whether `host` is this machine.
fn is_here(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a NO_PROXY list names `host` or a domain it is in.
fn is_listed(host: &str, list: &str) -> bool {
    let host = host.to_ascii_lowercase();
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| {
        let domain = entry.trim_start_matches('*').trim_start_matches('.');
        entry == "*"
            || (!domain.is_empty()
                && (host == domain
                    || host.strip_suffix(domain).is_some_and(|head| head.ends_with('.'))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(target: &str, env: &[(&str, &str)]) -> String {
        let uri: Uri = target.parse().unwrap();
        let get = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        match proxy_for(&uri, get) {
            Ok(proxy) => proxy.map_or("none".to_owned(), |it| it.host().to_owned()),
            Err(why) => why,
        }
    }

    #[test]
    fn the_scheme_and_the_list_decide() {
        let env = [("HTTPS_PROXY", "http://secure:1"), ("http_proxy", "http://plain:2")];
        assert_eq!(chosen("https://api.anthropic.com", &env), "secure");
        assert_eq!(chosen("http://box.lan:8080", &env), "plain");
        assert_eq!(chosen("http://localhost:11434", &env), "none");
        assert_eq!(chosen("http://127.0.0.1:1", &env), "none");
        assert_eq!(chosen("http://[::1]:1", &env), "none");
        assert_eq!(chosen("https://x.org", &[("ALL_PROXY", "http://any:3")]), "any");
        assert_eq!(chosen("https://x.org", &[]), "none");
        let listed = |list| {
            chosen("https://api.x.org", &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", list)])
        };
        for list in ["*", "x.org", ".x.org", "*.x.org", "a, API.x.org"] {
            assert_eq!(listed(list), "none", "{list}");
        }
        for list in ["", "y.org", "pi.x.org", ".", "x.or"] {
            assert_eq!(listed(list), "p", "{list}");
        }
        let wrong = chosen("https://x.org", &[("HTTPS_PROXY", "ht!tp://me:word@")]);
        assert!(wrong.starts_with("HTTPS_PROXY is no address") && !wrong.contains("word"));
    }
}
