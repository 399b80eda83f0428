//! Holds the Rust codec to the types of the description: in every golden vector each value is
//! replaced by others, and the codec must take those of the type and refuse the rest.

use super::description::{Description, Field, Type};
use super::samples::{self, Message, Sample};
use super::tree::Tree;
use super::vectors::longer;

/// A value of a message: the path to it, and its type.
type Place = (Vec<usize>, Type);

fn places(
    all: &Description,
    fields: &[Field],
    at: &[usize],
    tags: usize,
    list: &[Tree],
) -> Vec<Place> {
    let mut found = Vec::new();
    assert_eq!(fields.len() + tags, list.len(), "as many values as fields at {at:?}");
    for (i, (field, tree)) in fields.iter().zip(&list[tags..]).enumerate() {
        found.extend(value_places(all, &field.is, &[at, &[i + tags]].concat(), tree));
    }
    found
}

fn value_places(all: &Description, is: &Type, at: &[usize], tree: &Tree) -> Vec<Place> {
    let mut found = vec![(at.to_vec(), is.clone())];
    found.extend(match (is, tree) {
        (Type::Optional(of), tree) if *tree != Tree::Nil => {
            let inner = value_places(all, of, at, tree);
            inner.into_iter().filter(|(path, _)| path.as_slice() != at).collect()
        }
        (Type::List(of, _), Tree::Array(list)) => {
            let each = list.iter().enumerate();
            each.flat_map(|(i, tree)| value_places(all, of, &[at, &[i]].concat(), tree)).collect()
        }
        (Type::Named(name), Tree::Array(list)) => match all.find_choice(name) {
            None => places(all, &all.record(name).fields, at, 0, list),
            Some(choice) => {
                let chosen = choice.of(all, list);
                places(all, chosen.fields, at, chosen.tags, list)
            }
        },
        _ => Vec::new(),
    });
    found
}

/// Values of a type, and values that are none of it.
fn examples(all: &Description, is: &Type) -> (Vec<Tree>, Vec<Tree>) {
    let text = || Tree::Text("07".into());
    let list = || Tree::Array(vec![]);
    let codes = |codes: &[super::description::Code]| -> Vec<Tree> {
        codes.iter().map(|c| Tree::Int(c.code.into())).collect()
    };
    match is {
        Type::Int(low, high) => {
            let above = if *high > 1 << 50 { 1 << 64 } else { high + 1 };
            let beyond =
                [above, low - 1].map(Tree::Int).into_iter().filter(|n| n != &Tree::Int(1 << 64));
            let bad = [Tree::Nil, Tree::Bool(true), text(), list()].into_iter().chain(beyond);
            (vec![Tree::Int(*low), Tree::Int(*high)], bad.collect())
        }
        Type::Error | Type::Close => {
            let known = if *is == Type::Error { &all.error } else { &all.close };
            (codes(known), vec![Tree::Int(-1), Tree::Int(1 << 16), Tree::Nil, text()])
        }
        Type::Bool => {
            let good = vec![Tree::Bool(true), Tree::Bool(false)];
            (good, vec![Tree::Int(1), Tree::Nil, text(), list()])
        }
        Type::Text => {
            (vec![text(), Tree::Text("é".repeat(40))], vec![Tree::Int(1), Tree::Nil, list()])
        }
        Type::Steps => {
            let good = vec![text(), Tree::Text(String::new()), Tree::Text("7".repeat(64))];
            (
                good,
                vec![Tree::Text("8".into()), Tree::Text("7".repeat(65)), Tree::Int(7), Tree::Nil],
            )
        }
        Type::Bytes => {
            (vec![Tree::Bytes(vec![0; 300]), Tree::Bytes(vec![])], vec![Tree::Int(1), Tree::Nil])
        }
        Type::Value => {
            let bad = vec![Tree::Bytes(vec![0xc1]), Tree::Bytes(vec![]), Tree::Int(1), Tree::Nil];
            (vec![Tree::Bytes(vec![0xc0]), Tree::Bytes(vec![0xcb, 0, 0, 0, 0, 0, 0, 0, 0])], bad)
        }
        Type::Named(_) => (
            vec![],
            vec![Tree::Nil, Tree::Int(0), text(), list(), Tree::Array(vec![Tree::Int(99)])],
        ),
        Type::List(_, None) => (vec![list()], vec![Tree::Nil, Tree::Int(0), text()]),
        Type::List(_, Some(n)) => (vec![], vec![Tree::Nil, Tree::Array(vec![Tree::Int(1); n - 1])]),
        Type::Optional(of) => {
            let (mut good, mut bad) = examples(all, of);
            good.push(Tree::Nil);
            bad.retain(|tree| *tree != Tree::Nil);
            (good, bad)
        }
    }
}

fn sample_places(all: &Description, bytes: &[u8]) -> Vec<Place> {
    let tree = Tree::read(bytes);
    let fields = &all.message(bytes[1]).fields;
    places(all, fields, &[1], 0, tree.array()[1].array())
}

fn with(bytes: &[u8], at: &[usize], value: &Tree) -> Vec<u8> {
    let mut tree = Tree::read(bytes);
    *tree.at(at) = value.clone();
    tree.write()
}

#[test]
fn the_codec_takes_the_values_of_each_type_and_no_others() {
    let all = Description::read();
    let mut tried = 0;
    for Sample { name, message } in samples::all() {
        let bytes = message.encode();
        assert_eq!(Tree::read(&bytes).write(), bytes, "{name} is written in the shortest form");
        for (at, is) in sample_places(&all, &bytes) {
            let (good, bad) = examples(&all, &is);
            for value in &good {
                let read = message.decode(&with(&bytes, &at, value));
                let read =
                    read.unwrap_or_else(|e| panic!("{name} {at:?}: {value:?} as {is:?}: {e}"));
                let again = Tree::read(&read.encode()).at(&at).clone();
                assert_eq!(again, *value, "{name} {at:?}: {is:?} is not read as it was written");
            }
            for value in &bad {
                let read = message.decode(&with(&bytes, &at, value));
                assert!(read.is_err(), "{name} {at:?}: {value:?} was read as {is:?}: {read:?}");
            }
            tried += good.len() + bad.len();
        }
    }
    assert!(tried > 1_000, "only {tried} values were tried");
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    let all = Description::read();
    for Sample { name, message } in samples::all() {
        let bytes = longer(&all, &message.encode());
        match message.decode(&bytes) {
            Ok(read) => assert_eq!(read, message, "{name}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn a_record_with_a_field_too_few_is_refused() {
    let all = Description::read();
    for Sample { name, message } in samples::all() {
        let bytes = message.encode();
        for (at, is) in sample_places(&all, &bytes).iter().chain([&(vec![1], Type::Bool)]) {
            let mut tree = Tree::read(&bytes);
            let Tree::Array(list) = tree.at(at) else { continue };
            let is_record = matches!(is, Type::Named(_)) || at.len() == 1;
            if !is_record || list.pop().is_none() || is_left_out(&message, at) {
                continue;
            }
            let read = message.decode(&tree.write());
            assert!(read.is_err(), "{name} {at:?}: {read:?}");
        }
    }
}

/// The last field of an action may be left out.
fn is_left_out(message: &Message, at: &[usize]) -> bool {
    at.len() == 1 && message.encode()[1] == 5
}
