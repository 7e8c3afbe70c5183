//! What may lie in place of a mailbox, a state file or the folder: it is refused with the mend, never
//! followed, and the others go on.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

use crate::team::{Daemon, Team};

const THREE: &str = r#"{"teammates": {"lead": {}, "scout": {}, "other": {}}, "outside": ["ci"]}"#;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The daemon runs, `name` is refused for `why`, and another answers.
#[track_caller]
fn is_refused_alone(team: &Team, name: &str, why: &str) {
    team.until_state(name, "failed");
    let status = team.run(&["status"]).ok();
    let line = status.lines().find(|line| line.starts_with(&format!("  {name} "))).unwrap();
    assert!(line.contains(why), "{status}");
    assert!(status.contains("NEEDS YOU"), "{status}");
    others_answer(team);
}

#[track_caller]
fn others_answer(team: &Team) {
    let answer = team.run(&["send", "other", "answer: here", "--wait", "--timeout", "60"]).ok();
    assert_eq!(answer, "here\n");
}

#[test]
fn what_is_no_mailbox_is_refused_and_not_touched() {
    type Make = fn(&Team, &Path);
    let rows: [(&str, Make); 7] = [
        ("it is a link", |team, at| symlink(team.at("README.md"), at).unwrap()),
        ("it is a link", |team, at| symlink(team.at("not-there"), at).unwrap()),
        ("it is a link", |team, at| symlink(team.mailbox("other"), at).unwrap()),
        ("it is no regular file", |_, at| mkfifo(at)),
        ("it is no regular file", |_, at| fs::create_dir(at).unwrap()),
        ("second name", |team, at| fs::hard_link(team.at("README.md"), at).unwrap()),
        ("others may write it; `chmod go-rwx", |_, at| {
            fs::write(at, "").unwrap();
            chmod(at, 0o666);
        }),
    ];
    for (why, make) in rows {
        let team = Team::new(THREE);
        make(&team, &team.mailbox("scout"));
        let daemon = team.up();
        is_refused_alone(&team, "scout", why);
        let sent = team.run(&["send", "scout", "hi"]).exits(1);
        assert_eq!(sent.out, "");
        assert!(sent.err.contains("scout.jsonl is refused") && sent.err.contains(why), "{sent:?}");
        let checked = team.run(&["check"]).exits(1).err;
        assert!(checked.contains("scout: ") && checked.contains(why), "{checked}");
        assert_eq!(fs::read_to_string(team.at("README.md")).unwrap(), "# A test\n");
        assert!(!team.at("not-there").exists());
        // Mended, it starts.
        let at = team.mailbox("scout");
        if at.symlink_metadata().unwrap().is_dir() {
            fs::remove_dir(at).unwrap();
        } else {
            fs::remove_file(at).unwrap();
        }
        team.run(&["start", "scout"]).ok();
        let answer = team.run(&["send", "scout", "answer: back", "--wait"]).ok();
        assert_eq!(answer, "back\n");
        drop(daemon);
    }
}

#[test]
fn a_mailbox_that_becomes_a_link_while_the_daemon_runs_is_refused() {
    let team = Team::new(THREE);
    let _daemon = team.up();
    let answer = team.run(&["send", "scout", "answer: one", "--wait"]).ok();
    assert_eq!(answer, "one\n");
    fs::remove_file(team.mailbox("scout")).unwrap();
    symlink(team.at("README.md"), team.mailbox("scout")).unwrap();
    is_refused_alone(&team, "scout", "it is a link");
    assert_eq!(fs::read_to_string(team.at("README.md")).unwrap(), "# A test\n");
}

#[test]
fn one_mailbox_of_the_daemons_own_does_not_end_the_team() {
    for name in ["user", "daemon", "ci"] {
        let team = Team::new(THREE);
        let mut daemon = team.up();
        let at = team.mailbox(name);
        drop(fs::remove_file(&at));
        fs::create_dir(&at).unwrap();
        team.until("the trouble in the status", |team| {
            let status = team.run(&["status"]).ok();
            status.contains(&format!("{name}.jsonl is refused")).then_some(())
        });
        fs::remove_dir(&at).unwrap();
        team.until("the trouble's end", |team| {
            let status = team.run(&["status"]).ok();
            (!status.contains("is refused")).then_some(())
        });
        others_answer(&team);
        daemon.signal("TERM");
        assert_eq!(daemon.wait(), 0, "{name}");
    }
}

#[test]
fn a_folder_that_others_may_write_is_refused_with_the_mend() {
    let team = Team::new(THREE);
    chmod(&team.at(".mailbox"), 0o777);
    let folder = team.at(".mailbox").display().to_string();
    let mend =
        format!("postroom: {folder} is refused: others may write it; `chmod go-rwx '{folder}'`\n");
    for verb in [&["up"][..], &["status"], &["send", "scout", "hi"], &["run", "answer: x"]] {
        let ran = team.run(verb);
        assert_eq!((ran.code, &ran.err, &ran.out), (1, &mend, &String::new()), "{verb:?}");
    }
    chmod(&team.at(".mailbox"), 0o700);
    assert_eq!(team.run(&["run", "answer: x"]).ok(), "x\n");
}

