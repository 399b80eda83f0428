//! What a `[[scene.kind]]` watches: from keys to a [`WatchSpec`], and back to text.
//!
//! A kind may watch one that the list names later, so names become numbers when all kinds are read.

use purview::scene::spec::{KindSpec, WatchSpec};

use super::keys;
use super::read::{Section, text_of};
use super::tree::{Item, Node};
use super::units::Quantity;

/// What a kind watches, with the names of kinds as the file has them.
pub(super) struct Watched<'a> {
    kinds: Option<(&'a Node, Vec<String>)>,
    spec: WatchSpec,
}

/// Reads what a kind watches; `None` if the key is missing.
pub(super) fn read<'a>(kind: &mut Section<'a>) -> Option<Watched<'a>> {
    if !kind.says(&keys::WATCH) {
        return None;
    }
    let mut s = kind.section(keys::WATCH.name);
    for key in [&keys::WATCH_KINDS, &keys::WATCH_ENTER] {
        if !s.says(key) {
            s.missing(key, "what a kind watches needs kinds and an enter radius");
        }
    }
    let kinds = s.get(&keys::WATCH_KINDS).and_then(|node| {
        let names = match &node.item {
            Item::Array(list) => list.iter().map(|n| text_of(n).map(String::from)).collect(),
            _ => None,
        };
        if names.is_none() {
            let rule = format!("must be {}", keys::WATCH_KINDS.form.rule());
            s.wrong(keys::WATCH_KINDS.name, node, rule);
        }
        Some((node, names?))
    });
    let enter_cm = s.quantity(&keys::WATCH_ENTER, 0) as i32;
    // A quarter more, so that one who walks along the edge is not lost at every step.
    let wider = i64::from(enter_cm) + i64::from(enter_cm) / 4;
    let leave_cm = s.quantity(&keys::WATCH_LEAVE, wider) as i32;
    kind.close(s);
    Some(Watched { kinds, spec: WatchSpec { kinds: Vec::new(), enter_cm, leave_cm } })
}

/// Gives each kind what it watches: the names are those of `kinds`.
pub(super) fn resolve(
    s: &mut Section<'_>,
    kinds: &mut [KindSpec],
    watched: Vec<Option<Watched<'_>>>,
) {
    let names: Vec<String> = kinds.iter().map(|kind| kind.name.clone()).collect();
    for (kind, watched) in kinds.iter_mut().zip(watched) {
        let Some(Watched { kinds: Some((node, wanted)), mut spec }) = watched else { continue };
        for name in wanted {
            match names.iter().position(|known| *known == name) {
                Some(number) => spec.kinds.push(number as u8),
                None => {
                    let rule = format!("{name:?} is none of the kinds {names:?}");
                    s.conflict("kind", node, rule);
                }
            }
        }
        kind.watch = Some(spec);
    }
}

/// What a kind watches as a part of its inline table; empty if it watches nothing.
pub(super) fn text(watch: Option<&WatchSpec>, kinds: &[KindSpec]) -> String {
    let Some(watch) = watch else { return String::new() };
    let name = |number: &u8| {
        let name = kinds.get(usize::from(*number)).map_or("", |kind| &kind.name);
        toml::Value::String(name.into()).to_string()
    };
    let names: Vec<_> = watch.kinds.iter().map(name).collect();
    let cm = |cm: i32| toml::Value::String(Quantity::Length.text(cm.into())).to_string();
    format!(
        ", watch = {{ kinds = [{}], enter = {}, leave = {} }}",
        names.join(", "),
        cm(watch.enter_cm),
        cm(watch.leave_cm)
    )
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn parse(kinds: &str) -> Result<Config, String> {
        Config::parse(&format!("[[scene]]\nname = \"field\"\n{kinds}")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_kind_watches_kinds_by_name_and_prints_back() {
        let config = parse(
            "[[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"monster\"\n\
             watch = { kinds = [\"player\", \"sheep\"], enter = \"20m\" }\n\
             [[scene.kind]]\nname = \"sheep\"\n",
        )
        .unwrap();
        let scenes = config.build_scenes().unwrap();
        let watch = scenes[0].spec.kinds[1].watch.clone().unwrap();
        assert_eq!((&watch.kinds[..], watch.enter_cm, watch.leave_cm), (&[0, 2][..], 2_000, 2_500));
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn what_is_wrong_with_a_watch_is_said() {
        let of = |watch: &str| {
            let kinds = "[[scene.kind]]\nname = \"player\"\n[[scene.kind]]\nname = \"monster\"\n";
            parse(&format!("{kinds}watch = {watch}\n")).unwrap_err()
        };
        for (watch, says) in [
            ("{ kinds = [\"wolf\"], enter = \"20m\" }", "none of the kinds"),
            ("{ kinds = \"player\", enter = \"20m\" }", "a list of names"),
            ("{ kinds = [\"player\"] }", "enter"),
            ("{ kinds = [\"player\"], enter = \"20m\", leave = \"10m\" }", "at most leave"),
            ("{ kinds = [], enter = \"20m\" }", "at least one kind"),
        ] {
            let said = of(watch);
            assert!(said.contains(says), "{watch}: {said}");
        }
    }
}
