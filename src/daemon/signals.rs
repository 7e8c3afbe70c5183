//! SIGINT, SIGTERM and SIGHUP, told to the supervisor by a thread of their own.

use std::sync::Arc;

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    iterator::{Handle, Signals},
};

use crate::base::thread::Thread;

/// Watches the signals while it lives.
pub struct SignalWatch {
    handle: Handle,
    _thread: Thread<()>,
}

/// Calls `told` with each signal's number, on the thread `signals`.
pub fn watch_signals(told: impl Fn(i32) + Send + 'static) -> std::io::Result<SignalWatch> {
    // A file that may not grow is an error of the write, which is told and waited for.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let thread = Thread::start("signals", move || signals.forever().for_each(told))?;
    Ok(SignalWatch { handle, _thread: thread })
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.handle.close();
    }
}
