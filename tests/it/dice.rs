//! Random moments, from a seed that is printed and can be given again as `POSTROOM_SEED`.

use std::{env, time::Duration};

use postroom::base::{Clock, Scope};

/// Random numbers from a seed.
pub struct Dice(u64);

impl Dice {
    /// From the environment's seed, or one of this process.
    pub fn seeded() -> Self {
        let given = env::var("POSTROOM_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) + 1);
        eprintln!("POSTROOM_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Lets time pass: the moment of a death is what is random here.
pub fn pass(span: Duration) {
    let scope = Scope::plain(Clock::real());
    let until = scope.clock.now().after(span);
    let _ = scope.wait::<()>(Some(until), || None);
}
