//! Named places between two durable writes at which a test can make the process die.

/// Aborts the process here when the environment names this place in `POSTROOM_CRASH_AT` (debug
/// builds only). `NAME:N` dies at its N-th passage; with `POSTROOM_CRASH_ONCE=FILE` only while FILE
/// does not exist, and makes it.
pub fn point(name: &'static str) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::{
        env,
        fs::OpenOptions,
        process,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering},
        },
    };

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    /// Dies at the wanted passage of the wanted place.
    pub fn pass(name: &str) {
        let wanted = WANTED.get_or_init(|| {
            let text = env::var("POSTROOM_CRASH_AT").ok()?;
            let (place, count) = text.split_once(':').unwrap_or((&text, "1"));
            Some((place.to_owned(), count.parse().unwrap_or(1)))
        });
        let Some((place, count)) = wanted else { return };
        if place != name || PASSED.fetch_add(1, Ordering::SeqCst) + 1 != *count {
            return;
        }
        let first = env::var_os("POSTROOM_CRASH_ONCE")
            .is_none_or(|file| OpenOptions::new().write(true).create_new(true).open(file).is_ok());
        if first {
            process::abort();
        }
    }
}
