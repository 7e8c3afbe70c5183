//! How servers fail, how often they are asked, and how a call ends.

use std::{net::TcpListener, time::Duration};

use expect_test::expect;

use super::{
    Limiter, ProviderConfig, Secret, Settings, Ways,
    bench::{
        KEY, anthropic, ask, ask_until, by_anthropic, by_openai, fake, once, openai,
        short_anthropic, short_openai, shown, took,
    },
    http::{Bounds, Http},
    open, open_on,
    openai::OpenAi,
    test_server::{Play, TestServer},
    wire::Wire,
};
use crate::base::{Cancel, Clock, thread::Thread};

/// How a call with the usual patience ends, how often the server was asked and how long it took on
/// the clock.
fn tried(script: Vec<Play>, settings: Settings) -> (String, usize, Duration) {
    let (server, clock) = (TestServer::start(script), fake());
    let begun = clock.now();
    let ended = shown(ask(&*anthropic(&server, settings, &clock)));
    let span = clock.now().since(begun);
    (ended, server.seen().len(), span)
}

fn usual() -> Settings {
    Settings::of("model-1")
}

const OVERLOADED: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
const HELLO: &str = r#"Ok "hello" [7, 2, 0, 0]"#;

fn hello() -> Play {
    Play::stream(short_anthropic())
}

#[test]
fn a_server_that_asks_to_wait_is_asked_again_after_that() {
    let wait = |seconds: &str| {
        let headers = vec![("retry-after", seconds.to_owned())];
        Play::Answer(429, headers, b"slow down".to_vec())
    };
    let (ended, asked, span) = tried(vec![wait("30"), hello()], usual());
    assert_eq!((ended.as_str(), asked), (HELLO, 2));
    assert!(Duration::from_secs(30) <= span && span <= Duration::from_secs(32), "{span:?}");
    let (ended, asked, _) = tried(vec![wait("3600")], usual());
    expect![
        "no answer for now: the model's server answered 429: slow down; it asks to wait 3600 s"
    ]
    .assert_eq(&ended);
    assert_eq!(asked, 1);
}

#[test]
fn an_overloaded_server_is_asked_as_often_as_the_budget_says() {
    let overloaded = |count| vec![Play::refusal(529, OVERLOADED); count];
    let five = [overloaded(5), vec![hello()]].concat();
    let (ended, asked, _) = tried(five, usual());
    assert_eq!((ended.as_str(), asked), (HELLO, 6));
    let (ended, asked, _) = tried(overloaded(6), usual());
    expect!["no answer for now: the model's server answered 529: busy; tried 6 times"]
        .assert_eq(&ended);
    assert_eq!(asked, 6);
}

#[test]
fn after_three_overloads_the_fallback_is_asked() {
    let script = [vec![Play::refusal(529, OVERLOADED); 3], vec![hello()]].concat();
    let server = TestServer::start(script);
    let settings = Settings { fallback: Some("model-2".to_owned()), ..usual() };
    assert_eq!(shown(ask(&*anthropic(&server, settings, &fake()))), HELLO);
    let models = server.seen().into_iter().map(|seen| seen.json()["model"].take());
    assert_eq!(models.collect::<Vec<_>>(), ["model-1", "model-1", "model-1", "model-2"]);
}

#[test]
fn a_stream_that_breaks_off_is_asked_for_again() {
    let whole = short_anthropic();
    let part = whole[..whole.len() / 2].to_vec();
    for play in [Play::Broken(part.clone()), Play::HalfClosed(part.clone()), Play::stream(part)] {
        let (ended, asked, _) = tried(vec![play, hello()], usual());
        assert_eq!((ended.as_str(), asked), (HELLO, 2));
    }
    let without_stop = whole[..whole.len() - 1 - "event: message_stop\n".len() - 30].to_vec();
    let (ended, asked, _) = tried(vec![Play::stream(without_stop), hello()], usual());
    assert_eq!((ended.as_str(), asked), (HELLO, 2));
}

#[test]
fn what_will_not_go_better_is_asked_once() {
    let too_long = r#"{"type":"error","error":{"type":"invalid_request_error",
        "message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    let (ended, asked, _) = tried(vec![Play::refusal(400, too_long)], usual());
    assert_eq!((&*ended, asked), ("the conversation is too long for the model", 1));
    for status in [400, 401, 403, 404, 422] {
        assert_eq!(tried(vec![Play::refusal(status, "no")], usual()).1, 1, "{status}");
    }
    for status in [408, 409, 429, 500, 502, 503, 529] {
        let (ended, asked, _) = tried(vec![Play::refusal(status, "no"), hello()], usual());
        assert_eq!((ended.as_str(), asked), (HELLO, 2), "{status}");
    }
}

