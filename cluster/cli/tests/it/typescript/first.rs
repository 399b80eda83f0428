//! The first program of `docs/guide/client.md` does what it says.

use super::package;
use crate::end_to_end::process::Served;
use crate::foreign::run;

#[test]
fn the_first_program_walks_on_a_server_and_leaves() {
    let folder = package::copy();
    let served = Served::start(&[]);
    let address = match served.tcp.contains("://") {
        true => served.tcp.clone(),
        false => format!("tcp://{}", served.tcp),
    };
    let told = run(&folder, "node", &["examples/first.mjs", &address, &served.token]);
    assert!(told[0].starts_with("joined meadow as "), "{told:?}");
    let walked = told.iter().find_map(|line| line.strip_prefix("walked ")?.split(' ').next());
    let walked: i32 = walked.expect("it says how far it walked").parse().unwrap();
    assert!(walked > 100, "{told:?}");
    assert!(told.iter().all(|line| !line.contains("refused")), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("left"), "{told:?}");
    let source = std::fs::read_to_string(folder.join("examples/first.mjs")).unwrap();
    let lines = source.lines().filter(|line| !line.starts_with("//") && !line.is_empty()).count();
    assert!(lines <= 20, "{lines} lines");
}
