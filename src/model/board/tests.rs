//! The fold of the board: its rules one by one, all short journals, and laws over random ones.

use proptest::prelude::*;

use super::*;
use crate::model::read_task_line;

fn fold(lines: &[&str]) -> (Board, Vec<String>) {
    let mut board = Board::default();
    let told = lines.iter().map(|line| {
        let event = match read_task_line(line) {
            Ok(event) => event,
            Err(why) => return format!("no line: {why}"),
        };
        match board.apply(&event) {
            Ok(change) => format!("{change:?}"),
            Err(void) => format!("void: {void}"),
        }
    });
    let told = told.collect();
    (board, told)
}

#[test]
fn lines_and_what_becomes_of_them() {
    let lines = [
        r#"{"title":"one"}"#,
        r#"{"subject":"two","blockedBy":[1],"owner":"scout"}"#,
        r#"{"title":"void","depends_on":["9"]}"#,
        r#"{"title":"four"}"#,
        r#"{"title":"named","id":"a1","event":"e1"}"#,
        r#"{"title":"named","id":"a1","event":"e1"}"#,
        r#"{"title":"named again","id":"a1"}"#,
        r#"{"title":"x","id":"77"}"#,
        r#"{"op":"update","id":1,"status":"in_progress","by":"scout"}"#,
        r#"{"op":"update","id":"2","expected_status":"pending","status":"in_progress","by":"scout"}"#,
        r#"{"id":"1","expected_status":"pending","status":"in_progress","attempt":2,"by":"a"}"#,
        r#"{"id":"1","expected_status":"pending","status":"in_progress","run":"r1","by":"a"}"#,
        r#"{"id":"1","expected_status":"pending","status":"in_progress","by":"b"}"#,
        r#"{"id":"1","expected_status":"in_progress","status":"done","by":"a"}"#,
        r#"{"id":"1","expected_status":"in_progress","status":"done","attempt":1,"by":"b"}"#,
        r#"{"id":"1","expected_status":"in_progress","status":"done","attempt":1,"by":"a","result":"ok"}"#,
        r#"{"id":"1","expected_status":"done","status":"pending"}"#,
        r#"{"id":"2","expected_status":"pending","status":"in_progress","lease_s":5,"by":"ci"}"#,
        r#"{"id":"2","expected_status":"in_progress","attempt":1,"by":"ci","lease_s":9}"#,
        r#"{"id":"2","expected_status":"in_progress","status":"pending","attempt":1,"reason":"death","by":"daemon"}"#,
        r#"{"id":"2","expected_status":"in_progress","status":"cancelled"}"#,
        r#"{"id":"2","expected_status":"pending","status":"cancelled"}"#,
        r#"{"id":"nope","expected_status":"pending","status":"cancelled"}"#,
        r#"{"op":"delete","id":"1"}"#,
        r#"{"description":"no title"}"#,
    ];
    let (_, told) = fold(&lines);
    let table: String = lines
        .iter()
        .zip(told)
        .flat_map(|(line, it)| [*line, "\n    ", &it, "\n"].concat().chars().collect::<Vec<_>>())
        .collect();
    expect_test::expect_file!["../../../tests/golden/board-lines.txt"].assert_eq(&table);
}

