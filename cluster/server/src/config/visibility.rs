//! The keys of a scene that say what is in range: `visibility`, and those that belong to one of its values.

use purview::scene::{SceneSpec, Visibility};

use super::form::{A_LENGTH, Description, Form, KM_1000, LENGTH, LENGTH_OR_0};
use super::keys::{Io, Keys};
use super::page::{Page, quoted};
use super::ranges::{RINGS, range_text, rings};
use super::read::{Section, one_of, quantity_within, text_of};
use super::units::Quantity::Length;

/// Default enter and leave radius of a circle.
const CIRCLE: (i32, i32) = (8_000, 8_500);

const RANGE: (&str, &str) = (
    "\"full\", or a list of \"near\", \"middle\", \"far\"",
    "Patches only: the rings in which players see each other, and all else unless their clients ask for one of the \
     kind's `sights`.",
);
const VISIBILITY: [&str; 3] = ["patches", "circle", "all"];
const VISIBLE: &str =
    "Which entities are in range: rings of patches, a circle, or all (one region only).";
const ENTER: &str = "Circle only: an entity nearer than this comes into range.";
const LEAVE: &str =
    "Circle only: an entity farther than this goes out of range; greater than `enter`.";
const PATCH_MARGIN: &str = "Patches only: how much nearer each of two entities in view of each other counts, at most half a patch; \"auto\" = \
     2 m, or half a patch where that is less.";

pub(super) fn keys(k: &mut Keys<'_, '_, SceneSpec>) {
    match k.io {
        Io::Read(section, _) => read_visibility(section, k.value),
        Io::Print(page) => print_visibility(page, k.value),
        Io::Describe(description) => describe_visibility(description),
    }
}

fn read_visibility(s: &mut Section<'_>, spec: &mut SceneSpec) {
    let (enter_cm, leave_cm) = circle(s);
    let choice = s.choice("visibility", &VISIBILITY).unwrap_or(0);
    let told = !s.is_wrong("visibility");
    let other = match choice {
        0 => ["enter", "leave"].map(|key| (key, "circle")),
        1 => ["range", "patch_margin"].map(|key| (key, "patches")),
        _ => [("enter", "circle"), ("leave", "circle")],
    };
    let more = ["range", "patch_margin"].map(|key| (key, "patches"));
    let more = more.into_iter().filter(|_| choice == 2);
    for (key, wanted) in other.into_iter().chain(more).filter(|_| told) {
        if let Some(node) = s.get(key) {
            s.conflict(key, node, format!("has an effect only with visibility = {wanted:?}"));
        }
    }
    spec.visibility = match choice {
        0 => Visibility::Patches,
        1 => Visibility::Circle { enter_cm, leave_cm },
        _ => Visibility::All,
    };
    let range = s.value("range", |node| rings(node).ok_or_else(|| format!("must be {}", RANGE.0)));
    spec.range = range.unwrap_or(spec.range);
    let margin = s.value("patch_margin", |node| match text_of(node) {
        Some("auto") => Ok(None),
        _ => quantity_within(node, Length, (0, KM_1000)).map(|cm| Some(cm as i32)),
    });
    spec.patch_margin_cm = margin.flatten();
}

fn print_visibility(page: &mut Page, spec: &SceneSpec) {
    let cm = |cm: i32| quoted(&Length.text(cm.into()));
    let name = match spec.visibility {
        Visibility::Patches => "patches",
        Visibility::Circle { .. } => "circle",
        Visibility::All => "all",
    };
    let about = (&*one_of(&VISIBILITY), VISIBLE);
    page.key("visibility", about, &quoted(name), &quoted("patches"));
    if let Visibility::Circle { enter_cm, leave_cm } = spec.visibility {
        page.key("enter", ("a length", ENTER), &cm(enter_cm), &cm(CIRCLE.0));
        page.key("leave", ("a length", LEAVE), &cm(leave_cm), &cm(CIRCLE.1));
    }
    if spec.visibility == Visibility::Patches {
        page.key("range", RANGE, &range_text(&spec.range), &quoted("full"));
        let margin = spec.patch_margin_cm.map_or_else(|| quoted("auto"), cm);
        page.key("patch_margin", ("a length", PATCH_MARGIN), &margin, &quoted("auto"));
    }
}

fn describe_visibility(description: &mut Description) {
    let margin = Form::Or("auto", &LENGTH_OR_0);
    let cm = |cm: i32| quoted(&Length.text(cm.into()));
    for (name, rule, says, default) in [
        (
            "visibility",
            (&*one_of(&VISIBILITY), Form::Words(&VISIBILITY)),
            VISIBLE,
            quoted("patches"),
        ),
        ("enter", ("a length", A_LENGTH), ENTER, cm(CIRCLE.0)),
        ("leave", ("a length", A_LENGTH), LEAVE, cm(CIRCLE.1)),
        ("range", (RANGE.0, RINGS), RANGE.1, quoted("full")),
        ("patch_margin", ("a length", margin), PATCH_MARGIN, quoted("auto")),
    ] {
        description.key(name, (rule, says), &default);
    }
}

/// The enter and leave radius of a circle. The default of one follows the other, if that is set.
fn circle(s: &mut Section<'_>) -> (i32, i32) {
    let mut radius = |name, default: i32| {
        s.quantity(name, Length, LENGTH.0, LENGTH.1).map_or(default, |cm| cm as i32)
    };
    let (enter_cm, leave_cm) = (radius("enter", CIRCLE.0), radius("leave", CIRCLE.1));
    let gap = CIRCLE.1 - CIRCLE.0;
    match (s.is_set("enter"), s.is_set("leave")) {
        (true, false) => (enter_cm, leave_cm.max(enter_cm.saturating_add(gap))),
        (false, true) => (enter_cm.min(leave_cm - gap).max(1), leave_cm),
        _ => (enter_cm, leave_cm),
    }
}
