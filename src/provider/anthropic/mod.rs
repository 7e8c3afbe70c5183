//! Anthropic's Messages API, streamed.

mod body;
mod fold;

#[cfg(test)]
mod tests;

use super::{
    Course, Provider, ProviderError, Reads, Reply, Request, Settings, Thinking, rounds::Ids,
    wire::Wire,
};
use crate::base::Cancel;
use body::body_of;
use fold::{Fold, Turned};

const VERSION: &str = "2023-06-01";
/// The most tokens of an answer, where nothing is said about it.
const MAX_TOKENS: u32 = 16_384;
/// How often a turn that the server pauses is gone on with.
const MOST_PAUSES: usize = 10;

/// One model of Anthropic.
pub struct Anthropic {
    wire: Wire,
    ask: Ask,
    compact_at: u64,
}

/// What each request asks for.
#[derive(Debug, Clone)]
struct Ask {
    model: String,
    max_tokens: u32,
    temperature: Option<f64>,
    thinking: Thinking,
}

impl Anthropic {
    /// `model` at the other end of `wire`.
    pub fn new(wire: Wire, model: &str, settings: &Settings) -> Self {
        let ask = Ask {
            model: model.to_owned(),
            max_tokens: settings.max_tokens.unwrap_or(MAX_TOKENS),
            temperature: settings.temperature,
            thinking: settings.thinking,
        };
        Self { wire, ask, compact_at: settings.compact_at }
    }
}

impl Provider for Anthropic {
    fn model(&self) -> &str {
        &self.ask.model
    }

    fn reads(&self) -> Reads {
        Reads::Tokens(self.compact_at)
    }

    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError> {
        let key = self.wire.key.as_ref().map_or("", |key| key.expose());
        let headers = [("anthropic-version", VERSION), ("x-api-key", key)];
        let mut fold = Fold::default();
        for _ in 0..MOST_PAUSES {
            let body = body_of(&self.ask, request, &fold.so_far());
            fold.begin();
            let body = body.to_string().into_bytes();
            let asked = self.wire.ask(&headers, body, &mut fold, request.told, cancel);
            (request.told)(Course::Took(&self.ask.model, fold.tokens()));
            asked?;
            match fold.turned(&self.ask, &mut Ids::of(request.turns))? {
                Turned::Reply(reply) => return Ok(reply),
                Turned::Paused => {}
            }
        }
        Err(ProviderError::Final(format!("the model paused {MOST_PAUSES} times in one turn")))
    }
}
