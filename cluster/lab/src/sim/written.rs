//! How schedules write times and seeds.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds in a file, exact to the nanosecond.
pub mod seconds {
    use super::*;

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        const MOST_S: f64 = 1e6;
        let seconds = f64::deserialize(from)?;
        match (0.0..=MOST_S).contains(&seconds) {
            true => Ok(Duration::from_nanos((seconds * 1e9).round() as u64)),
            false => {
                Err(D::Error::custom(format!("{seconds}: expected seconds from 0 to {MOST_S}")))
            }
        }
    }
}

/// The same of a time that may be absent.
pub mod maybe_seconds {
    use super::*;

    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs_f64()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        seconds::deserialize(from).map(Some)
    }
}

/// A seed is a string in a file, because integers of TOML end below 2^63.
pub mod quoted {
    use super::*;

    pub fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(seed)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse()
            .map_err(|_| D::Error::custom(format!("seed = {text:?}: expected a quoted number")))
    }
}
