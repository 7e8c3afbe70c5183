//! Whole runs of a clerk against made-up tools, as transcripts.
#![expect(clippy::needless_raw_string_hashes, reason = "the comparison writes them so")]

use expect_test::{Expect, expect};

use super::desk::{Desk, mail};
use crate::model::{Kind, Protocol};

fn message(text: &str, expected: Expect) {
    Desk::new(None, mail("m1", Kind::Request, text)).transcript(expected);
}

fn script(script: &str, text: &str, expected: Expect) {
    Desk::new(Some(script), mail("m1", Kind::Request, text)).transcript(expected);
}

#[test]
fn one_line_gives_just_its_output() {
    message(
        "read README.md",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"README.md"}
        => Ok
        read_file gave something
    "#]],
    );
    message(
        "write a.md: x",
        expect![[r#"
        0 9c8hrb2o211b write_file {"content":"x","path":"a.md"}
        => Ok
        (no output)
    "#]],
    );
}

#[test]
fn several_lines_are_several_turns() {
    message(
        "read a\nlist\n& list src\n- read bad\n& read b",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"a"}
        1 on0u0ujuai4y list_files {}
        1 e3u270t915fp list_files {"path":"src"}
        2 geapifzm02zs read_file {"path":"bad"}
        2 gczcul7zc0zk read_file {"path":"b"}
        => Ok
        $ read a
        read_file gave something

        $ list
        list_files gave something

        $ & list src
        list_files gave something

        $ - read bad
        failed, and passed over: no good: {"path":"bad"}

        $ & read b
        read_file gave something
    "#]],
    );
}

#[test]
fn a_failure_ends_the_program() {
    message(
        "read a\nread bad\n& list\nread c\nwrite d <<END\ntext\nEND",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"a"}
        1 on0u0ujuai4y read_file {"path":"bad"}
        1 e3u270t915fp list_files {}
        => Failed
        $ read a
        read_file gave something

        $ & list
        list_files gave something

        FAILED: read bad
        no good: {"path":"bad"}

        Not run:
          read c
          write d <<END
    "#]],
    );
    message(
        "read bad",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"bad"}
        => Failed
        FAILED: read bad
        no good: {"path":"bad"}
    "#]],
    );
}

#[test]
fn a_passed_over_failure_leaves_the_status() {
    message(
        "- read bad",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"bad"}
        => Ok
        $ - read bad
        failed, and passed over: no good: {"path":"bad"}
    "#]],
    );
    script(
        "- read bad\nanswer: {status}\n  {output}\nread a\nanswer: {status}",
        "x",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"bad"}
        1 on0u0ujuai4y read_file {"path":"a"}
        => Ok
        failed
        no good: {"path":"bad"}
        ok
    "#]],
    );
}