#[test]
fn what_others_may_only_read_is_narrowed() {
    let team = Team::new(THREE);
    chmod(&team.at(".mailbox"), 0o755);
    fs::write(team.mailbox("scout"), "{\"content\":\"answer: x\"}\n").unwrap();
    chmod(&team.mailbox("scout"), 0o644);
    let _daemon = team.up();
    team.until_answered(1);
    assert_eq!(mode(&team.at(".mailbox")), 0o700);
    assert_eq!(mode(&team.mailbox("scout")), 0o600);
}

#[test]
fn a_mailbox_folder_that_is_a_link_is_refused() {
    let team = Team::new(THREE);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir(team.at(".mailbox")).unwrap();
    symlink(elsewhere.path(), team.at(".mailbox")).unwrap();
    for verb in [&["up"][..], &["status"], &["send", "scout", "hi"], &["run", "answer: x"]] {
        let ran = team.run(verb).exits(1);
        assert!(ran.err.contains(".mailbox is refused: it is "), "{ran:?}");
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_life_is_refused_with_a_hint_and_the_others_run() {
    let whole =
        r#"{"timestamp":"","v":1,"life":1,"desired":"running","birth":[0,0,0],"cursor":[0,0,0]}"#;
    let newer = whole.replace("\"v\":1", "\"v\":2") + "\n";
    let foreign = whole.replace("\"life\":1", "\"life\":\"x\"") + "\n";
    let odd = "use the postroom that wrote it";
    let begin_anew = "move it away to begin anew at the start of scout's mailbox";
    let rows: [(&[u8], &str); 5] = [
        (b"", begin_anew),
        (&[0; 100], begin_anew),
        (&whole.as_bytes()[..40], begin_anew),
        (foreign.as_bytes(), begin_anew),
        (newer.as_bytes(), odd),
    ];
    for (bytes, hint) in rows {
        let team = Team::new(THREE);
        fs::create_dir_all(team.at(".mailbox/state/agents")).unwrap();
        let life = team.at(".mailbox/state/agents/scout.jsonl");
        for folder in [".mailbox/state", ".mailbox/state/agents"] {
            chmod(&team.at(folder), 0o700);
        }
        fs::write(&life, bytes).unwrap();
        chmod(&life, 0o600);
        let daemon = team.up();
        assert!(daemon.said.contains("scout does not run: .mailbox/state/agents/scout.jsonl"));
        is_refused_alone(&team, "scout", hint);
        assert_eq!(fs::read(&life).unwrap(), bytes);
        drop(daemon);
        fs::remove_file(&life).unwrap();
        let _daemon = team.up();
        assert_eq!(team.run(&["send", "scout", "answer: x", "--wait"]).ok(), "x\n");
    }
}

#[test]
fn a_damaged_state_file_is_refused_with_the_mend_or_does_no_harm() {
    let key = "key is refused: it is not the 32 bytes that postroom wrote; remove it";
    let rows: [(&str, &[u8], Option<&str>); 6] = [
        ("key", &[0; 50], Some(key)),
        ("key", b"half", Some(key)),
        ("status.json", &[0; 50], None),
        ("dead.jsonl", b"{\"dead\":{\"timest", None),
        ("clean", b"", None),
        ("readers/user.json", &[0; 50], None),
    ];
    for (file, bytes, refused) in rows {
        let team = Team::new(THREE);
        assert_eq!(team.run(&["run", "answer: x"]).ok(), "x\n");
        let path = team.at(".mailbox/state").join(file);
        fs::write(&path, bytes).unwrap();
        chmod(&path, 0o600);
        let Some(why) = refused else {
            let _daemon = team.up();
            others_answer(&team);
            continue;
        };
        for verb in [&["up"][..], &["send", "scout", "x"], &["status"], &["run", "answer: x"]] {
            let ran = team.run(verb).exits(1);
            assert!(ran.err.contains(why), "{file}: {ran:?}");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(team.run(&["run", "answer: x"]).ok(), "x\n");
    }
}

#[test]
fn a_folder_in_place_of_the_status_hides_nothing_else() {
    let team = Team::new(THREE);
    let mut daemon = team.up();
    let at = team.at(".mailbox/state/status.json");
    fs::remove_file(&at).unwrap();
    fs::create_dir(&at).unwrap();
    others_answer(&team);
    team.run(&["status"]).ok();
    team.run(&["down"]).ok();
    assert_eq!(daemon.wait(), 0);
}

#[test]
fn a_huge_hole_in_a_mailbox_costs_nothing() {
    let team = Team::new(THREE);
    let file = fs::File::create(team.mailbox("other")).unwrap();
    file.set_len(1 << 40).unwrap();
    chmod(&team.mailbox("other"), 0o600);
    let started = std::time::Instant::now();
    let _daemon = team.up();
    team.append("other", "\n");
    others_answer(&team);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert_eq!(team.run(&["dead", "list"]).ok(), "");
}

fn until_it_stops(mut daemon: Daemon) {
    let started = std::time::Instant::now();
    assert_eq!(daemon.wait(), 1);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn the_daemon_stops_when_its_folder_is_renamed_or_deleted() {
    type Change = fn(&Team);
    let rows: [Change; 4] = [
        |team| fs::rename(team.at(".mailbox"), team.at("moved")).unwrap(),
        // The daemon may be writing into it meanwhile, so once may not be enough.
        |team| while fs::remove_dir_all(team.at(".mailbox")).is_err() {},
        |team| fs::rename(team.at(".mailbox/state"), team.at("moved")).unwrap(),
        |team| {
            fs::rename(team.at(".mailbox"), team.at("moved")).unwrap();
            fs::create_dir(team.at(".mailbox")).unwrap();
        },
    ];
    for change in rows {
        let team = Team::new(THREE);
        let daemon = team.up();
        change(&team);
        until_it_stops(daemon);
    }
}

#[test]
fn two_daemons_never_hold_one_folder() {
    let team = Team::new(THREE);
    fs::write(team.at("teams/else.json"), r#"{"teammates": {"lead": {}}}"#).unwrap();
    let daemon = team.up_team("team");
    for args in
        [&["up", "team"][..], &["up", "else"], &["up", "-d", "team"], &["run", "else", "answer: x"]]
    {
        let ran = team.run(args).exits(4);
        let file = team.at("teams/team.json").display().to_string();
        assert!(ran.err.contains("another team holds"), "{ran:?}");
        assert!(ran.err.contains(&format!("team from {file}")), "{ran:?}");
        assert!(ran.err.ends_with("`postroom down` ends it\n"), "{ran:?}");
        assert_eq!(ran.out, "");
    }
    others_answer(&team);
    drop(daemon);
}

#[test]
fn of_many_that_start_at_once_one_wins() {
    let team = Team::new(THREE);
    let mut children: Vec<_> = (0..4)
        .map(|_| team.command(&["up", "-d"]).stderr(Stdio::null()).spawn().unwrap())
        .collect();
    let mut codes: Vec<_> =
        children.iter_mut().map(|it| it.wait().unwrap().code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 4, 4, 4]);
    others_answer(&team);
    team.run(&["down"]).ok();
}

#[test]
fn all_files_are_private_whatever_the_umask() {
    let team = Team::new(THREE);
    fs::remove_dir(team.at(".mailbox")).unwrap();
    let program = env!("CARGO_BIN_EXE_postroom");
    let script = format!("umask 000; {program} run 'read README.md' && {program} send ci hi");
    let mut shell = Command::new("sh");
    let ran = shell.args(["-c", &script]).current_dir(team.at(".")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let (mut folders, mut files) = (vec![team.at(".mailbox")], 0);
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files += 1;
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    }
    assert!(files > 8, "{files}");
}

#[test]
fn whoever_echoes_first_needs_no_umask() {
    let team = Team::new(THREE);
    let program = env!("CARGO_BIN_EXE_postroom");
    let script = |lines: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask 002\n{lines}")]).current_dir(team.at("."));
        assert!(shell.stderr(Stdio::null()).status().unwrap().success());
    };
    fs::remove_dir_all(team.at("teams")).unwrap();
    fs::remove_dir_all(team.at(".mailbox")).unwrap();
    let echo = "echo '{\"content\":\"answer: x\"}' >> .mailbox";
    script(&format!("{program} init; {echo}/scout.jsonl"));
    let _daemon = team.up();
    team.until_answered(1);
    script(&format!("{echo}/lead.jsonl"));
    team.until_answered(2);
    assert_eq!(mode(&team.mailbox("lead")), 0o600);
}

#[test]
fn a_mailbox_that_became_a_link_does_not_hold_the_daemon_up() {
    let team = Team::new(r#"{"teammates": {"lead": {}, "scout": {}}}"#);
    let mut daemon = team.up();
    team.append("scout", "{\"content\":\"answer: here\"}\n");
    team.until_answered(1);
    fs::remove_file(team.mailbox("scout")).unwrap();
    symlink("../elsewhere", team.mailbox("scout")).unwrap();
    team.until_state("scout", "failed");
    team.append("lead", "{\"content\":\"answer: still here\"}\n");
    team.until_answered(2);
    assert!(team.run(&["log"]).ok().contains("still here"));
    team.run(&["down"]).ok();
    assert_eq!(daemon.wait(), 0);
}
