//! Compares `docs/protocol.md` and the golden vectors with the code: the tables of the document are read, and what they
//! say of messages, fields, codes and bytes must be what the code does.

pub mod notation;
mod samples;

use std::collections::BTreeMap;

use purview::scene::Plane;
use purview::scene::properties::{MAX_ENTITY_BYTES, MAX_VALUE_BYTES};
use purview::wire::{ClientMsg, CloseCode, ErrorCode, PROTOCOL_VERSION, ServerMsg};
use purview::wire::{MAX_ACT, MAX_CLIENT_FRAME, MAX_SERVER_FRAME};
use samples::{Message, Sample};

const DOC: &str = include_str!("../../docs/protocol.md");

const VECTORS: &str = include_str!("../../clients/conformance/vectors.md");

/// The table rows between a heading and the next one, without table heads and without the backticks
/// of code spans.
fn rows(heading: &str) -> Vec<Vec<String>> {
    rows_of(DOC, heading)
}

/// The same of any page.
fn rows_of(page: &str, heading: &str) -> Vec<Vec<String>> {
    let mut lines = page.lines().skip_while(|l| *l != heading);
    assert!(lines.next().is_some(), "the page has no section {heading:?}");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in lines.take_while(|l| !l.starts_with('#')) {
        let Some(line) = line.strip_prefix('|').and_then(|l| l.strip_suffix('|')) else { continue };
        if line.starts_with("---") {
            // The row above the separator is the head.
            rows.pop();
            continue;
        }
        rows.push(line.split('|').map(|cell| cell.trim().replace('`', "")).collect());
    }
    assert!(!rows.is_empty(), "section {heading:?} has no table");
    rows
}

/// The first two columns of a section's tables as number and name.
fn numbered(heading: &str) -> BTreeMap<u16, String> {
    let number = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("{heading}: {cell:?}"));
    rows(heading).into_iter().map(|r| (number(&r[0]), r[1].clone())).collect()
}

#[test]
fn every_message_type_is_in_the_tables() {
    let types = |all: &[(u8, &str)]| -> BTreeMap<u16, String> {
        all.iter().map(|(n, name)| (u16::from(*n), name.to_string())).collect()
    };
    assert_eq!(numbered("### From the client"), types(ClientMsg::TYPES));
    assert_eq!(numbered("### From the server"), types(ServerMsg::TYPES));
}

#[test]
fn every_code_is_in_the_tables() {
    let errors = ErrorCode::ALL.iter().map(|c| (u16::from(*c), c.name().to_string()));
    assert_eq!(numbered("## Errors"), errors.collect());
    let closes = CloseCode::ALL.iter().map(|c| (u16::from(*c), c.name().to_string()));
    assert_eq!(numbered("## Close codes"), closes.collect());
}

#[test]
fn the_limits_are_those_of_the_code() {
    let said: BTreeMap<_, _> =
        rows("## Limits").into_iter().map(|r| (r[0].clone(), r[1].replace(',', ""))).collect();
    let limits = [
        ("MAX_CLIENT_FRAME", MAX_CLIENT_FRAME.to_string()),
        ("MAX_SERVER_FRAME", MAX_SERVER_FRAME.to_string()),
        ("MAX_VALUE_BYTES", MAX_VALUE_BYTES.to_string()),
        ("MAX_ENTITY_BYTES", MAX_ENTITY_BYTES.to_string()),
        ("MAX_ACT", MAX_ACT.to_string()),
        ("LIMBO", Plane::LIMBO.to_string()),
        ("PROTOCOL_VERSION", PROTOCOL_VERSION.to_string()),
    ];
    assert_eq!(said, limits.map(|(k, v)| (k.to_string(), v)).into());
}

#[test]
fn the_fields_of_every_message_are_those_of_the_code_in_order() {
    for (heading, fields) in samples::fields() {
        let said: Vec<_> = rows(&heading).into_iter().map(|r| r[0].clone()).collect();
        assert_eq!(said, fields, "section {heading:?}");
    }
}

#[test]
fn golden_vectors_encode_and_decode_as_documented() {
    let mut said = rows_of(VECTORS, "## Taken").into_iter();
    for Sample { name, message, text } in samples::all() {
        let hex = notation::hex(&message.encode());
        let row = format!("| {name} | `{text}` | `{hex}` |");
        let got = said.next().unwrap_or_else(|| panic!("the document lacks\n{row}"));
        assert_eq!(got, [name, text, &hex], "the document should say\n{row}");
        // A second, independent conversion from the notation to bytes.
        assert_eq!(notation::hex(&notation::encode(text)), hex, "{row}");
        let bytes = notation::unhex(&hex);
        let read = match message {
            Message::Client(_) => Message::Client(ClientMsg::decode(&bytes).unwrap()),
            Message::Server(_) => Message::Server(ServerMsg::decode(&bytes).unwrap()),
        };
        assert_eq!(read, message, "{row}");
    }
    assert_eq!(said.next(), None, "the document has a vector that no test knows");
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
fn refused_vectors_are_refused_with_the_documented_code() {
    for row in rows_of(VECTORS, "## Refused") {
        let error = ClientMsg::decode(&notation::unhex(&row[1])).unwrap_err();
        assert_eq!(error.code().name(), row[2], "{}: {error}", row[0]);
    }
}
