//! Chat completions of OpenAI and of the many servers that speak like it, streamed.

mod body;
mod fold;

#[cfg(test)]
mod tests;

use super::{
    Course, Provider, ProviderError, Reads, Reply, Request, Settings, rounds::Ids, wire::Wire,
};
use crate::base::Cancel;
use body::body_of;
use fold::Fold;

/// One model of a server.
pub struct OpenAi {
    wire: Wire,
    ask: Ask,
    compact_at: u64,
}

/// What each request asks for.
#[derive(Debug, Clone)]
struct Ask {
    model: String,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    /// OpenAI's own models know the limit by another name than everybody else's.
    is_openai: bool,
}

impl OpenAi {
    /// `model` at the other end of `wire`.
    pub fn new(wire: Wire, model: &str, settings: &Settings) -> Self {
        let ask = Ask {
            model: model.to_owned(),
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            is_openai: wire.url.starts_with("https://api.openai.com/"),
        };
        Self { wire, ask, compact_at: settings.compact_at }
    }
}

impl Provider for OpenAi {
    fn model(&self) -> &str {
        &self.ask.model
    }

    fn reads(&self) -> Reads {
        Reads::Tokens(self.compact_at)
    }

    fn complete(&self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, ProviderError> {
        let bearer = self.wire.key.as_ref().map(|key| format!("Bearer {}", key.expose()));
        let headers: Vec<_> = bearer.iter().map(|it| ("authorization", it.as_str())).collect();
        let body = body_of(&self.ask, request);
        let mut fold = Fold::default();
        let body = body.to_string().into_bytes();
        let asked = self.wire.ask(&headers, body, &mut fold, request.told, cancel);
        (request.told)(Course::Took(&self.ask.model, fold.tokens()));
        asked?;
        Ok(fold.reply(&mut Ids::of(request.turns)))
    }
}
