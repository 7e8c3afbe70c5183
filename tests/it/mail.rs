//! Mail from outside: whatever can append a line can send.

use crate::team::Team;

const TWO: &str = r#"{"teammates": {"lead": {}, "scout": {}}}"#;

#[test]
fn an_echoed_line_is_answered() {
    let team = Team::new(TWO);
    let _daemon = team.up();
    team.append("scout", "{\"content\":\"read README.md\"}\n");
    let answers = team.until_answered(1);
    assert_eq!(answers[0]["content"], "# A test");
    assert_eq!((&answers[0]["from_agent"], &answers[0]["status"]), (&"scout".into(), &"ok".into()));
}
