//! Schemathesis, which knows only the OpenAPI document, generates legal and illegal requests, sends them to a real
//! cluster, and compares the answers with the document. It must find nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use purview_server::config::Config;

use super::schema::document;
use crate::common::{ANY_PORTS, cluster, console, members};
use crate::end_to_end::process::{Done, done};

const SEED: &str = "--seed=29";

/// The number of requests for each operation and kind.
const EXAMPLES: &str = "--max-examples=25";

/// A program in `target/tools`.
fn tool(name: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    let tool = tools.join(name);
    assert!(
        tool.exists(),
        "{} is missing: `bash .ci/test` installs it, as .ci/tools.txt says",
        tool.display()
    );
    tool
}

fn config(place: &Path) -> Config {
    let text = format!(
        "{ANY_PORTS}command_token_file = \"{}/command.token\"\n[server]\ndemo = true\n\
         [[scene]]\nname = \"field\"\nwidth = \"256m\"\ndepth = \"256m\"\nland = \"64m\"\n\
         region = [2, 2]\npatch = \"16m\"\ntop_speed = \"20m/s\"\n",
        place.display()
    );
    Config::parse(&text).unwrap()
}

#[test]
fn schemathesis_finds_no_answer_that_differs_from_the_document() {
    let schemathesis = tool("st");
    let place = tempfile::tempdir().unwrap();
    // One node: the only node is never drained.
    let cluster = cluster(&config(place.path()), 1, 1);
    let token = std::fs::read_to_string(place.path().join("command.token")).unwrap();
    let run = |console: &str, settings: &str| {
        let file = place.path().join("schemathesis.toml");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new(&schemathesis);
        command.current_dir(place.path()).env("NO_COLOR", "1");
        command.arg("--config-file").arg(&file).arg("run");
        command.arg(format!("http://{console}/api/openapi.json"));
        command.args(["--checks=all", SEED, EXAMPLES, "--continue-on-failure"]);
        command.args(["--no-color", "--generation-database=:memory:", "--warnings=off"]);
        command.arg("--header").arg(format!("Authorization:Bearer {}", token.trim()));
        let Done { code, stdout: said, stderr: error } = done(&mut command);
        assert_eq!(code, Some(0), "{said}\n{error}");
        assert!(said.contains("No issues found"), "{said}\n{error}");
    };
    // On a busy machine a region may answer late; the document allows that where it may happen.
    let busy =
        "[checks.not_a_server_error]\nexpected-statuses = [\"2xx\", \"3xx\", \"4xx\", 503]\n";
    // Names of this cluster, which the document cannot know.
    let names = format!("[parameters]\n\"query.scene\" = \"field\"\n{busy}");
    for member in members(&cluster) {
        let console = console(member);
        run(&console, busy);
        run(&console, &names);
        assert_eq!(member.ended(), None);
    }
}

#[test]
fn the_document_is_valid_openapi_3_1() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("openapi.json");
    std::fs::write(&file, document().to_string()).unwrap();
    let mut command = Command::new(tool("openapi-spec-validator"));
    let output = command
        .args(["--schema", "3.1", "--validation-errors", "all"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
