//! Named threads that are joined. Nothing else in this program starts one.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    thread::{Builder, JoinHandle, scope},
};

use super::broken;

/// A running thread; joined when dropped.
pub struct Thread<T>(Option<JoinHandle<T>>);

impl<T: Send + 'static> Thread<T> {
    /// Starts `body` on a thread called `name`.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn start(name: &str, body: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Self> {
        Builder::new().name(name.to_owned()).spawn(body).map(|handle| Self(Some(handle)))
    }

    /// Waits for its end; a panic comes back as its text.
    pub fn join(mut self) -> Result<T, String> {
        let handle = self.0.take().unwrap_or_else(|| broken("a thread is joined once"));
        handle.join().map_err(|payload| panic_text(&*payload))
    }

    /// Lets the thread go on alone: for one that can't be waited for when the process has to end.
    pub fn leave(mut self) {
        drop(self.0.take());
    }
}

impl<T> Drop for Thread<T> {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            drop(handle.join());
        }
    }
}

/// Runs `body` and gives back its value, or the text of its panic.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| panic_text(&*payload))
}

/// Runs `aside`, which must not panic, on a thread called `name` while `here` runs on this one, and
/// joins it.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn beside<T>(name: &str, aside: impl FnOnce() + Send, here: impl FnOnce() -> T) -> T {
    scope(|threads| {
        if let Err(why) = Builder::new().name(name.to_owned()).spawn_scoped(threads, aside) {
            panic!("no thread for {name}: {why}");
        }
        here()
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    text.or(owned).unwrap_or("a panic without a text").to_owned()
}
