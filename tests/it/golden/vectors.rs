//! The golden vectors of the wire in JSON, `clients/conformance/wire.json`: messages with the names
//! of the description, and their bytes.

use purview::wire::ClientMsg;

use super::description::{Description, Field, Type};
use super::samples::{self, Message, Sample};
use super::tree::{Tree, hex, unhex};

/// Messages that a client must not send: what is wrong with them, and their bytes.
const REFUSED: [(&str, &str); 17] = [
    ("no bytes of an envelope", "7b7d"),
    ("cut off", "920391"),
    ("an array of 4,294,967,295 entries that are not there", "9206ddffffffff"),
    ("a byte too many", "9206910100"),
    ("arrays nine deep", "92069191919191919191919105"),
    ("a type of the server", "924390"),
    ("a number as text", "920691a131"),
    ("a number below 0", "920691ff"),
    ("a map of fields by name", "92069181a56e6f6e636501"),
    ("a field too few", "920690"),
    ("a map as a field of a later version", "9206920181a16101"),
    ("a later field nine deep", "92069201919191919191919105"),
    ("sight with a fourth ring", "920295a66d6561646f77c0c00890"),
    ("a value that is no MessagePack value", "920b930102c401c1"),
    ("the reserved plane", "92049402c0d28000000093010203"),
    ("a path with a step 8", "920894030105940093010203a13805"),
    ("a form that there is not", "920894030105920293010203"),
];

fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a text has a JSON form")
}

/// A value with the names of its fields.
fn named(all: &Description, is: &Type, tree: &Tree) -> String {
    match (is, tree) {
        (Type::Optional(_), Tree::Nil) => "null".into(),
        (Type::Optional(of), tree) => named(all, of, tree),
        (Type::List(of, _), Tree::Array(list)) => {
            let list: Vec<_> = list.iter().map(|tree| named(all, of, tree)).collect();
            format!("[{}]", list.join(", "))
        }
        (Type::Named(name), Tree::Array(list)) => match all.find_choice(name) {
            None => format!("{{{}}}", members(all, &all.record(name).fields, list)),
            Some(choice) => {
                let chosen = choice.of(all, list);
                let members = members(all, chosen.fields, &list[chosen.tags..]);
                let comma = if members.is_empty() { "" } else { ", " };
                format!("{{\"kind\": {}{comma}{members}}}", text(&chosen.case.name))
            }
        },
        (_, Tree::Bool(on)) => on.to_string(),
        (_, Tree::Int(n)) => n.to_string(),
        (_, Tree::Text(t)) => text(t),
        (_, Tree::Bytes(bytes)) => text(&hex(bytes)),
        (is, tree) => panic!("{tree:?} is no {is:?}"),
    }
}

/// The members of an object, without its braces.
pub fn members(all: &Description, fields: &[Field], list: &[Tree]) -> String {
    let one =
        |(f, tree): (&Field, &Tree)| format!("{}: {}", text(&f.name), named(all, &f.is, tree));
    fields.iter().zip(list).map(one).collect::<Vec<_>>().join(", ")
}

fn sender(message: &Message) -> &'static str {
    match message {
        Message::Client(_) => "client",
        Message::Server(_) => "server",
    }
}

fn taken(all: &Description, name: &str, message: &Message, bytes: &[u8]) -> String {
    let tree = Tree::read(bytes);
    let Tree::Int(number) = tree.array()[0] else { panic!("a message begins with its number") };
    let described = all.message(number as u8);
    let fields = members(all, &described.fields, tree.array()[1].array());
    format!(
        "    {{\"name\": {}, \"from\": \"{}\", \"message\": \"{}\",\n     \"fields\": {{{fields}}},\n     \"bytes\": \"{}\"}}",
        text(name),
        sender(message),
        described.name,
        hex(bytes)
    )
}

/// The message of a later version: every record has more fields at its end.
pub fn longer(all: &Description, bytes: &[u8]) -> Vec<u8> {
    let mut tree = Tree::read(bytes);
    let Tree::Int(number) = tree.array()[0] else { panic!("a message begins with its number") };
    let fields = &all.message(number as u8).fields;
    lengthen(all, fields, 0, tree.at(&[1]));
    tree.write()
}

/// What a later version might add: one of each form, and an array in an array.
fn added() -> [Tree; 3] {
    let inner = Tree::Array(vec![Tree::Nil, Tree::Array(vec![Tree::Int(-70_000)])]);
    [Tree::Int(300), inner, Tree::Text("later".into())]
}

fn lengthen(all: &Description, fields: &[Field], tags: usize, tree: &mut Tree) {
    let Tree::Array(list) = tree else { panic!("{tree:?} is no record") };
    for (field, value) in fields.iter().zip(&mut list[tags..]) {
        lengthen_value(all, &field.is, value);
    }
    list.extend(added());
}

fn lengthen_value(all: &Description, is: &Type, tree: &mut Tree) {
    match (is, tree) {
        (Type::Optional(_), Tree::Nil) => {}
        (Type::Optional(of), tree) => lengthen_value(all, of, tree),
        (Type::List(of, _), Tree::Array(list)) => {
            list.iter_mut().for_each(|tree| lengthen_value(all, of, tree));
        }
        (Type::Named(name), tree) => match all.find_choice(name) {
            None => lengthen(all, &all.record(name).fields, 0, tree),
            Some(choice) => {
                let chosen = choice.of(all, tree.array());
                // Six fields in place of three would be another record.
                lengthen(all, chosen.fields, chosen.tags, tree);
            }
        },
        _ => {}
    }
}

fn refused((what, digits): &(&str, String)) -> String {
    let error = ClientMsg::decode(&unhex(digits)).expect_err(what);
    let answer = error.code().name();
    format!("    {{\"what\": {}, \"bytes\": \"{digits}\", \"answer\": \"{answer}\"}}", text(what))
}

/// `wire.json`.
pub fn wire(all: &Description) -> String {
    let samples = samples::all();
    let encoded: Vec<_> = samples.iter().map(|s| (s, s.message.encode())).collect();
    let row = |(s, bytes): &(&Sample, Vec<u8>)| taken(all, s.name, &s.message, bytes);
    let rows: Vec<_> = encoded.iter().map(row).collect();
    let later =
        |(s, bytes): &(&Sample, Vec<u8>)| taken(all, s.name, &s.message, &longer(all, bytes));
    let later: Vec<_> = encoded.iter().map(later).collect();
    let long = format!("920894030105940093010203d941{}05", "37".repeat(65));
    let fixed = REFUSED.iter().map(|(what, digits)| (*what, digits.to_string()));
    let refused: Vec<_> =
        fixed.chain([("a path of 65 steps", long)]).map(|r| refused(&r)).collect();
    format!(
        "{{\n  \"version\": {},\n  \"taken\": [\n{}\n  ],\n  \"later\": [\n{}\n  ],\n  \"refused\": [\n{}\n  ]\n}}\n",
        all.version,
        rows.join(",\n"),
        later.join(",\n"),
        refused.join(",\n")
    )
}
