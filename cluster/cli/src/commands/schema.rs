//! The names, numbers and types of a configuration's kinds and properties, for clients: as JSON, or
//! as a module of TypeScript. `purview check --schema` prints them; or the JSON Schema of all configurations, for editors.

use clap::ValueEnum;
use purview::scene::properties::{Audience, PropertySpec, ValueType, Writer};
use purview::scene::spec::KindSpec;
use purview_server::config::{Config, ConfigErrors};
use serde::Serialize;

/// What a schema is of, and its language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Names, numbers and types of kinds and properties, for clients: JSON.
    Json,
    /// The same as a module of TypeScript for `@purview/client`.
    Ts,
    /// The JSON Schema of configuration files, for editors.
    Config,
}

#[derive(Serialize)]
struct Schema {
    scenes: Vec<SceneSchema>,
}

#[derive(Serialize)]
struct SceneSchema {
    name: String,
    kinds: Vec<KindSchema>,
}

#[derive(Serialize)]
struct KindSchema {
    name: String,
    properties: Vec<PropertySchema>,
}

#[derive(Serialize)]
struct PropertySchema {
    name: String,
    id: u8,
    r#type: &'static str,
    audience: &'static str,
    writer: &'static str,
}

fn name_of<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(of, _)| of == value).map_or("any", |(_, name)| name)
}

/// A property as clients know it; `None`: no client is told it.
fn property(spec: &PropertySpec) -> Option<PropertySchema> {
    (spec.audience != Audience::Server).then(|| PropertySchema {
        name: spec.name.clone(),
        id: spec.id.0,
        r#type: name_of(&ValueType::NAMES, &spec.value_type),
        audience: name_of(&Audience::NAMES, &spec.audience),
        writer: name_of(&Writer::NAMES, &spec.writer),
    })
}

fn kind(spec: &KindSpec) -> KindSchema {
    KindSchema {
        name: spec.name.clone(),
        properties: spec.properties.iter().filter_map(property).collect(),
    }
}

/// The schema of a configuration, or of all configurations.
///
/// # Errors
/// A scene cannot be built.
pub fn schema(config: &Config, language: Language) -> Result<String, ConfigErrors> {
    Ok(match language {
        Language::Config => format!("{:#}\n", Config::json_schema()),
        Language::Json => format!("{}\n", names(config)?),
        Language::Ts => format!(
            "// Written by `purview check --schema ts`.\n\n\
             import type {{ Schema }} from '@purview/client';\n\n\
             export const schema = {} as const satisfies Schema;\n",
            names(config)?
        ),
    })
}

/// The names, numbers and types that clients are told, as JSON.
fn names(config: &Config) -> Result<String, ConfigErrors> {
    let scene = |spec: &purview::scene::SceneSpec| SceneSchema {
        name: spec.name.clone(),
        kinds: spec.kinds.iter().map(kind).collect(),
    };
    let scenes = config.build_scenes()?.iter().map(|s| scene(&s.spec)).collect();
    // Names and numbers always have a JSON form.
    Ok(serde_json::to_string_pretty(&Schema { scenes }).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[[scene]]\nname = \"keep\"\nkind = [\n\
        { name = \"player\", properties = [\n\
        { name = \"hp\", id = 1, type = \"int\" },\n\
        { name = \"stance\", id = 2, type = \"text\", writer = \"owner\" },\n\
        { name = \"quest\", id = 5, audience = \"server\" } ] },\n\
        { name = \"wolf\", properties = [{ name = \"hp\", id = 9, type = \"float\" }] } ]\n";

    #[test]
    fn a_schema_has_what_clients_are_told() {
        let config = Config::parse(CONFIG).unwrap();
        let json = schema(&config, Language::Json).unwrap();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let want = serde_json::json!({ "scenes": [{ "name": "keep", "kinds": [
            { "name": "player", "properties": [
                { "name": "hp", "id": 1, "type": "int", "audience": "viewers", "writer": "logic" },
                { "name": "stance", "id": 2, "type": "text", "audience": "viewers", "writer": "owner" },
            ] },
            { "name": "wolf", "properties": [
                { "name": "hp", "id": 9, "type": "float", "audience": "viewers", "writer": "logic" },
            ] },
        ] }] });
        assert_eq!(read, want);
        let ts = schema(&config, Language::Ts).unwrap();
        assert!(ts.contains(json.trim_end()) && ts.contains("as const satisfies Schema;"), "{ts}");
    }
}
