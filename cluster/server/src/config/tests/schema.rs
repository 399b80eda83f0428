//! The JSON Schema has exactly the keys that are read. What its forms accept is tested with a validator, by
//! `cluster/cli/tests/deployment/schema.rs`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::config::{Config, Override};

const UNKNOWN: &str = "a_key_that_no_section_has";

/// The sections of a schema, by the path of an override, with their keys.
fn sections(schema: &Value, path: &str, found: &mut Vec<(String, BTreeSet<String>)>) {
    let keys = schema["properties"].as_object().expect("a section");
    found.push((path.to_owned(), keys.keys().cloned().collect()));
    for (name, key) in keys {
        let below = format!("{path}{name}.");
        let forms = key["anyOf"].as_array().into_iter().flatten().chain([key]);
        for form in forms {
            if form.get("properties").is_some() {
                sections(form, &below, found);
            } else if form["items"].get("properties").is_some() {
                sections(&form["items"], &format!("{below}0."), found);
            }
        }
    }
}

/// The keys that a section reads, as its error about an unknown key says.
fn read(path: &str) -> BTreeSet<String> {
    let set = Override { path: format!("{path}{UNKNOWN}"), value: "1".into() };
    let errors = Config::load(None, [], &[set]).unwrap_err();
    let told = errors.0.iter().find(|error| error.key.ends_with(UNKNOWN)).expect("it is unknown");
    let (_, known) = told.rule.split_once("known here: ").expect("the known keys");
    known.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_schema_has_exactly_the_keys_that_are_read() {
    let mut found = Vec::new();
    sections(&Config::json_schema(), "", &mut found);
    assert!(found.len() > 20, "{found:?}");
    for (path, keys) in found {
        assert_eq!(keys, read(&path), "{path}");
    }
}

#[test]
fn a_key_has_its_meaning_its_limits_and_its_default() {
    let schema = Config::json_schema();
    let drain = &schema["properties"]["cluster"]["properties"]["drain"];
    let told = "How long a node that is shutting down may take to migrate its regions to other nodes.\n\
                A time from \"0ms\" to \"1h\".";
    assert_eq!(
        (drain["description"].as_str(), drain["default"].as_str()),
        (Some(told), Some("30s"))
    );
    let capacity = &schema["properties"]["cluster"]["properties"]["capacity"];
    assert_eq!((&capacity["minimum"], &capacity["maximum"]), (&0.into(), &1_000_000.into()));
    let door = &schema["properties"]["scene"]["items"]["properties"]["map"]["properties"]["door"];
    assert_eq!(door["items"]["required"], serde_json::json!(["name", "tiles"]));
}
