//! The wish to end, handed down from the team to its teammates and their runs.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Moment, Wake};

/// How fast to end, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// After the work that lies there.
    Drain,
    /// After the tool in hand, if it ends by this moment.
    Grace(Moment),
    /// At once.
    Now,
}

/// The wish to end. It is only ever raised; raising it notifies every wake below.
#[derive(Clone)]
pub struct Stop(Arc<Node>);

struct Node {
    wake: Option<Wake>,
    /// Held so that a wish reaches what is below although nobody holds the middle any more.
    _above: Option<Stop>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    haste: Option<Haste>,
    below: Vec<Weak<Node>>,
}

impl Stop {
    /// The topmost stop, which wakes nobody itself.
    pub fn root() -> Self {
        Self(Arc::new(Node { wake: None, _above: None, state: Mutex::default() }))
    }

    /// A stop below this one: raised with it, and raised alone without it.
    #[must_use]
    pub fn child(&self, wake: &Wake) -> Self {
        let mut state = self.0.state.lock();
        state.below.retain(|node| node.strong_count() > 0);
        let inherited = State { haste: state.haste, below: Vec::new() };
        let node = Arc::new(Node {
            wake: Some(wake.clone()),
            _above: Some(self.clone()),
            state: Mutex::new(inherited),
        });
        state.below.push(Arc::downgrade(&node));
        Self(node)
    }

    /// Raises the wish here and below; a milder wish than the present one changes nothing.
    pub fn request(&self, haste: Haste) {
        let below: Vec<_> = {
            let mut state = self.0.state.lock();
            state.haste = state.haste.max(Some(haste));
            state.below.iter().filter_map(Weak::upgrade).map(Stop).collect()
        };
        if let Some(wake) = &self.0.wake {
            wake.notify();
        }
        for stop in below {
            stop.request(haste);
        }
    }

    /// The strictest wish so far.
    pub fn requested(&self) -> Option<Haste> {
        self.0.state.lock().haste
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_goes_down_and_never_up() {
        let (wake, root) = (Wake::default(), Stop::root());
        let (left, right) = (root.child(&wake), root.child(&wake));
        left.request(Haste::Now);
        assert_eq!((left.requested(), right.requested()), (Some(Haste::Now), None));
        root.request(Haste::Drain);
        assert_eq!((left.requested(), right.requested()), (Some(Haste::Now), Some(Haste::Drain)));
        assert_eq!(root.child(&wake).requested(), Some(Haste::Drain));
    }

    #[test]
    fn a_stop_reaches_what_is_below_a_middle_that_is_gone() {
        let (wake, root) = (Wake::default(), Stop::root());
        let lowest = root.child(&wake).child(&wake);
        root.request(Haste::Now);
        assert_eq!(lowest.requested(), Some(Haste::Now));
    }
}
