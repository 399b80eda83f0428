//! The release: the same inputs give the same bytes, and the list of components is that of the program.

use std::path::Path;
use std::process::Command;

use super::missing::{root, run};

fn release(folder: &Path) -> String {
    let mut command = Command::new("bash");
    command.arg(root().join("deploy/release")).arg(env!("CARGO_BIN_EXE_purview")).arg(folder);
    run(&mut command).unwrap()
}

#[test]
fn two_releases_of_one_program_have_the_same_bytes_and_all_that_a_machine_needs() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = folders.each_ref().map(|folder| release(folder.path()));
    assert_eq!(first, second);
    let folder = folders[0].path();
    run(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(folder)).unwrap();
    let tarball = first.lines().find_map(|line| line.split_whitespace().nth(1)).unwrap();
    let listed = run(Command::new("tar").arg("-tzf").arg(folder.join(tarball))).unwrap();
    for file in [
        "purview",
        "systemd/purview-node.service",
        "compose.yaml",
        "compose/setup.sh",
        "chart/Chart.yaml",
        "chart/prometheus-rules.yml",
        "docs/deploy.md",
        "LICENSE-MIT",
    ] {
        assert!(
            listed.lines().any(|line| line.split_once('/').is_some_and(|(_, of)| of == file)),
            "{file}"
        );
    }
    let components = folder.join(tarball.replace(".tar.gz", ".components.json"));
    let components: serde_json::Value =
        serde_json::from_slice(&std::fs::read(components).unwrap()).unwrap();
    let all = components["components"].as_array().unwrap();
    let has = |name: &str| all.iter().any(|component| component["name"] == name);
    assert!(has("tokio") && has("rustls") && has("purview-server"));
    assert!(!has("purview-lab") && !has("proptest"), "they are not in the program");
}
