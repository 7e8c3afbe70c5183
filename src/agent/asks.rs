//! Who waits for whom: an `ask` that would close a ring is refused, so nobody waits for ever.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::model::AgentName;

/// The waits of all teammates of this process.
#[derive(Clone, Default)]
pub struct Asks(Arc<Mutex<BTreeMap<AgentName, AgentName>>>);

/// A wait; it ends when dropped.
pub struct Ask {
    asks: Asks,
    asker: AgentName,
}

impl Asks {
    /// `asker` waits for `asked` while the value lives; or the names of the ring it would close.
    pub fn begin(&self, asker: &AgentName, asked: &AgentName) -> Result<Ask, Vec<AgentName>> {
        let mut waits = self.0.lock();
        let mut ring = vec![asked.clone()];
        while let Some(next) = ring.last().and_then(|last| waits.get(last)) {
            ring.push(next.clone());
            if next == asker {
                return Err(ring);
            }
        }
        waits.insert(asker.clone(), asked.clone());
        Ok(Ask { asks: self.clone(), asker: asker.clone() })
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        self.asks.0.lock().remove(&self.asker);
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
        drop(second);
    }
}
