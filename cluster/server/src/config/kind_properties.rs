//! The properties of a `[[scene.kind]]`: from keys to [`PropertySpec`]s, and back to text.

use purview::scene::properties::{Audience, Detail, PropertyId, PropertySpec, ValueType, Writer};

use super::keys;
use super::read::Section;

/// Reads the properties that a kind declares; none if the key is missing.
pub(super) fn read(kind: &mut Section<'_>) -> Vec<PropertySpec> {
    let mut properties = Vec::new();
    for mut entry in kind.list("properties").unwrap_or_default() {
        properties.push(property(&mut entry));
        kind.close(entry);
    }
    properties
}

fn property(s: &mut Section<'_>) -> PropertySpec {
    let default = PropertySpec::new(0, "");
    for key in [&keys::NAME, &keys::PROPERTY_ID] {
        if !s.says(key) {
            s.missing(key, "each property needs a name and an id");
        }
    }
    PropertySpec {
        name: s.text(&keys::NAME, ""),
        id: PropertyId(s.count(&keys::PROPERTY_ID, 0) as u8),
        value_type: ValueType::NAMES[s.choice(&keys::PROPERTY_TYPE, 0)].0,
        audience: Audience::NAMES[s.choice(&keys::PROPERTY_AUDIENCE, 0)].0,
        detail: Detail::NAMES[s.choice(&keys::DETAIL, 2)].0,
        writer: Writer::NAMES[s.choice(&keys::WRITER, 0)].0,
        persist: s.flag(&keys::PERSIST, default.persist),
        max_bytes: s.count(&keys::PROPERTY_MAX, default.max_bytes.into()) as u16,
    }
}

/// A property as an inline table of the file, without what is as by default.
pub(super) fn text(p: &PropertySpec) -> String {
    let quoted = |text: &str| toml::Value::String(text.into()).to_string();
    let mut out = format!("{{ name = {}, id = {}", quoted(&p.name), p.id);
    let default = PropertySpec::new(p.id.0, "");
    let mut word = |key: &str, name: Option<&str>| {
        out.extend(name.map(|name| format!(", {key} = {}", quoted(name))));
    };
    word("type", name_of(&ValueType::NAMES, p.value_type, default.value_type));
    word("audience", name_of(&Audience::NAMES, p.audience, default.audience));
    word("detail", name_of(&Detail::NAMES, p.detail, default.detail));
    word("writer", name_of(&Writer::NAMES, p.writer, default.writer));
    if p.persist {
        out += ", persist = true";
    }
    if p.max_bytes != default.max_bytes {
        out += &format!(", max = {}", p.max_bytes);
    }
    out + " }"
}

/// The name of a value that is not the default.
fn name_of<T: PartialEq + Copy>(
    names: &[(T, &'static str)],
    value: T,
    default: T,
) -> Option<&'static str> {
    let named = names.iter().find(|(of, _)| *of == value && value != default);
    named.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::keys::{Form, Key};

    #[test]
    fn the_words_of_the_keys_are_those_of_the_scene() {
        fn same<T>(key: &Key, names: &[(T, &str)]) {
            let Form::Choice(words) = key.form else { panic!("{}", key.name) };
            assert!(words.iter().eq(names.iter().map(|(_, name)| name)), "{}", key.name);
        }
        same(&keys::PROPERTY_TYPE, &ValueType::NAMES);
        same(&keys::PROPERTY_AUDIENCE, &Audience::NAMES);
        same(&keys::DETAIL, &Detail::NAMES);
        same(&keys::WRITER, &Writer::NAMES);
    }

    const PLAYER: &str = r#"
        [[scene]]
        [[scene.kind]]
        name = "player"
        properties = [
            { name = "hp", id = 1, type = "int", max = 5, persist = true },
            { name = "stance", id = 2, type = "text", writer = "owner", detail = "middle" },
            { name = "gold", id = 3, audience = "owner" },
        ]
    "#;

    #[test]
    fn properties_are_read_and_printed_back() {
        let config = Config::parse(PLAYER).unwrap();
        let of = PropertySpec::new;
        let want = [
            PropertySpec { value_type: ValueType::Int, persist: true, max_bytes: 5, ..of(1, "hp") },
            PropertySpec {
                value_type: ValueType::Text,
                writer: Writer::Owner,
                detail: Detail::Middle,
                ..of(2, "stance")
            },
            PropertySpec { audience: Audience::Owner, ..of(3, "gold") },
        ];
        assert_eq!(config.scenes[0].spec.kinds[0].properties, want);
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn what_is_wrong_with_a_property_is_told_where_it_stands() {
        let wrong = |from: &str, to: &str| {
            Config::parse(&PLAYER.replace(from, to)).unwrap_err().to_string()
        };
        let cases = [
            ("id = 3", "id = 64", "scene.0.kind.0.properties.2.id"),
            ("\"int\"", "\"number\"", "must be one of"),
            ("max = 5", "max = 2000", "must lie between 1 and 1024"),
            ("id = 3", "id = 2", "id 2 is that of \"stance\", too"),
            ("name = \"gold\", ", "", "each property needs a name and an id"),
            ("audience = \"owner\"", "audiense = \"owner\"", "did you mean \"audience\"?"),
        ];
        for (from, to, want) in cases {
            let text = wrong(from, to);
            assert!(text.contains(want), "{want}: {text}");
        }
    }
}
