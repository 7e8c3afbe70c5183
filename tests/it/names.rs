//! Names that could steer a path, a shell or a terminal are refused with the rule, and nothing is made.

use std::fs;

use crate::team::Team;

const ONE: &str = r#"{"teammates": {"lead": {}, "scout": {}}}"#;

#[test]
fn names_are_refused_with_the_rule_wherever_they_are_typed() {
    let team = Team::new(ONE);
    let bad = [
        "../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        ".",
        "..",
        ".hidden",
        "",
        "a\nb",
        "a\tb",
        "A",
        "scout ",
        "scout.jsonl",
        "%2e%2e",
        "$(id)",
        ";id",
    ];
    for name in bad {
        for args in [
            &["send", name, "x"][..],
            &["inbox", name],
            &["start", name],
            &["stop", name],
            &["log", name],
            &["send", "scout", "x", "--from", name],
            &["init", name],
        ] {
            let ran = team.run(args).exits(2);
            assert!(ran.err.contains("a-z, 0-9"), "{args:?}: {ran:?}");
            assert_eq!(ran.out, "");
        }
        let file = serde_json::json!({"teammates": {"lead": {}, name: {}}});
        fs::write(team.at("teams/bad.json"), file.to_string()).unwrap();
        let ran = team.run(&["check", "bad"]).exits(2);
        assert!(ran.err.contains("a-z, 0-9"), "{name:?}: {ran:?}");
    }
    team.run(&["send", "-rf", "x"]).exits(2);
    team.run(&["send", "--", "-rf", "x"]).exits(2);
    for name in ["user", "daemon", "tasks", "all"] {
        let file = serde_json::json!({"teammates": {"lead": {}, name: {}}});
        fs::write(team.at("teams/bad.json"), file.to_string()).unwrap();
        let ran = team.run(&["check", "bad"]).exits(2);
        assert!(ran.err.contains("reserved"), "{name:?}: {ran:?}");
        assert!(team.run(&["init", name]).exits(2).err.contains("reserved"));
    }
    let mut left: Vec<_> = fs::read_dir(team.at("teams")).unwrap().collect();
    left.retain(|it| it.as_ref().unwrap().file_name() != "team.json");
    assert_eq!(left.len(), 1, "only bad.json: {left:?}");
}