#[test]
fn a_server_that_is_not_there_is_asked_again() {
    // No system gives this port to anybody who asks for any port.
    let base_url = Some("http://127.0.0.1:1".to_owned());
    let config = ProviderConfig::Anthropic { base_url, key: Secret::new(KEY), settings: usual() };
    let clock = fake();
    let ended = shown(ask(&*open(&config, &clock).unwrap()));
    expect!["no answer for now: nothing listens where base_url leads: the model's server does not run (127.0.0.1:1); tried 6 times"]
        .assert_eq(&ended);
}

#[test]
fn one_callers_refusal_holds_back_the_others() {
    let headers = vec![("retry-after", "50".to_owned())];
    let refusal = Play::Answer(429, headers, b"slow down".to_vec());
    let (server, clock) = (TestServer::start([refusal, hello()]), fake());
    let provider = anthropic(&server, once(), &clock);
    let begun = clock.now();
    assert!(ask(&*provider).is_err());
    assert_eq!(clock.now().since(begun), Duration::ZERO);
    assert_eq!(shown(ask(&*provider)), HELLO);
    assert_eq!(clock.now().since(begun), Duration::from_secs(50));
}

#[test]
fn whoever_asks_the_same_model_shares_its_limits_and_whoever_asks_another_does_not() {
    let headers = vec![("retry-after", "50".to_owned())];
    let refusal = Play::Answer(429, headers, b"slow down".to_vec());
    let (server, clock) = (TestServer::start([refusal, hello(), hello()]), fake());
    let ways = Ways::new(clock.clone());
    let provider = |model: &str, temperature: f64| {
        let temperature = Some(temperature);
        let settings = Settings { temperature, patience: once().patience, ..Settings::of(model) };
        let (base_url, key) = (Some(server.url()), Secret::new(KEY));
        open_on(&ProviderConfig::Anthropic { base_url, key, settings }, &ways).unwrap()
    };
    let [first, other, same] = [("a", 0.5), ("b", 0.5), ("a", 0.3)].map(|it| provider(it.0, it.1));
    let begun = clock.now();
    assert!(ask(&*first).is_err());
    for (provider, seconds) in [(other, 0), (same, 50)] {
        assert_eq!(shown(ask(&*provider)), HELLO);
        assert_eq!(clock.now().since(begun), Duration::from_secs(seconds));
    }
}

#[test]
fn headers_of_an_answer_hold_back_the_next_call() {
    let headers = vec![
        ("x-ratelimit-remaining-requests", "0".to_owned()),
        ("x-ratelimit-reset-requests", "20s".to_owned()),
    ];
    let (server, clock) = (
        TestServer::start([
            Play::Answer(200, headers, short_openai()),
            Play::stream(short_openai()),
        ]),
        fake(),
    );
    let provider = openai(&server, once(), &clock);
    let begun = clock.now();
    for seconds in [0, 20] {
        assert_eq!(shown(ask(&*provider)), HELLO);
        assert_eq!(clock.now().since(begun), Duration::from_secs(seconds));
    }
}

/// How long it takes until a call ends, once it is ended from outside while the server does `play`.
fn ends_after(play: Play) -> Duration {
    let (server, clock, cancel) = (TestServer::start([play]), Clock::real(), Cancel::default());
    let provider = anthropic(&server, usual(), &clock);
    let asked = {
        let cancel = cancel.clone();
        Thread::start("asks", move || ask_until(&*provider, &cancel).is_err()).unwrap()
    };
    while server.seen().is_empty() {
        std::thread::yield_now();
    }
    let fired = clock.now();
    cancel.fire();
    assert!(asked.join().unwrap());
    assert_eq!(server.seen().len(), 1);
    clock.now().since(fired)
}

#[test]
fn a_call_that_stalls_ends_at_once() {
    let part = short_anthropic()[..80].to_vec();
    for play in [Play::Silent, Play::Stalled(Vec::new()), Play::Stalled(part)] {
        let span = ends_after(play);
        assert!(span < Duration::from_secs(1), "{span:?}");
    }
    let headers = vec![("retry-after", "60".to_owned())];
    let span = ends_after(Play::Answer(429, headers, Vec::new()));
    assert!(span < Duration::from_secs(1), "{span:?}");
}

#[test]
fn a_call_that_can_not_connect_ends_at_once() {
    // It takes the connection and says nothing: TLS waits for it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = Some(format!("https://{}", listener.local_addr().unwrap()));
    let config = ProviderConfig::Anthropic { base_url, key: Secret::new(KEY), settings: usual() };
    let (clock, cancel) = (Clock::real(), Cancel::default());
    let provider = open(&config, &clock).unwrap();
    let asked = {
        let cancel = cancel.clone();
        Thread::start("asks", move || ask_until(&*provider, &cancel).is_err()).unwrap()
    };
    let _connection = listener.accept().unwrap();
    let fired = clock.now();
    cancel.fire();
    assert!(asked.join().unwrap());
    assert!(clock.now().since(fired) < Duration::from_secs(1));
}

/// A model behind a client with these bounds.
fn bounded(url: &str, bounds: Bounds, proxy: Option<&str>) -> OpenAi {
    let proxy = proxy.map(|proxy| ureq::Proxy::new(proxy).unwrap());
    by(url, Http::new(Clock::real(), bounds, proxy))
}

