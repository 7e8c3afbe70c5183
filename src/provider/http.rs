//! One POST and its streamed answer: a limit for each step, none for the whole, an end at any time
//! from outside, and no more bytes than anybody could want.

use std::{
    io::{self, ErrorKind, Read},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use ureq::{
    Agent, Body, BodyReader, Error, Proxy, Timeout,
    http::{HeaderMap, Request, Response},
};

use super::{
    ProviderError,
    lanes::{Lanes, Lease},
};
use crate::base::{
    Cancel, Clock, Wake,
    text::headline,
    thread::{Thread, caught},
};

/// The most bytes of the body of an error.
const MOST_ERROR: u64 = 64 << 10;
/// The most bytes that are read behind a whole answer until its end.
const MOST_REST: u64 = 64 << 10;
/// How long a connection may be idle and be used again. It is short: behind some gateways a longer
/// one is dead and nobody says so.
const MOST_IDLE: Duration = Duration::from_secs(15);
/// What is told where nobody has the name of the server.
const NOT_FOUND: &str = "the model's server was not found; check base_url and the network";
/// What is told of a call that was ended from outside.
const ENDED: &str = "the call was ended";

/// How long each step may take, and how much may come.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Finding the server's address.
    pub resolve: Duration,
    /// Connecting, with the proxy and TLS.
    pub connect: Duration,
    /// Sending the request.
    pub send: Duration,
    /// From there to the first byte of the answer.
    pub first_byte: Duration,
    /// From one byte to the next. It bounds the wait for the first byte, too.
    pub between_bytes: Duration,
    /// The most bytes of one answer, unpacked.
    pub most_body: u64,
}

impl Default for Bounds {
    /// A model on this machine may read for minutes before it says its first word.
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(10),
            connect: Duration::from_secs(15),
            send: Duration::from_mins(2),
            first_byte: Duration::from_mins(5),
            between_bytes: Duration::from_mins(5),
            most_body: 64 << 20,
        }
    }
}

/// Makes calls, each alone on its connection; one that has served a whole call serves the next.
#[derive(Clone)]
pub struct Http {
    clock: Clock,
    bounds: Bounds,
    proxy: Option<Proxy>,
    lanes: Lanes,
}

/// An answer whose body is still to come.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    headers: HeaderMap,
    body: BodyReader<'static>,
    taken: u64,
    most: u64,
    is_over: bool,
    lease: Lease,
}

impl Http {
    /// For calls through `proxy`.
    pub fn new(clock: Clock, bounds: Bounds, proxy: Option<Proxy>) -> Self {
        Self { clock, bounds, proxy, lanes: Lanes::default() }
    }

