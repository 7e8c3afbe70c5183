//! What a server's refusal means: whether to wait, to shorten the conversation or to give up.

use std::time::Duration;

use jiff::fmt::rfc2822;
use serde_json::Value;

use super::ProviderError;
use crate::base::{Timestamp, text::headline};

/// The longest message of a vendor that is told on, in characters.
const LONGEST: usize = 500;

/// What a refusal came with.
#[derive(Debug, Default)]
pub struct Refusal<'a> {
    /// The HTTP status; 0 for an error inside a stream.
    pub status: u16,
    /// How long the server asks to wait.
    pub after: Option<Duration>,
    /// The id under which the vendor knows the request.
    pub request: Option<&'a str>,
    /// The body, or the data of the event.
    pub body: &'a str,
    /// What to do where the key is not taken.
    pub key: &'a str,
}

impl Refusal<'_> {
    /// What it means.
    pub fn error(&self) -> ProviderError {
        let told = Told::of(self.body);
        if self.status == 413 || told.is_too_long() {
            return ProviderError::TooLong;
        }
        let why = self.why(&told);
        // A gateway that has begun to stream puts the status into the event.
        let status = if self.status == 0 { told.code.parse().unwrap_or(0) } else { self.status };
        if !is_passing(status, &told) {
            return ProviderError::Final(why);
        }
        let is_overload = matches!(status, 503 | 529) || told.kind == "overloaded_error";
        ProviderError::Passing { why, after: self.after, is_overload }
    }

    fn why(&self, told: &Told) -> String {
        let mut why = match self.status {
            0 => "the model's server broke off".to_owned(),
            status => format!("the model's server answered {status}"),
        };
        let text =
            [told.message.as_str(), told.kind.as_str()].into_iter().find(|it| !it.is_empty());
        if let Some(text) = text {
            why = format!("{why}: {}", headline(text, LONGEST));
        }
        if let Some(mend) = self.mend() {
            why = format!("{why}; {mend}");
        }
        if let Some(after) = self.after {
            why = format!("{why}; it asks to wait {} s", after.as_secs_f64().ceil());
        }
        match self.request {
            Some(request) => format!("{why} (request {})", headline(request, 100)),
            None => why,
        }
    }

    fn mend(&self) -> Option<&str> {
        match self.status {
            300..=399 => Some("base_url has to name the place it leads to"),
            401 => Some(self.key),
            403 => Some("the key has no right to this model"),
            404 => Some("check the model's name and base_url"),
            _ => None,
        }
    }
}

/// Whether it may go better later.
fn is_passing(status: u16, told: &Told) -> bool {
    if told.kind == "insufficient_quota" || told.code == "insufficient_quota" {
        return false;
    }
    let hopeless = [
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "billing_error",
        "not_found_error",
    ];
    match status {
        408 | 409 | 425 | 429 => true,
        400..=499 | 501 | 505 => false,
        500.. => true,
        _ => status == 0 && !hopeless.contains(&told.kind.as_str()),
    }
}

/// What vendors say in the body of an error, in the several shapes that they have for it.
struct Told {
    kind: String,
    code: String,
    message: String,
}

impl Told {
    fn of(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            let is_page = body.trim_start().starts_with('<');
            let message = if is_page { String::new() } else { body.trim().to_owned() };
            return Self { kind: String::new(), code: String::new(), message };
        };
        let value = match value {
            // Some servers answer with a list of one.
            Value::Array(list) => list.into_iter().next().unwrap_or_default(),
            one => one,
        };
        let error = value.get("error").unwrap_or(&value);
        let part = |key: &str| match error.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other @ (Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
                other.to_string()
            }
            _ => String::new(),
        };
        let words = error.as_str().map(str::to_owned).into_iter();
        let mut words = words.chain(["message", "detail", "error"].map(part));
        let message = words.find(|text| !text.is_empty()).unwrap_or_default();
        Self { kind: part("type"), code: part("code"), message }
    }

    /// The words in which vendors and local servers say that the conversation is too long.
    fn is_too_long(&self) -> bool {
        let codes = ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
        let message = self.message.to_ascii_lowercase();
        let words = [
            "prompt is too long",
            "exceed context limit",
            "maximum context length",
            "exceeds the available context size",
            "context length exceeded",
            "exceeds the context window",
        ];
        codes.contains(&self.code.as_str())
            || codes.contains(&self.kind.as_str())
            || words.iter().any(|words| message.contains(words))
    }
}