/// A model that is called by `http`.
fn by(url: &str, http: Http) -> OpenAi {
    let (clock, url) = (Clock::real(), format!("{url}/v1/chat/completions"));
    let limiter = Limiter::new(clock.clone(), 4);
    OpenAi::new(Wire { url, key: None, http, limiter, clock }, "model-1", &once())
}

#[test]
fn what_broken_tries_have_taken_is_counted() {
    let whole = short_anthropic();
    let error = format!("event: error\ndata: {OVERLOADED}\n\n").into_bytes();
    let part = whole[..whole.len() / 2].to_vec();
    let script = [Play::Broken(part.clone()), Play::Stream([part, error].concat(), vec![9, 99])];
    let (server, clock) = (TestServer::start([script.as_slice(), &[hello()]].concat()), fake());
    let (reply, took) = took(&*anthropic(&server, usual(), &clock));
    // The answer's own is what the conversation has come to; all tries are paid.
    assert_eq!(shown(reply), HELLO);
    let took: Vec<[u64; 2]> = took.iter().map(|it| [it.input, it.output]).collect();
    assert_eq!(took, [[7, 0], [7, 0], [7, 2]]);
}

#[test]
fn each_step_has_its_bound() {
    let short = Duration::from_millis(200);
    let ended = |play: Play, bounds: Bounds| {
        let server = TestServer::start([play]);
        let ended = shown(ask(&bounded(&server.url(), bounds, None)));
        ended.replace(server.url().trim_start_matches("http://"), "HOST")
    };
    let first = Bounds { first_byte: short, ..Bounds::default() };
    let between = Bounds { between_bytes: short, ..Bounds::default() };
    let small = Bounds { most_body: 100, ..Bounds::default() };
    expect!["no answer for now: the model's server took too long to begin its answer (HOST)"]
        .assert_eq(&ended(Play::Silent, first));
    expect!["no answer for now: the model's server took too long to go on with its answer"]
        .assert_eq(&ended(Play::Stalled(b"data: ".to_vec()), between));
    expect!["the model's answer is longer than 100 bytes"]
        .assert_eq(&ended(Play::stream(vec![b' '; 200]), small));
    // No bound for the whole: each piece comes within its own.
    let pieces = Play::Stream(short_openai(), (0..50).map(|it| it * 4).collect());
    assert_eq!(ended(pieces, between), HELLO);
}

#[test]
fn a_proxy_leads_to_the_server() {
    let server = TestServer::start([Play::stream(short_openai())]);
    let provider = bounded("http://model.test:81", Bounds::default(), Some(&server.url()));
    assert_eq!(shown(ask(&provider)), HELLO);
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    expect![[r#"
        CONNECT model.test:81
        /v1/chat/completions"#]]
    .assert_eq(&paths.join("\n"));
}

#[test]
fn a_packed_answer_is_unpacked() {
    // {"choices":[{"message":{"content":"hello"}}]}
    let packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x4a\xce\xc8\xcf\x4c\x4e\x2d\x56\xb2\x8a\xae\x56\xca\x4d\x2d\x2e\x4e\x4c\x4f\x55\xb2\xaa\x56\x4a\xce\xcf\x2b\x49\xcd\x2b\x51\xb2\x52\xca\x48\xcd\xc9\xc9\x57\xaa\xad\x8d\xad\x05\x00\x82\x75\xe9\xe0\x2d\x00\x00\x00";
    let headers = vec![("content-encoding", "gzip".to_owned())];
    let server = TestServer::start([Play::Answer(200, headers, packed.to_vec())]);
    let reply = shown(ask(&*openai(&server, once(), &fake())));
    assert_eq!(reply, r#"Ok "hello" [0, 0, 0, 0]"#);
    assert_eq!(server.seen()[0].headers["accept-encoding"], "gzip");
}

#[test]
fn a_key_is_in_no_error() {
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#);
    let headers = vec![("request-id", format!("req_{KEY}"))];
    let plays = [
        Play::refusal(401, &echo),
        Play::refusal(500, KEY),
        Play::Answer(429, headers, Vec::new()),
        Play::stream(format!("event: error\ndata: {echo}\n\n")),
        Play::stream(format!("data: {KEY}\n\n")),
    ];
    for play in plays {
        for ended in [by_anthropic(play.clone()), by_openai(play.clone())] {
            assert!(!ended.contains(KEY) && !ended.starts_with("Ok"), "{ended}");
        }
    }
    let server = TestServer::start([hello()]);
    ask(&*anthropic(&server, once(), &fake())).unwrap();
    assert_eq!(server.seen()[0].headers["x-api-key"], KEY);
    let server = TestServer::start([Play::stream(short_openai())]);
    ask(&*openai(&server, once(), &fake())).unwrap();
    assert_eq!(server.seen()[0].headers["authorization"], format!("Bearer {KEY}"));
}
