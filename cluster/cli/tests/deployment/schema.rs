//! The JSON Schema of configurations, by a validator: it accepts each configuration that the program accepts, and refuses
//! what can be refused without a look at other keys.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use super::missing::{Missing, files, need_python, root, run};

const WRONG: &str = include_str!("../../../server/src/config/tests/wrong.txt");

fn purview() -> Command {
    Command::new(env!("CARGO_BIN_EXE_purview"))
}

fn need_validator() -> Result<(), Missing> {
    need_python("jsonschema, tomllib")
}

/// What the schema has against each configuration of a folder.
pub fn refused(folder: &Path) -> BTreeMap<String, String> {
    let schema = folder.join("purview.schema.json");
    let text = run(purview().args(["check", "--schema", "config"])).unwrap();
    std::fs::write(&schema, text).unwrap();
    let script = root().join("cluster/cli/tests/deployment/schema.py");
    let said = run(Command::new("python3").arg(script).arg(schema).arg(folder)).unwrap();
    serde_json::from_str(&said).unwrap()
}

/// The blocks of the documents that are configurations as they stand.
fn blocks() -> Vec<String> {
    let mut found = Vec::new();
    for page in files("docs", ".md") {
        let text = std::fs::read_to_string(page).unwrap();
        let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        found.extend(blocks.filter(|block| is_legal(block)).map(str::to_owned));
    }
    found
}

fn is_legal(text: &str) -> bool {
    let mut check = purview();
    check.args(["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut check = check.spawn().unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    check.wait().unwrap().success()
}

/// The keys outside of scenes by their paths, as the values of the chart have them: they become variables, so that a list
/// is a text.
fn settings(schema: &Value, path: &str, found: &mut Map<String, Value>) {
    for (name, key) in schema["properties"].as_object().unwrap() {
        let below = format!("{path}{name}");
        if key.get("properties").is_some() {
            settings(key, &format!("{below}."), found);
        } else if name != "scene" {
            let mut key = key.clone();
            if key["type"] == "array" {
                key = json!({ "type": "string", "description": key["description"] });
            }
            found.insert(below, key);
        }
    }
}

#[test]
fn the_chart_knows_every_key_of_the_configuration() {
    let text = run(purview().args(["check", "--schema", "config"])).unwrap();
    let mut keys = Map::new();
    settings(&serde_json::from_str(&text).unwrap(), "", &mut keys);
    let any = json!({ "type": ["string", "integer", "boolean"] });
    let wanted = json!({
        "type": "object",
        "description": "Keys of the configuration, by their paths.",
        "additionalProperties": false,
        "properties": keys,
        "patternProperties": { r"^scene\.[0-9]+\.[a-z_0-9.]+$": any },
    });
    let file = root().join("deploy/chart/values.schema.json");
    let mut chart: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    if std::env::var("PURVIEW_GOLDEN").is_ok_and(|to| to == "write") {
        chart["$defs"]["settings"] = wanted.clone();
        std::fs::write(&file, format!("{chart:#}\n")).unwrap();
    }
    let hint = "PURVIEW_GOLDEN=write cargo test -p purview-cli --test deployment schema";
    assert_eq!(chart["$defs"]["settings"], wanted, "written anew by {hint}");
    for values in
        [&chart["properties"], &chart["properties"]["pools"]["additionalProperties"]["properties"]]
    {
        assert_eq!(values["settings"], json!({ "$ref": "#/$defs/settings" }));
    }
}

#[test]
fn the_schema_accepts_every_configuration_of_the_repository() {
    if let Err(missing) = need_validator() {
        return missing.skips("schema::accepts");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut said: Vec<String> = blocks();
    assert!(said.len() >= 5, "{} blocks of the documents", said.len());
    let files =
        ["deploy/scenes", "deploy/compose", "examples"].map(|folder| files(folder, ".toml"));
    for file in files.concat() {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        // Cargo's own.
        if name == "Cargo.toml" {
            continue;
        }
        said.push(std::fs::read_to_string(&file).unwrap());
        // That of the compose file needs its environment.
        said.extend(run(purview().args(["check", "--print"]).arg(&file)));
    }
    said.push(run(purview().args(["check", "--print"])).unwrap());
    assert!(said.len() >= 20, "{} configurations", said.len());
    for (at, text) in said.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{at}.toml")), text).unwrap();
    }
    for (file, wrong) in refused(folder.path()) {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!(wrong, "", "{text}");
    }
}

#[test]
fn the_schema_refuses_what_is_wrong_with_a_key_alone() {
    if let Err(missing) = need_validator() {
        return missing.skips("schema::refuses");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut cases = BTreeMap::new();
    for (at, case) in WRONG.split("\n\n").enumerate() {
        let end = case.find("\n=> ").or_else(|| case.find("\n~> ")).unwrap();
        let name = format!("{at}.toml");
        std::fs::write(folder.path().join(&name), &case[..end]).unwrap();
        cases.insert(name, (case, case[end..].starts_with("\n=> ")));
    }
    let refused = refused(folder.path());
    for (name, (case, by_schema)) in &cases {
        assert_eq!(!refused[name].is_empty(), *by_schema, "{case}\n{}", refused[name]);
    }
    assert!(cases.values().filter(|(_, by_schema)| *by_schema).count() >= 25);
}
