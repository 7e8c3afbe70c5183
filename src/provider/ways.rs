//! The ways to the servers that think for a team. Whoever takes the same one shares its connections, and
//! whoever asks the same model at its end shares its limits, as vendors count them by model.

use std::collections::{BTreeMap, btree_map::Entry};

use parking_lot::Mutex;
use ureq::http::Uri;

use super::{
    Limiter, Secret,
    http::{Bounds, Http},
    proxy::proxy_for,
    wire::Wire,
};
use crate::base::Clock;

/// How many calls of one model may be under way at a time.
const MOST_IN_FLIGHT: usize = 32;

/// The ways that are known.
pub struct Ways {
    clock: Clock,
    known: Mutex<BTreeMap<Place, Way>>,
}

/// An address, and the key that is shown there.
type Place = (String, Option<String>);

struct Way {
    http: Http,
    limiters: BTreeMap<String, Limiter>,
}

impl Ways {
    /// None yet.
    pub fn new(clock: Clock) -> Self {
        Self { clock, known: Mutex::default() }
    }

    /// What tells the time on all of them.
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The way to `model` at `url`, which names a server that can be called.
    pub(super) fn to(&self, url: &str, key: Option<&Secret>, model: &str) -> Result<Wire, String> {
        let target = address(url)?;
        let key = key.filter(|key| !key.expose().is_empty()).cloned();
        if key.as_ref().is_some_and(|key| !key.expose().bytes().all(|it| it.is_ascii_graphic())) {
            return Err("the API key holds characters that no key has".to_owned());
        }
        let place = (url.to_owned(), key.as_ref().map(|key| key.expose().to_owned()));
        let mut known = self.known.lock();
        let way = match known.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let proxy = proxy_for(&target, |name| std::env::var(name).ok())?;
                let http = Http::new(self.clock.clone(), Bounds::default(), proxy);
                unknown.insert(Way { http, limiters: BTreeMap::new() })
            }
        };
        let limiter = way.limiters.entry(model.to_owned());
        let limiter =
            limiter.or_insert_with(|| Limiter::new(self.clock.clone(), MOST_IN_FLIGHT)).clone();
        let (http, clock) = (way.http.clone(), self.clock.clone());
        Ok(Wire { url: url.to_owned(), key, http, limiter, clock })
    }
}

fn address(url: &str) -> Result<Uri, String> {
    let wrong = || "base_url is no address such as http://localhost:11434/v1".to_owned();
    let target: Uri = url.parse().map_err(|_| wrong())?;
    if !matches!(target.scheme_str(), Some("http" | "https")) || target.host().is_none() {
        return Err(wrong());
    }
    if target.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err("base_url holds a name or password: give the key apart from it".to_owned());
    }
    Ok(target)
}
