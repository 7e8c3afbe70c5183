//! Who waits for whom: an `ask` that would close a ring is refused, so nobody waits for ever.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::AgentName;

/// The waits of all teammates of this process.
#[derive(Clone, Default)]
pub struct Asks(Arc<Mutex<Vec<(AgentName, AgentName)>>>);

/// A wait; it ends when dropped.
pub struct Ask {
    asks: Asks,
    asker: AgentName,
    asked: AgentName,
}

impl Asks {
    /// `asker` waits for `asked` while the value lives; or the names of the ring it would close.
    pub fn begin(&self, asker: &AgentName, asked: &AgentName) -> Result<Ask, Vec<AgentName>> {
        let mut waits = self.0.lock();
        if let Some(ring) = ring(&waits, asker, vec![asked.clone()]) {
            return Err(ring);
        }
        waits.push((asker.clone(), asked.clone()));
        Ok(Ask { asks: self.clone(), asker: asker.clone(), asked: asked.clone() })
    }
}

/// The way from the last of `way` to `asker` along who waits for whom. What runs in the background
/// waits in its teammate's name, too, so one name may wait for several.
fn ring(
    waits: &[(AgentName, AgentName)],
    asker: &AgentName,
    way: Vec<AgentName>,
) -> Option<Vec<AgentName>> {
    let last = way.last()?;
    if last == asker {
        return Some(way);
    }
    let next = waits.iter().filter(|(from, to)| from == last && !way.contains(to));
    next.map(|(_, to)| [way.as_slice(), std::slice::from_ref(to)].concat())
        .find_map(|way| ring(waits, asker, way))
}

impl Drop for Ask {
    fn drop(&mut self) {
        let mut waits = self.asks.0.lock();
        let own = waits.iter().position(|(from, to)| *from == self.asker && *to == self.asked);
        if let Some(own) = own {
            waits.swap_remove(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_refused_and_a_chain_is_not() {
        let name = |text| AgentName::new(text).unwrap();
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let asks = Asks::default();
        let first = asks.begin(&a, &b).ok().unwrap();
        let second = asks.begin(&b, &c).ok().unwrap();
        assert_eq!(asks.begin(&c, &a).err().unwrap(), [a.clone(), b.clone(), c.clone()]);
        drop(first);
        assert!(asks.begin(&c, &a).is_ok());
        let beside = asks.begin(&b, &a).ok().unwrap();
        assert!(asks.begin(&c, &b).is_err());
        drop(second);
        assert!(asks.begin(&c, &b).is_ok());
        drop(beside);
    }
}
