//! The output, the errors and the exit codes of the `purview` command.

use std::io::Write;
use std::process::Stdio;

use crate::end_to_end::process::{Done, done, purview};

fn out(done: Done) -> (i32, String, String) {
    (done.code.unwrap_or(-1), done.stdout, done.stderr)
}

fn check_stdin(text: &str, more: &[&str]) -> (i32, String, String) {
    let mut command = purview(&[&["check", "-"], more].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    out(Done::of(&child.wait_with_output().unwrap()))
}

#[test]
fn check_prints_every_error_and_exits_with_1() {
    let (code, stdout, stderr) = check_stdin("[gatway]\n[[scene]]\nlines = 0\n", &[]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert_eq!(
        stderr,
        "error: config:1: gatway: unknown key; did you mean \"gateway\"?\n\
         error: config:3: scene.0.lines = 0: must lie between 1 and 1000000\n"
    );
}

#[test]
fn check_prints_one_json_object() {
    let (code, stdout, stderr) = check_stdin("[[scene]]\nlines = 0\n", &["--json"]);
    assert_eq!((code, stderr.as_str()), (1, ""));
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["errors"][0]["key"], "scene.0.lines");
    let (code, stdout, _) = check_stdin("", &["--json"]);
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&stdout).unwrap()["ok"], true);
}

#[test]
fn a_printed_configuration_is_an_equal_one() {
    let mut command = purview(&["check", "--print", "--set", "scene.0.view_cap=7"]);
    let (code, text, stderr) = out(done(command.env("PURVIEW_GATEWAY__BURST", "9")));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(text.contains("view_cap = 7\n") && text.contains("burst = 9\n"), "{text}");
    let (code, stdout, _) = check_stdin(&text, &[]);
    assert_eq!(code, 0, "{stdout}");
}
