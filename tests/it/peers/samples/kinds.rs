//! The names of kinds of messages, and whether each kind has a sample.

use std::collections::BTreeSet;
use std::fmt::Debug;

use purview::scene::messages::{Input, Notice};
use purview::wire::peer::query::Question;
use purview::wire::peer::{MoveMsg, PeerMsg, WorkerMsg};
use serde::de::DeserializeOwned;

pub fn variant(of: &impl Debug) -> String {
    format!("{of:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// The name of a message's kind with all that decides who may send it.
pub fn kind_of(message: &PeerMsg) -> String {
    let inner = match message {
        PeerMsg::Region { input, .. } => variant(input),
        PeerMsg::Notice { notice, .. } => variant(notice),
        PeerMsg::Move(msg) => variant(msg),
        PeerMsg::Worker(msg) => variant(msg),
        PeerMsg::Ask { question, .. } => variant(question),
        _ => String::new(),
    };
    format!("{} {inner}", variant(message)).trim().to_owned()
}

/// The names of all variants, which serde lists when it meets an unknown one.
fn variants<T: DeserializeOwned>() -> Vec<String> {
    let refused = serde_json::from_str::<T>("\"?\"").err().expect("no variant has this name");
    let refused = refused.to_string();
    let (_, names) = refused.split_once("expected").expect("a list of variants");
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_kind_of_message_has_a_sample() {
    let has: BTreeSet<String> = super::all().iter().map(|(_, message)| kind_of(message)).collect();
    let outer = has.iter().map(|kind| kind.split(' ').next().expect("a name").to_owned());
    let outer: BTreeSet<String> = outer.collect();
    assert_eq!(outer, variants::<PeerMsg>().into_iter().collect());
    let inner = [
        ("Region", variants::<Input>()),
        ("Notice", variants::<Notice>()),
        ("Move", variants::<MoveMsg>()),
        ("Worker", variants::<WorkerMsg>()),
        ("Ask", variants::<Question>()),
    ];
    for (kind, variants) in inner {
        assert!(variants.len() > 3, "{kind}: {variants:?}");
        for variant in variants {
            assert!(has.contains(&format!("{kind} {variant}")), "no sample of {kind} {variant}");
        }
    }
}
