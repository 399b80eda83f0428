//! Holds the code to `proto/client/messages.toml`, the description of all client messages, and what
//! is generated from it to both: the tables of `docs/protocol.md`, the codec of the TypeScript client
//! and the vectors in `clients/conformance`.
//!
//! `PURVIEW_GOLDEN=write cargo test -p purview --test it golden` writes them anew.

mod description;
mod features;
mod forms;
mod movement;
mod samples;
mod tables;
pub mod tree;
mod typescript;
mod vectors;

use std::collections::BTreeMap;

use description::{Description, From};
use purview::scene::Plane;
use purview::scene::properties::{MAX_ENTITY_BYTES, MAX_VALUE_BYTES};
use purview::wire::{ClientMsg, CloseCode, ErrorCode, PROTOCOL_VERSION, ServerMsg};
use purview::wire::{MAX_ACT, MAX_CLIENT_FRAME, MAX_SERVER_FRAME};

use crate::house::root;

/// Compares a generated file with the committed one, or writes it.
pub fn compare(file: &str, want: &str) {
    let path = root().join(file);
    if std::env::var_os("PURVIEW_GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(&path, want).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
    let is = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let differ = is.lines().zip(want.lines()).position(|(a, b)| a != b);
    let line = differ.unwrap_or_else(|| is.lines().count().min(want.lines().count()));
    assert!(
        is == want,
        "{file} is stale from line {}: PURVIEW_GOLDEN=write cargo test -p purview --test it golden\n\
         is:   {:?}\nwant: {:?}",
        line + 1,
        is.lines().nth(line),
        want.lines().nth(line)
    );
}

#[test]
fn every_message_type_is_described() {
    let all = Description::read();
    let described = |from: From| -> Vec<(u8, String)> {
        let of = all.message.iter().filter(|m| m.from == from);
        of.map(|m| (m.number, m.name.clone())).collect()
    };
    let types = |all: &[(u8, &str)]| -> Vec<(u8, String)> {
        all.iter().map(|(n, name)| (*n, name.to_string())).collect()
    };
    assert_eq!(described(From::Client), types(ClientMsg::TYPES));
    assert_eq!(described(From::Server), types(ServerMsg::TYPES));
}

#[test]
fn every_code_is_described() {
    let all = Description::read();
    let described = |codes: &[description::Code]| -> Vec<(u16, String)> {
        codes.iter().map(|c| (c.code, c.name.clone())).collect()
    };
    let errors = ErrorCode::ALL.iter().map(|c| (u16::from(*c), c.name().to_string()));
    assert_eq!(described(&all.error), errors.collect::<Vec<_>>());
    let closes = CloseCode::ALL.iter().map(|c| (u16::from(*c), c.name().to_string()));
    assert_eq!(described(&all.close), closes.collect::<Vec<_>>());
}

#[test]
fn the_limits_are_those_of_the_code() {
    let all = Description::read();
    assert_eq!(all.version, PROTOCOL_VERSION);
    let said: BTreeMap<_, _> = all.limit.iter().map(|l| (l.name.as_str(), l.value)).collect();
    let limits = [
        ("MAX_CLIENT_FRAME", MAX_CLIENT_FRAME as i64),
        ("MAX_SERVER_FRAME", MAX_SERVER_FRAME as i64),
        ("MAX_VALUE_BYTES", MAX_VALUE_BYTES as i64),
        ("MAX_ENTITY_BYTES", MAX_ENTITY_BYTES as i64),
        ("MAX_ACT", MAX_ACT as i64),
        ("LIMBO", Plane::LIMBO.0.into()),
        ("PROTOCOL_VERSION", PROTOCOL_VERSION.into()),
    ];
    assert_eq!(said, limits.into());
}

#[test]
fn the_fields_of_every_message_are_those_of_the_code_in_order() {
    let all = Description::read();
    let mut described: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let messages = all.message.iter().map(|m| (m.name.as_str(), &m.fields));
    for (name, fields) in messages.chain(all.record.iter().map(|r| (r.name.as_str(), &r.fields))) {
        let names = fields.iter().map(|f| f.name.clone()).collect();
        assert_eq!(described.insert(name, names), None, "{name} is described twice");
    }
    let mut fields: BTreeMap<_, _> = samples::fields().into_iter().collect();
    fields.insert("Leave", Vec::new());
    assert_eq!(described, fields);
}

#[test]
fn every_message_type_has_a_golden_vector() {
    let samples = samples::all();
    let has = |kind: u8| samples.iter().any(|s| s.message.encode()[1] == kind);
    for (kind, name) in ClientMsg::TYPES.iter().chain(ServerMsg::TYPES) {
        assert!(has(*kind), "{name}");
    }
}

#[test]
fn the_tables_of_the_protocol_are_those_of_the_description() {
    let all = Description::read();
    let file = "docs/protocol.md";
    let page = std::fs::read_to_string(root().join(file)).unwrap();
    let (want, names) = tables::page(&all, &page);
    compare(file, &want);
    let parts = ["limits", "from client", "from server", "errors", "close codes"];
    let messages = all.message.iter().filter(|m| !m.fields.is_empty()).map(|m| m.name.as_str());
    let mut tables: Vec<_> = messages.chain(all.record.iter().map(|r| r.name.as_str())).collect();
    tables.extend(parts);
    tables.sort_unstable();
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, tables, "each table stands once");
}

#[test]
fn the_typescript_codec_is_that_of_the_description() {
    let all = Description::read();
    compare("clients/typescript/src/wire/messages.ts", &typescript::messages(&all));
    compare("clients/typescript/src/wire/codec.ts", &typescript::codec(&all));
}

#[test]
fn the_vectors_are_those_of_the_code() {
    compare("clients/conformance/wire.json", &vectors::wire(&Description::read()));
    compare("clients/conformance/movement.json", &movement::all());
}

#[test]
fn the_table_of_features_names_tests_that_exist() {
    let file = "clients/conformance/README.md";
    let page = std::fs::read_to_string(root().join(file)).unwrap();
    compare(file, &features::page(&page));
}