/// How long to wait by a `Retry-After`: a number of seconds or an HTTP date.
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        // More than can be counted is very long.
        return Some(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
    }
    let at = rfc2822::parse(text).ok()?.timestamp().as_millisecond();
    Some(Duration::from_millis(u64::try_from(at - now.0).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect_file;

    use super::*;

    #[test]
    fn a_refusal_says_whether_to_wait() {
        let anthropic = |kind: &str, text: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{text}"}}}}"#)
        };
        let openai = |code: &str, text: &str| {
            format!(r#"{{"error":{{"message":"{text}","type":"e","param":null,"code":"{code}"}}}}"#)
        };
        let cases = [
            (400, anthropic("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "input length and `max_tokens` exceed context limit: 9",
                ),
            ),
            (400, anthropic("invalid_request_error", "messages: at least one is required")),
            (400, openai("context_length_exceeded", "too many")),
            (
                400,
                r#"{"error":{"code":400,"message":"m","type":"exceed_context_size_error"}}"#.into(),
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 8"}"#.into(),
            ),
            (401, anthropic("authentication_error", "invalid x-api-key")),
            (403, "<html>no</html>".into()),
            (404, r#"{"error":"model 'x' not found"}"#.into()),
            (408, String::new()),
            (409, String::new()),
            (413, "big".into()),
            (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#.into()),
            (429, anthropic("rate_limit_error", "slow down")),
            (429, openai("insufficient_quota", "You exceeded your current quota")),
            (500, r#"[{"error":{"code":500,"message":"internal"}}]"#.into()),
            (501, String::new()),
            (503, "loading the model".into()),
            (529, anthropic("overloaded_error", "Overloaded")),
            (0, anthropic("overloaded_error", "Overloaded")),
            (0, anthropic("api_error", "Internal")),
            (0, anthropic("invalid_request_error", "no")),
            (0, anthropic("invalid_request_error", "prompt is too long")),
            (302, String::new()),
        ];
        let mut table = String::new();
        for (status, body) in &cases {
            let key = "check the API key";
            let refusal = Refusal { status: *status, body, key, ..Refusal::default() };
            let _ = match refusal.error() {
                ProviderError::Passing { why, is_overload: false, .. } => {
                    writeln!(table, "wait      {why}")
                }
                ProviderError::Passing { why, .. } => writeln!(table, "overload  {why}"),
                ProviderError::TooLong => writeln!(table, "too long  {status} {body}"),
                ProviderError::Final(why) => writeln!(table, "give up   {why}"),
            };
        }
        expect_file!["../../tests/golden/refusals.txt"].assert_eq(&table);
    }

    #[test]
    fn a_refusal_names_the_wait_and_the_request() {
        let after = Some(Duration::from_millis(1500));
        let refusal = Refusal { status: 429, after, request: Some("req_1"), body: "x", key: "" };
        let why = refusal.error().to_string();
        let expected = "no answer for now: the model's server answered 429: x; it asks to wait 2 s \
                        (request req_1)";
        assert_eq!(why, expected);
    }

    #[test]
    fn a_wait_is_a_number_or_a_date() {
        let now = Timestamp(784_111_777_000);
        let wait = |text| retry_after(text, now).map(|it| it.as_millis());
        assert_eq!(wait("120"), Some(120_000));
        assert_eq!(wait(" 1.5 "), Some(1500));
        assert_eq!(wait("-3"), Some(0));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10_000));
        assert_eq!(wait("Sun, 06 Nov 1994 08:40:00 GMT"), Some(0));
        assert_eq!(wait("NaN"), Some(0));
        for odd in ["", "soon"] {
            assert_eq!(wait(odd), None, "{odd}");
        }
        for long in ["1e99", "inf", "99999999999999999999999"] {
            assert_eq!(wait(long), Some(Duration::MAX.as_millis()), "{long}");
        }
    }
}
