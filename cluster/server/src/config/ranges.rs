//! Ranges as the file has them: `"full"`, or a list of rings.

use purview::scene::RangeSet;

use super::form::Form;
use super::page::quoted;
use super::read::text_of;
use super::tree::{Item, Node};

/// The legal values of a range.
pub(super) const RINGS: Form<'static> =
    Form::Or("full", &Form::List(&Form::Words(&["near", "middle", "far", "full"])));

/// `"full"`, or a list of rings.
pub(super) fn rings(node: &Node) -> Option<RangeSet> {
    match &node.item {
        Item::Array(list) => {
            list.iter().map(ring).try_fold(RangeSet::NONE, |all, ring| Some(all.or(ring?)))
        }
        _ => (text_of(node)? == "full").then_some(RangeSet::FULL),
    }
}

fn ring(node: &Node) -> Option<RangeSet> {
    match text_of(node)? {
        "near" => Some(RangeSet::NEAR),
        "middle" => Some(RangeSet::MIDDLE),
        "far" => Some(RangeSet::FAR),
        "full" => Some(RangeSet::FULL),
        _ => None,
    }
}

/// What [`rings`] reads.
pub(super) fn range_text(range: &RangeSet) -> String {
    if *range == RangeSet::FULL {
        return quoted("full");
    }
    let rings = ["near", "middle", "far"].into_iter().zip(0..);
    let rings: Vec<_> = rings.filter(|(_, r)| range.has_ring(*r)).map(|(n, _)| quoted(n)).collect();
    format!("[{}]", rings.join(", "))
}
