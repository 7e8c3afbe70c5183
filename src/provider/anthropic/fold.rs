//! The events of an answer folded to the model's turn.

use serde_json::{Map, Value, json};

use super::Ask;
use crate::{
    model::{Status, ToolCall},
    provider::{
        ProviderError, Reply, Tokens,
        events::Event,
        fault::Refusal,
        rounds::{Ids, cut_text, input_of},
        wire::{self, Flow, broken_off, number, parsed, text},
    },
};

/// What has come of a turn.
#[derive(Debug, Default)]
pub struct Fold {
    blocks: Vec<Block>,
    /// Where the blocks of the stream in hand begin: a turn that was paused has several.
    base: usize,
    stop: Option<String>,
    is_whole: bool,
    /// Of the stream in hand.
    tokens: Tokens,
}

/// What a turn has come to.
#[derive(Debug)]
pub enum Turned {
    /// It is there.
    Reply(Reply),
    /// The server wants to be asked again.
    Paused,
}

/// One block: as it began, and what was added to it.
#[derive(Debug)]
struct Block {
    fields: Map<String, Value>,
    json: String,
}

impl Block {
    fn kind(&self) -> &str {
        self.fields.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    fn field(&self, key: &str) -> &str {
        self.fields.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn add(&mut self, delta: &Value) {
        match text(delta, "type") {
            "text_delta" => self.append("text", text(delta, "text")),
            "thinking_delta" => self.append("thinking", text(delta, "thinking")),
            "signature_delta" => self.append("signature", text(delta, "signature")),
            "input_json_delta" => self.json.push_str(text(delta, "partial_json")),
            "citations_delta" => self.cite(delta.get("citation")),
            // What a later version may add is no part of what is understood.
            _ => {}
        }
    }

    fn append(&mut self, key: &str, piece: &str) {
        if let Some(Value::String(whole)) = self.fields.get_mut(key) {
            whole.push_str(piece);
        } else {
            self.fields.insert(key.to_owned(), json!(piece));
        }
    }

    fn cite(&mut self, citation: Option<&Value>) {
        let Some(citation) = citation else { return };
        if let Some(Value::Array(list)) = self.fields.get_mut("citations") {
            list.push(citation.clone());
        } else {
            self.fields.insert("citations".to_owned(), json!([citation]));
        }
    }

    /// The input of a call: what was streamed, else what it began with.
    fn input(&self) -> Value {
        match self.fields.get("input") {
            Some(Value::Object(input)) if self.json.is_empty() => Value::Object(input.clone()),
            _ => input_of(&self.json),
        }
    }

    /// Whether the answer may have been cut off within this call.
    fn is_cut(&self) -> bool {
        !matches!(self.input(), Value::Object(input) if !input.is_empty())
    }

    /// The block as it would have come in one piece.
    fn whole(&self) -> Value {
        let mut fields = self.fields.clone();
        if fields.contains_key("input") {
            fields.insert("input".to_owned(), self.input());
        }
        Value::Object(fields)
    }
}

impl Fold {
    /// Makes ready for the next stream of the same turn.
    pub fn begin(&mut self) {
        self.base = self.blocks.len();
        self.stop = None;
        self.is_whole = false;
        self.tokens = Tokens::default();
    }

    /// What the stream in hand has taken, as far as the server has counted.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// What the model has said of its turn.
    pub fn so_far(&self) -> Vec<Value> {
        self.blocks.iter().filter(|block| !is_blank(block)).map(Block::whole).collect()
    }

    /// The turn, once its stream is whole.
    pub fn turned(&mut self, ask: &Ask, ids: &mut Ids<'_>) -> Result<Turned, ProviderError> {
        let status = match self.stop.as_deref() {
            Some("pause_turn") => return Ok(Turned::Paused),
            Some("model_context_window_exceeded") => return Err(ProviderError::TooLong),
            Some("max_tokens") => return Ok(Turned::Reply(self.cut(ask, ids))),
            Some("refusal") => {
                self.blocks.retain(|block| block.kind() != "tool_use");
                Status::Denied
            }
            // An end, a call, a word to stop at, or a reason that is not known yet: the calls say
            // whether it goes on.
            _ => Status::Ok,
        };
        let mut reply = self.reply(status, ask, ids);
        if status == Status::Denied {
            reply.text = refused_text(&reply.text);
        }
        Ok(Turned::Reply(reply))
    }

    /// A turn that reached the limit: it goes on where calls are whole.
    fn cut(&mut self, ask: &Ask, ids: &mut Ids<'_>) -> Reply {
        let dropped = self.blocks.pop_if(|last| last.kind() == "tool_use" && last.is_cut());
        let mut reply = self.reply(Status::Ok, ask, ids);
        if reply.calls.is_empty() {
            reply.status = Status::Failed;
        }
        let tool = dropped.as_ref().map(|call| call.field("name"));
        reply.text = cut_text(&reply.text, tool);
        reply
    }

    fn reply(&self, status: Status, ask: &Ask, ids: &mut Ids<'_>) -> Reply {
        let (mut words, mut calls, mut kept) = (String::new(), Vec::new(), Vec::new());
        for block in self.blocks.iter().filter(|block| !is_blank(block)) {
            match block.kind() {
                "text" => {
                    words.push_str(block.field("text"));
                    kept.push(block.whole());
                }
                "tool_use" => {
                    let id = ids.take(Some(block.field("id")));
                    kept.push(json!({ "type": "tool_use", "id": id }));
                    let tool = block.field("name").to_owned();
                    calls.push(ToolCall { id, tool, input: block.input() });
                }
                // Thinking that was cut off has no signature, and is not taken back without.
                "thinking" if block.field("signature").is_empty() => {}
                _ => kept.push(block.whole()),
            }
        }
        let is_plain = |block: &Block| matches!(block.kind(), "text" | "tool_use");
        let vendor = (!self.blocks.iter().all(is_plain))
            .then(|| json!({ "anthropic": { "model": ask.model, "content": kept } }));
        Reply {
            text: words,
            calls,
            status,
            decision: None,
            tokens: self.tokens,
            cost: None,
            vendor,
        }
    }

    fn count(&mut self, usage: &Value) {
        let tokens = &mut self.tokens;
        for (key, count) in [
            ("input_tokens", &mut tokens.input),
            ("output_tokens", &mut tokens.output),
            ("cache_read_input_tokens", &mut tokens.cache_read),
            ("cache_creation_input_tokens", &mut tokens.cache_write),
        ] {
            // Counts grow while an answer is written; the last one counts.
            *count = number(usage, key).max(*count);
        }
    }

    fn start(&mut self, data: &Value) -> Result<(), ProviderError> {
        if self.place(data) != self.blocks.len() {
            return Err(broken_off("blocks are out of order"));
        }
        let Some(Value::Object(fields)) = data.get("content_block") else {
            return Err(broken_off("a block without content"));
        };
        self.blocks.push(Block { fields: fields.clone(), json: String::new() });
        Ok(())
    }

    fn delta(&mut self, data: &Value) -> Result<(), ProviderError> {
        let place = self.place(data);
        let block = self.blocks.get_mut(place).ok_or_else(|| broken_off("a piece of no block"))?;
        block.add(data.get("delta").unwrap_or(&Value::Null));
        Ok(())
    }

    fn place(&self, data: &Value) -> usize {
        let index = usize::try_from(number(data, "index")).unwrap_or(usize::MAX);
        self.base.saturating_add(index)
    }

    fn stopped(&mut self, stop: &Value) {
        if let Some(reason) = stop.get("stop_reason").and_then(Value::as_str) {
            self.stop = Some(reason.to_owned());
        }
    }
}

impl wire::Fold for Fold {
    fn event(&mut self, event: &Event) -> Result<Flow, ProviderError> {
        let data = parsed(event)?;
        match text(&data, "type") {
            "message_start" => {
                self.count(data.pointer("/message/usage").unwrap_or(&Value::Null));
            }
            "content_block_start" => self.start(&data)?,
            "content_block_delta" => self.delta(&data)?,
            "message_delta" => {
                self.stopped(data.get("delta").unwrap_or(&Value::Null));
                self.count(data.get("usage").unwrap_or(&Value::Null));
            }
            "message_stop" => {
                self.is_whole = true;
                return Ok(Flow::Whole);
            }
            "error" => return Err(Refusal { body: &event.data, ..Refusal::default() }.error()),
            // `ping`, `content_block_stop`, and what a later version may add.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, document: Value) -> Result<(), ProviderError> {
        if text(&document, "type") == "error" {
            return Err(Refusal { body: &document.to_string(), ..Refusal::default() }.error());
        }
        let Some(Value::Array(blocks)) = document.get("content") else {
            return Err(broken_off("an answer without content"));
        };
        for block in blocks {
            let Value::Object(fields) = block else { continue };
            self.blocks.push(Block { fields: fields.clone(), json: String::new() });
        }
        self.stopped(&document);
        self.count(document.get("usage").unwrap_or(&Value::Null));
        self.is_whole = true;
        Ok(())
    }

    fn is_enough(&self) -> bool {
        self.is_whole
    }
}

/// Whether a block says nothing: it may not be handed back.
fn is_blank(block: &Block) -> bool {
    block.kind() == "text" && block.field("text").trim().is_empty()
}

/// What is told of a turn that the model did not want to end.
fn refused_text(words: &str) -> String {
    if words.trim().is_empty() {
        return "the model refused to answer".to_owned();
    }
    format!("{}\n[the model refused to go on]", words.trim_end())
}