#[test]
fn the_third_release_for_one_reason_is_a_failure_and_a_retry_forgives() {
    let mut lines = vec![r#"{"title":"one"}"#.to_owned()];
    let mut round = |attempt: u32, reason: &str| {
        lines.push(
            r#"{"id":"1","expected_status":"pending","status":"in_progress","run":"r","by":"a"}"#
                .to_owned(),
        );
        lines.push(format!(
            r#"{{"id":"1","expected_status":"in_progress","status":"pending","attempt":{attempt},"reason":"{reason}"}}"#
        ));
    };
    round(1, "death");
    round(2, "error");
    round(3, "death");
    round(4, "error");
    round(5, "death");
    lines.push(r#"{"id":"1","expected_status":"failed","status":"pending"}"#.to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (before, _) = fold(&lines[..lines.len() - 1]);
    let id = TaskId::new("1").unwrap();
    let failed = TaskState::Failed("given back 3 times: death".to_owned());
    assert_eq!(before.get(&id).unwrap().state, failed);
    let (after, _) = fold(&lines);
    assert_eq!(after.get(&id).unwrap().state, TaskState::Pending);
    assert!(after.get(&id).unwrap().released.is_empty());
}

#[test]
fn a_chain_of_1500_becomes_ready_one_after_the_other() {
    let mut board = Board::default();
    let mut apply = |line: &str| board.apply(&read_task_line(line).unwrap()).unwrap();
    for number in 1..=1500 {
        let before = if number == 1 { String::new() } else { format!("{}", number - 1) };
        apply(&format!(r#"{{"title":"t","depends_on":[{before}]}}"#));
    }
    for number in 1..=1500 {
        apply(&format!(
            r#"{{"id":{number},"expected_status":"pending","status":"in_progress","by":"a"}}"#
        ));
        apply(&format!(
            r#"{{"id":{number},"expected_status":"in_progress","status":"done","attempt":1,"by":"a"}}"#
        ));
    }
    assert_eq!(board.count_ready(None), 0);
    assert!(board.all().iter().all(|task| matches!(task.state, TaskState::Done(_))));
}

/// Every line that the small world of one task, two owners and a daemon can write.
fn alphabet() -> Vec<TaskEvent> {
    let mut lines = Vec::new();
    for by in ["a", "b"] {
        lines.push(format!(
            r#"{{"id":"1","expected_status":"pending","status":"in_progress","by":"{by}"}}"#
        ));
        for attempt in [1, 2] {
            for status in ["done", "pending"] {
                lines.push(format!(
                    r#"{{"id":"1","expected_status":"in_progress","status":"{status}","attempt":{attempt},"by":"{by}"}}"#
                ));
            }
        }
    }
    lines.push(r#"{"id":"1","expected_status":"in_progress","status":"cancelled"}"#.to_owned());
    lines.iter().map(|line| read_task_line(line).unwrap()).collect()
}

/// What has to hold after every line of every journal.
fn check(before: &Board, event: &TaskEvent, result: &Result<Change, Void>, after: &Board) {
    let id = TaskId::new("1").unwrap();
    let (old, new) = (before.get(&id).unwrap(), after.get(&id).unwrap());
    let TaskEvent::Update(update) = event else { return };
    match result {
        Err(_) => assert_eq!(old, new, "a void line changes nothing"),
        Ok(Change::Claimed(_)) => {
            assert_eq!(old.state, TaskState::Pending);
            assert_eq!(new.attempt, old.attempt + 1);
            assert_eq!(owner_of(new), Some(&update.by));
        }
        Ok(Change::Ended(_)) if update.to == Some(StateWord::Done) => {
            assert_eq!(owner_of(old), Some(&update.by), "only the owner ends a task");
            assert_eq!(update.attempt, Some(old.attempt), "and only its present attempt");
        }
        Ok(_) => {}
    }
    assert!(!matches!(old.state, TaskState::Done(_) | TaskState::Cancelled) || old == new);
    let is_ready = after.ready(None).any(|task| task.id == id);
    assert_eq!(is_ready, new.state == TaskState::Pending);
}

#[test]
fn all_journals_of_five_lines_keep_the_laws() {
    let alphabet = alphabet();
    let mut start = Board::default();
    start.apply(&read_task_line(r#"{"title":"one"}"#).unwrap()).unwrap();
    let mut worlds = vec![start];
    for _ in 0..5 {
        let mut next = Vec::new();
        for board in &worlds {
            for event in &alphabet {
                let mut after = board.clone();
                let result = after.apply(event);
                check(board, event, &result, &after);
                if !next.contains(&after) {
                    next.push(after);
                }
            }
        }
        worlds = next;
    }
}

fn line() -> impl Strategy<Value = String> {
    let id = 1..6_u32;
    let by = prop::sample::select(vec!["a", "b", "user", "daemon"]);
    let states = vec!["pending", "in_progress", "done", "failed", "cancelled"];
    let state = prop::sample::select(states);
    prop_oneof![
        2 => (prop::collection::vec(id.clone(), 0..3), prop::option::of(0..9_u32)).prop_map(
            |(deps, event)| {
                let event = event.map_or(String::new(), |it| format!(r#","event":"e{it}""#));
                format!(r#"{{"title":"t","depends_on":{deps:?}{event}}}"#)
            }
        ),
        5 => (id, state.clone(), state, prop::option::of(1..4_u32), by).prop_map(
            |(id, expected, status, attempt, by)| {
                let attempt = attempt.map_or(String::new(), |it| format!(r#","attempt":{it}"#));
                format!(
                    r#"{{"id":"{id}","expected_status":"{expected}","status":"{status}"{attempt},"by":"{by}","reason":"death"}}"#
                )
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_indexes_say_what_the_tasks_say(lines in prop::collection::vec(line(), 0..40)) {
        let mut board = Board::default();
        for line in &lines {
            let before = board.clone();
            let Ok(event) = read_task_line(line) else { continue };
            if board.apply(&event).is_err() {
                prop_assert_eq!(&before.tasks, &board.tasks);
            }
            for task in board.tasks.values() {
                let is_ready = board.ready(task.assignee.as_ref()).any(|it| it.id == task.id);
                let wanted = task.state == TaskState::Pending && board.waits_for(task).is_empty();
                prop_assert_eq!(is_ready, wanted, "{:?}", task);
                let is_claimed = matches!(task.state, TaskState::InProgress { .. });
                prop_assert!(task.attempt > 0 || !is_claimed);
            }
        }
        let text = serde_json::to_string(&board).unwrap();
        let read = serde_json::from_str::<Board>(&text).unwrap().indexed();
        for name in [None, Some(AgentName::named("a"))] {
            let ids = |board: &Board| -> Vec<TaskId> {
                board.ready(name.as_ref()).map(|task| task.id.clone()).collect()
            };
            prop_assert_eq!(ids(&read), ids(&board));
        }
    }
}