#[test]
fn a_script_is_filled_in() {
    script(
        "read {content}\nwrite log: {from}: {output}\ntell {from}: {status}\nanswer: Seen {content}",
        "notes and {from}",
        expect![[r#"
            0 9c8hrb2o211b read_file {"path":"notes and {from}"}
            1 on0u0ujuai4y write_file {"content":"lead: read_file gave something","path":"log"}
            2 geapifzm02zs team_send {"content":"ok","to":"lead"}
            => Ok
            Seen notes and {from}
        "#]],
    );
}

#[test]
fn commands_get_variables() {
    script(
        "run make test\nrun make x=\"$POSTROOM_CONTENT\" y=\"$POSTROOM_OUTPUT\" z=\"$POSTROOM_STATUS\"",
        "$(rm -rf /); `id` '\"",
        expect![[r#"
            0 9c8hrb2o211b bash {"command":"make test"}
            1 on0u0ujuai4y bash {"command":"make x=\"$POSTROOM_CONTENT\" y=\"$POSTROOM_OUTPUT\" z=\"$POSTROOM_STATUS\"","env":{"POSTROOM_CONTENT":"$(rm -rf /); `id` '\"","POSTROOM_OUTPUT":"bash gave something","POSTROOM_STATUS":"ok"}}
            => Ok
            $ run make test
            bash gave something

            $ run make x="$POSTROOM_CONTENT" y="$POSTROOM_OUTPUT" z="$POSTROOM_STATUS"
            bash gave something
        "#]],
    );
}

#[test]
fn a_block_is_written_as_it_stands() {
    message(
        "write a.md <<END\n# Head\n\n  {content}\nanswer: no\nEND\nanswer: ok",
        expect![[r##"
        0 9c8hrb2o211b write_file {"content":"# Head\n\n  {content}\nanswer: no\n","path":"a.md"}
        => Ok
        ok
    "##]],
    );
}

#[test]
fn plans_are_judged_by_the_script() {
    let mut plan = mail("m1", Kind::Request, "run cargo clean");
    plan.protocol = Some(Protocol::PlanApproval);
    let approve = Desk::new(Some("on plan: approve"), plan.clone());
    approve.transcript(expect![[r#"
        => Ok true
        approved
    "#]]);
    let reject = Desk::new(Some("on plan: reject Not today, {from}"), plan.clone());
    reject.transcript(expect![[r#"
        => Ok false
        Not today, lead
    "#]]);
    Desk::new(Some("list"), plan.clone()).transcript(expect![[r#"
        => Failed
        I am desk, a clerk and no language model, and judge no plan: my script has no line `on plan: approve` or `on plan: reject WHY`.
    "#]]);
    plan.protocol = Some(Protocol::Permission);
    Desk::new(Some("on plan: approve"), plan).transcript(expect![[r#"
        => Failed
        I am desk, a clerk and no language model: I decide nothing but plans, by `on plan:`.
    "#]]);
    script(
        "on plan: approve",
        "read a",
        expect![[r#"
        0 9c8hrb2o211b read_file {"path":"a"}
        => Ok
        read_file gave something
    "#]],
    );
}

#[test]
fn a_follow_up_comes_after_the_first() {
    let first = || mail("m1", Kind::Request, "read a\nread bad\nread c");
    let second = || mail("m2", Kind::Request, "read b\nanswer: {output}");
    Desk::new(None, first()).joining(1, second()).transcript(expect![[r#"
        0 9c8hrb2o211b read_file {"path":"a"}
        1 on0u0ujuai4y read_file {"path":"bad"}
        2 6jsgnud4rook read_file {"path":"b"}
        => Failed
        To the request m1 from lead:
        $ read a
        read_file gave something

        FAILED: read bad
        no good: {"path":"bad"}

        Not run:
          read c

        To the request m2 from lead:
        {output}
    "#]]);
    let late = mail("m2", Kind::Request, "do more");
    Desk::new(None, mail("m1", Kind::Request, "read a")).joining(2, late).transcript(expect![[r#"
        0 9c8hrb2o211b read_file {"path":"a"}
        => Failed
        To the request m1 from lead:
        read_file gave something

        To the request m2 from lead:
        I am desk, a clerk and no language model: I carry out lines, and do not understand this one, so nothing was run.

        line 1, `do more`: no line begins so

        The lines that I know, each with an example:

        (the forms)
    "#]]);
    let late = mail("m2", Kind::Request, "read b");
    let early = mail("m1", Kind::Request, "hello");
    Desk::new(None, early).joining(1, late).transcript(expect![[r#"
        1 zq57rrxp1rmp read_file {"path":"b"}
        => Failed
        To the request m1 from lead:
        I am desk, a clerk and no language model: I carry out lines, and do not understand this one, so nothing was run.

        line 1, `hello`: no line begins so

        The lines that I know, each with an example:

        (the forms)

        To the request m2 from lead:
        read_file gave something
    "#]]);
}

#[test]
fn instructions_come_from_requests_only() {
    Desk::new(Some("read a"), mail("m1", Kind::Event, "read b")).transcript(expect![[r#"
        => Ok
        Noted: a clerk acts on requests only.
    "#]]);
    let context = mail("m2", Kind::Broadcast, "read b");
    let first = mail("m1", Kind::Request, "read a");
    Desk::new(None, first).joining(1, context).transcript(expect![[r#"
        0 9c8hrb2o211b read_file {"path":"a"}
        => Ok
        read_file gave something
    "#]]);
}

#[test]
fn prose_is_answered_with_what_it_knows() {
    message(
        "read README.md\nThen tell me what it says.",
        expect![[r#"
            => Failed
            I am desk, a clerk and no language model: I carry out lines, and do not understand this one, so nothing was run.

            line 2, `Then tell me what it says.`: no line begins so

            The lines that I know, each with an example:

            (the forms)
        "#]],
    );
}

#[test]
fn a_missing_tool_refuses_the_whole() {
    message(
        "read a\ndelegate helper: read b",
        expect![[r#"
        => Failed
        `delegate helper: read b` needs the tool `subagent`, which I do not have, so nothing was run. My tools: read_file, list_files, write_file, bash, team_send and submit_plan.
    "#]],
    );
    message(
        "tool nothing {}",
        expect![[r#"
        => Failed
        `tool nothing {}` needs the tool `nothing`, which I do not have, so nothing was run. My tools: read_file, list_files, write_file, bash, team_send and submit_plan.
    "#]],
    );
}
