//! A script of bots: in which scenes they play, how they move, and what they do there.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use purview::scene::properties::{PropertyId, Value};
use purview_server::config::units::Quantity;
use serde::{Deserialize, Deserializer};

/// Walking speed, centimetres per second.
const SPEED_CM_S: u32 = 500;
/// The least time between two actions of one kind.
const EVERY_MIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Walk to random places all over the map, at 5 m/s
    Walk,
    /// Walk to random places around the centre of the map (sigma 20 m), at 5 m/s
    Crowd,
    /// Walk to and fro across borders, at 5 m/s
    Border,
    /// As walk, with a teleport now and then, some of them to another plane
    Teleport,
}

/// The groups of bots, which take turns: of `share` + ... bots in a row each group has its share.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(rename = "bots")]
    groups: Vec<Group>,
}

/// Bots that behave alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Group {
    pub share: u32,
    /// The scene to join; `None`: that of the command line.
    pub scene: Option<String>,
    #[serde(deserialize_with = "pattern")]
    pub pattern: Pattern,
    /// Where the bots stay; `None`: all over the map.
    pub area: Option<Area>,
    #[serde(rename = "speed", deserialize_with = "speed")]
    pub speed_cm_s: u32,
    /// How long a bot stays where it has arrived.
    #[serde(deserialize_with = "time")]
    pub rest: Duration,
    #[serde(rename = "act")]
    pub acts: Vec<Act>,
    #[serde(rename = "set")]
    pub sets: Vec<Set>,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            share: 1,
            scene: None,
            pattern: Pattern::Walk,
            area: None,
            speed_cm_s: SPEED_CM_S,
            rest: Duration::ZERO,
            acts: Vec::new(),
            sets: Vec::new(),
        }
    }
}

/// A square, centimetres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// The centre; `None`: that of the map.
    #[serde(default, rename = "centre", deserialize_with = "place")]
    pub centre_cm: Option<[i32; 2]>,
    #[serde(rename = "side", deserialize_with = "length")]
    pub side_cm: i32,
}

/// An action, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    #[serde(deserialize_with = "time")]
    pub every: Duration,
    #[serde(rename = "payload", deserialize_with = "payload")]
    payload: Payload,
}

impl Act {
    /// The payload of a bot's `nth` action.
    pub fn payload(&self, client: u32, nth: u32) -> Vec<u8> {
        match &self.payload {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Text(text) => text.replace("{n}", &format!("{client}.{nth}")).into_bytes(),
        }
    }
}

/// A text, in which `{n}` stands for a number that no other action has, or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Payload {
    Text(String),
    Bytes(Vec<u8>),
}

/// A property that the client may set, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    #[serde(deserialize_with = "time")]
    pub every: Duration,
    #[serde(deserialize_with = "property")]
    pub property: PropertyId,
    #[serde(deserialize_with = "value")]
    pub value: Value,
}

impl Script {
    /// One group, which does what the command line says.
    pub fn of(group: Group) -> Script {
        Script { groups: vec![group] }
    }

    /// Reads a script.
    ///
    /// # Errors
    /// The file cannot be read, or is no script: the error names the line.
    pub fn open(file: &Path) -> anyhow::Result<Script> {
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("{} cannot be read", file.display()))?;
        Script::parse(&text).with_context(|| format!("{} is no script of bots", file.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Script> {
        let script: Script = toml::from_str(text)?;
        ensure!(!script.groups.is_empty(), "it has no [[bots]]");
        for group in &script.groups {
            ensure!(group.share > 0, "share = 0: expected 1 or more");
            let times = group.acts.iter().map(|act| act.every);
            for every in times.chain(group.sets.iter().map(|set| set.every)) {
                ensure!(every >= EVERY_MIN, "every = {every:?}: expected 100ms or more");
            }
        }
        Ok(script)
    }

    /// The group of a bot.
    pub fn group(&self, client: u32) -> &Group {
        let all: u64 = self.groups.iter().map(|group| u64::from(group.share)).sum();
        let mut turn = u64::from(client) % all;
        let mut groups = self.groups.iter();
        loop {
            let Some(group) = groups.next() else { return &self.groups[0] };
            match turn.checked_sub(group.share.into()) {
                None => return group,
                Some(rest) => turn = rest,
            }
        }
    }
}

fn quantity<'de, D: Deserializer<'de>>(from: D, of: Quantity) -> Result<i64, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = of.parse(&text).map_err(|e| format!("{text:?} {e}"));
    let parsed =
        parsed.and_then(|n| if n < 0 { Err(format!("{text:?} is negative")) } else { Ok(n) });
    parsed.map_err(serde::de::Error::custom)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    quantity(from, Quantity::Time).map(|ms| Duration::from_millis(ms.unsigned_abs()))
}

/// A quantity above 0.
fn positive<'de, D: Deserializer<'de>, N: TryFrom<i64>>(
    from: D,
    of: Quantity,
) -> Result<N, D::Error> {
    let number = quantity(from, of)?;
    N::try_from(number).ok().filter(|_| number > 0).ok_or_else(|| {
        let text = format!("expected {} above 0, for example {}", of.a(), of.examples());
        serde::de::Error::custom(text)
    })
}

fn speed<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    positive(from, Quantity::Speed)
}