    /// How many connections are kept for the next calls.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.lanes.kept()
    }

    /// Sends `body` and gives the answer once its head is there. When `cancel` fires the call and
    /// the reading of the answer end at once.
    ///
    /// The head is waited for on another thread: looking up a name and connecting can't be ended,
    /// so that thread is left behind and ends by itself.
    pub fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        cancel: &Cancel,
    ) -> Result<Answer, ProviderError> {
        let request = request(url, headers, body)?;
        let (lease, wake) = (self.lanes.lend(|| self.agent()), Wake::default());
        let Some(agent) = lease.agent() else { return Err(ProviderError::passing(ENDED)) };
        {
            let (ender, wake) = (lease.ender(), wake.clone());
            cancel.arm(move || {
                ender.end();
                wake.notify();
            });
        }
        let slot = Arc::new(Mutex::new(None));
        let (answer, ready) = (Arc::clone(&slot), wake.clone());
        let thread = Thread::start("http", move || {
            let got = caught(|| agent.run(request));
            *answer.lock() = Some(got);
            ready.notify();
        });
        let thread = thread.map_err(|why| ProviderError::passing(format!("no thread: {why}")))?;
        loop {
            let seen = wake.seen();
            if cancel.fired() {
                lease.ender().end();
                thread.leave();
                return Err(ProviderError::passing(ENDED));
            }
            let got = slot.lock().take();
            match got {
                Some(Ok(Ok(response))) => {
                    return Ok(Answer::of(response, self.bounds.most_body, lease));
                }
                Some(Ok(Err(why))) => return Err(located(trouble(&why), url)),
                Some(Err(panic)) => return Err(ProviderError::Final(format!("HTTP: {panic}"))),
                None => wake.wait(&self.clock, seen, None),
            }
        }
    }

    fn agent(&self) -> Agent {
        let Bounds { resolve, connect, send, first_byte, between_bytes, most_body: _ } =
            self.bounds;
        Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(self.proxy.clone())
            .max_idle_age(MOST_IDLE)
            .user_agent(concat!("postroom/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(resolve))
            .timeout_connect(Some(connect))
            .timeout_send_request(Some(send))
            .timeout_send_body(Some(send))
            .timeout_recv_response(Some(first_byte))
            .timeout_per_read(Some(between_bytes))
            .timeout_per_write(Some(between_bytes))
            .build()
            .new_agent()
    }
}

impl Answer {
    fn of(response: Response<Body>, most: u64, lease: Lease) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.into_with_config().limit(u64::MAX).reader();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Self { status, headers, body, taken: 0, most, is_over: false, lease }
    }

    /// A header, where it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The next bytes of the body; 0 at its end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, ProviderError> {
        let count = self.body.read(into).map_err(|why| trouble(&Error::from(why)))?;
        self.is_over = count == 0 && !into.is_empty();
        self.taken += count as u64;
        if self.taken > self.most {
            let why = format!("the model's answer is longer than {} bytes", self.most);
            return Err(ProviderError::Final(why));
        }
        Ok(count)
    }

    /// Takes no more of it: what was wanted has come. Its end is waited for aside, so that the
    /// connection can serve the next call.
    pub fn finish(self) {
        if self.is_over {
            return;
        }
        let Self { body, lease, .. } = self;
        lease.is_ending();
        let drained = Thread::start("http-end", move || {
            // What fails here has no other effect than that the connection is closed.
            let _ = io::copy(&mut body.take(MOST_REST), &mut io::sink());
            drop(lease);
        });
        if let Ok(thread) = drained {
            thread.leave();
        }
    }

    /// As much of the body as tells what went wrong.
    pub fn error_text(&mut self) -> String {
        let mut bytes = Vec::new();
        // What came before a broken connection is better than nothing.
        let _ = self.body.by_ref().take(MOST_ERROR).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn request(
    url: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, ProviderError> {
    let mut request = Request::post(url).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // The fault is not repeated: it may lie in a key.
    let why = "base_url or the API key holds characters that can't be sent";
    request.body(body).map_err(|_| ProviderError::Final(why.to_owned()))
}

/// The same, with the server that was meant: whoever reads it may have set another than they think.
fn located(error: ProviderError, url: &str) -> ProviderError {
    let server = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    match server {
        Some(server) if matches!(error, ProviderError::Passing { .. }) => {
            error.with_words(|why| format!("{why} ({server})"))
        }
        _ => error,
    }
}

/// What failed on the way to the server: most of it may go better later.
fn trouble(why: &Error) -> ProviderError {
    let text = match why {
        Error::Timeout(step) => format!("the model's server took too long to {}", doing(*step)),
        Error::Io(why) if why.kind() == ErrorKind::ConnectionRefused => {
            "nothing listens where base_url leads: the model's server does not run".to_owned()
        }
        Error::HostNotFound => NOT_FOUND.to_owned(),
        // What the system says of a name that it can't look up has no kind of its own.
        Error::Io(why) if why.to_string().contains("lookup address") => NOT_FOUND.to_owned(),
        Error::BadUri(_) => return ProviderError::Final("base_url is no http address".to_owned()),
        Error::Http(_) | Error::InvalidProxyUrl | Error::TlsRequired | Error::Tls(_) => {
            return ProviderError::Final(format!("the model's server: {why}"));
        }
        Error::Rustls(_) => {
            let text = "the model's server has no certificate that can be trusted";
            return ProviderError::Final(format!("{text}: {why}"));
        }
        other => format!("the model's server: {}", headline(&other.to_string(), 200)),
    };
    ProviderError::passing(text)
}

/// What took too long.
fn doing(step: Timeout) -> &'static str {
    match step {
        Timeout::Resolve => "be found",
        Timeout::Connect => "connect",
        Timeout::SendRequest | Timeout::SendBody | Timeout::PerWrite => "take the request",
        Timeout::RecvResponse => "begin its answer",
        _ => "go on with its answer",
    }
}
