//! One call to a vendor: let through, sent, and its streamed answer folded event by event.

use serde_json::Value;

use super::{
    Limiter, ProviderError, Secret, Told,
    events::{Event, Events},
    fault::{Refusal, retry_after},
    http::{Answer, Http},
};
use crate::base::{Cancel, Clock, text::headline};

/// How many bytes are read at once.
const PIECE: usize = 16 << 10;
/// How many bytes of a request are about one token.
const BYTES_A_TOKEN: u64 = 4;

/// The way to one vendor.
pub struct Wire {
    /// The address that calls go to.
    pub url: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// What makes the calls.
    pub http: Http,
    /// What lets them through.
    pub limiter: Limiter,
    /// Tells how far a date is.
    pub clock: Clock,
}

/// Whether more of an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It goes on.
    More,
    /// It is whole.
    Whole,
}

/// Puts an answer together.
pub trait Fold {
    /// Takes the next event.
    fn event(&mut self, event: &Event) -> Result<Flow, ProviderError>;

    /// Takes an answer that came in one piece instead of events.
    fn document(&mut self, document: Value) -> Result<(), ProviderError>;

    /// Whether what has come is an answer although the stream ended here.
    fn is_enough(&self) -> bool;
}

impl Wire {
    /// Sends `body` and folds the answer.
    pub fn ask(
        &self,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        fold: &mut impl Fold,
        told: &Told<'_>,
        cancel: &Cancel,
    ) -> Result<(), ProviderError> {
        let asked = self.ask_openly(headers, body, fold, told, cancel);
        asked.map_err(|error| error.with_words(|why| self.hide(why)))
    }

    fn ask_openly(
        &self,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        fold: &mut impl Fold,
        told: &Told<'_>,
        cancel: &Cancel,
    ) -> Result<(), ProviderError> {
        let _pass = self.limiter.enter(body.len() as u64 / BYTES_A_TOKEN, told, cancel)?;
        let mut answer = self.http.post(&self.url, headers, body, cancel)?;
        self.limiter.learn(|name| answer.header(name));
        if answer.status != 200 {
            return Err(self.refusal(&mut answer));
        }
        if answer.header("content-type").is_some_and(|it| it.starts_with("text/html")) {
            let why = "the model's server answered with a web page; check base_url";
            return Err(ProviderError::Final(why.to_owned()));
        }
        fold_answer(&mut answer, fold)?;
        answer.finish();
        Ok(())
    }

    fn refusal(&self, answer: &mut Answer) -> ProviderError {
        // Before it is cut: the beginning of a key would not be known as one.
        let body = self.hide(answer.error_text());
        let milliseconds = || {
            let millis = answer.header("retry-after-ms")?.trim().parse().ok()?;
            Some(std::time::Duration::from_millis(millis))
        };
        let after = milliseconds()
            .or_else(|| retry_after(answer.header("retry-after")?, self.clock.wall()));
        let names = ["request-id", "x-request-id"];
        let request = names.iter().find_map(|name| answer.header(name));
        if let Some(after) = after {
            self.limiter.hold(after);
        }
        let key = &self.mend_key();
        Refusal { status: answer.status, after, request, body: &body, key }.error()
    }

    /// What to do where the key is not taken.
    fn mend_key(&self) -> String {
        match self.key.as_ref().map(Secret::variable) {
            Some(Some(variable)) => format!("check the API key in {variable}"),
            Some(None) => "check the API key".to_owned(),
            None => {
                "no API key was sent: set one, and name its variable in `api_key_env`".to_owned()
            }
        }
    }

    /// `text` without the key.
    fn hide(&self, text: String) -> String {
        self.key.as_ref().map_or_else(|| text.clone(), |key| key.hide(&text))
    }
}

/// Reads until the answer is whole. What comes behind that is not waited for.
fn fold_answer(answer: &mut Answer, fold: &mut impl Fold) -> Result<(), ProviderError> {
    let (mut events, mut piece, mut document) = (Events::default(), vec![0; PIECE], Vec::new());
    let mut is_document = None;
    loop {
        let read = match answer.read(&mut piece) {
            Err(_) if fold.is_enough() => return Ok(()),
            read => read?,
        };
        let bytes = piece.get(..read).unwrap_or_default();
        if read == 0 {
            break;
        }
        // No event begins with a brace: this is an answer in one piece.
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        if is_document.is_none() {
            is_document = first.map(|byte| *byte == b'{');
        }
        if is_document == Some(true) {
            document.extend_from_slice(bytes);
            continue;
        }
        let taken = events.take(bytes).map_err(|why| ProviderError::Final(why.to_string()))?;
        for event in taken {
            if fold.event(&event)? == Flow::Whole {
                return Ok(());
            }
        }
    }
    if is_document == Some(true) {
        let value = serde_json::from_slice(&document);
        return fold.document(value.map_err(|why| broken_off(&why.to_string()))?);
    }
    if let Some(event) = events.finish()
        && fold.event(&event)? == Flow::Whole
    {
        return Ok(());
    }
    if fold.is_enough() { Ok(()) } else { Err(broken_off("it ended before its end")) }
}

/// An answer that is not whole.
pub fn broken_off(why: &str) -> ProviderError {
    ProviderError::passing(format!("the model's answer broke off: {}", headline(why, 200)))
}

/// The data of an event as JSON.
pub fn parsed(event: &Event) -> Result<Value, ProviderError> {
    serde_json::from_str(&event.data).map_err(|why| broken_off(&why.to_string()))
}

/// A whole number in a JSON object, such as `12` or `12.0`; 0 where it is missing.
pub fn number(value: &Value, key: &str) -> u64 {
    let whole =
        |number: f64| (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number);
    let found = value.get(key);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    let written_otherwise = || found?.as_f64().and_then(whole).map(|number| number as u64);
    found.and_then(Value::as_u64).or_else(written_otherwise).unwrap_or_default()
}

/// A text in a JSON object; empty where it is missing.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