fn length<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    positive(from, Quantity::Length)
}

fn place<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[i32; 2]>, D::Error> {
    #[derive(Deserialize)]
    struct Length(#[serde(deserialize_with = "length")] i32);
    let place = <[Length; 2]>::deserialize(from)?;
    Ok(Some(place.map(|length| length.0)))
}

fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Pattern, D::Error> {
    let text = String::deserialize(from)?;
    Pattern::from_str(&text, false).map_err(|_| {
        let names = Pattern::value_variants().iter().map(crate::args::name);
        let names = names.collect::<Vec<_>>().join(", ");
        serde::de::Error::custom(format!("{text:?} is no pattern: expected one of {names}"))
    })
}

fn payload<'de, D: Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
    let text = String::deserialize(from)?;
    let Some(digits) = text.strip_prefix("0x") else { return Ok(Payload::Text(text)) };
    let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.map(Payload::Bytes).ok_or_else(|| {
        serde::de::Error::custom(format!("{text:?}: expected two hexadecimal digits for each byte"))
    })
}

fn property<'de, D: Deserializer<'de>>(from: D) -> Result<PropertyId, D::Error> {
    u8::deserialize(from).map(PropertyId)
}

fn value<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    let value = toml::Value::deserialize(from)?;
    let value = match &value {
        toml::Value::Integer(n) => Value::of(n),
        toml::Value::Float(n) => Value::of(n),
        toml::Value::Boolean(is) => Value::of(is),
        toml::Value::String(text) => Value::of(text),
        other => {
            let text = format!("{other}: expected a number, true, false or a text");
            return Err(serde::de::Error::custom(text));
        }
    };
    value.map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"
        [[bots]]
        share = 3
        scene = "city"
        pattern = "crowd"
        area = { centre = ["120m", "80m"], side = "50m" }
        speed = "2m/s"
        rest = "1.5s"
        act = [{ every = "4s", payload = "wave {n}" }, { every = "1s", payload = "0x01ff" }]
        set = [{ every = "30s", property = 2, value = 7 }]

        [[bots]]
    "#;

    #[test]
    fn a_script_says_where_bots_play_how_they_move_and_what_they_do() {
        let script = Script::parse(SCRIPT).unwrap();
        let city = script.group(0);
        assert_eq!((city.scene.as_deref(), city.pattern), (Some("city"), Pattern::Crowd));
        assert_eq!((city.speed_cm_s, city.rest), (200, Duration::from_millis(1_500)));
        assert_eq!(city.area, Some(Area { centre_cm: Some([12_000, 8_000]), side_cm: 5_000 }));
        assert_eq!(city.acts[0].payload(4, 9), b"wave 4.9");
        assert_eq!(city.acts[1].payload(4, 9), [1, 255]);
        assert_eq!(city.sets[0].property, PropertyId(2));
        assert_eq!(city.sets[0].value.read::<i64>().ok(), Some(7));
        assert_eq!(*script.group(3), Group::default());
        let of_first = (0..40).filter(|client| script.group(*client).share == 3).count();
        assert_eq!(of_first, 30, "three of four");
    }

    #[test]
    fn what_is_wrong_in_a_script_is_named_with_what_would_be_right() {
        for (wrong, said) in [
            ("", "missing field `bots`"),
            ("bots = []", "no [[bots]]"),
            ("[[bots]]\nshare = 0", "share = 0: expected 1 or more"),
            ("[[bots]]\nspeed = \"5\"", "for example"),
            ("[[bots]]\nspeed = \"0m/s\"", "above 0"),
            ("[[bots]]\nrest = \"-1s\"", "is not a time"),
            ("[[bots]]\npattern = \"fly\"", "expected one of walk, crowd, border, teleport"),
            ("[[bots]]\nact = [{ every = \"1ms\", payload = \"\" }]", "100ms or more"),
            ("[[bots]]\nact = [{ every = \"1s\", payload = \"0x1\" }]", "two hexadecimal digits"),
            ("[[bots]]\nset = [{ every = \"1s\", property = 300, value = 1 }]", "300"),
            ("[[bots]]\nset = [{ every = \"1s\", property = 2, value = [] }]", "expected a number"),
            ("[[bots]]\nfly = true", "unknown field `fly`"),
        ] {
            let error = format!("{:#}", Script::parse(wrong).unwrap_err());
            assert!(error.contains(said), "{wrong:?}: {error}");
        }
    }
}
