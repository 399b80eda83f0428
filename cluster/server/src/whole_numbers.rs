//! Whole numbers as JSON Schema defines them: 4850.0 is one, in JSON as in a URL.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a whole number from JSON that fits into a `T`.
pub fn whole<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i128>,
{
    deserializer.deserialize_any(Whole(PhantomData))
}

/// The same for a list of four.
pub fn four<'de, D, T>(deserializer: D) -> Result<[T; 4], D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i128>,
{
    #[derive(Deserialize)]
    #[serde(bound = "T: TryFrom<i128>")]
    struct One<T>(#[serde(deserialize_with = "whole")] T);
    <[One<T>; 4]>::deserialize(deserializer).map(|all| all.map(|One(number)| number))
}

struct Whole<T>(PhantomData<T>);

impl<T: TryFrom<i128>> Whole<T> {
    fn fit<E: Error>(value: i128) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::custom(format!("{value} is out of range")))
    }
}

impl<T: TryFrom<i128>> Visitor<'_> for Whole<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        Self::fit(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        Self::fit(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        // A larger value fits into none of the number types used here.
        match value.fract() == 0.0 && value.abs() < 2_f64.powi(100) {
            true => Self::fit(value as i128),
            false => Err(E::invalid_value(Unexpected::Float(value), &self)),
        }
    }
}

/// A whole number in a URL, if it fits into a `T`: digits, with zeros after a decimal point.
pub fn parse<T: TryFrom<i128>>(text: &str) -> Option<T> {
    let all = |text: &str, is: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|b| is(&b));
    let (number, behind) = text.split_once('.').unwrap_or((text, "0"));
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = all(digits, u8::is_ascii_digit) && all(behind, |b| *b == b'0');
    let value = is_whole.then(|| number.parse::<i128>().ok()).flatten()?;
    T::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Order {
        #[serde(deserialize_with = "whole")]
        region: u32,
    }

    #[test]
    fn a_whole_number_may_have_a_point() {
        let read = |text: &str| serde_json::from_str::<Order>(&format!("{{\"region\": {text}}}"));
        for (text, want) in [("0", 0), ("4850.0", 4_850), ("-0.0", 0), ("4294967295", u32::MAX)] {
            assert_eq!(read(text).unwrap().region, want, "{text}");
        }
        assert_eq!(read("1e3").unwrap().region, 1_000);
        for text in ["-1", "4850.5", "4294967296", "1e30", "\"4\"", "null", "true", "[4]"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_whole_number_in_a_url_may_have_a_point() {
        for (text, want) in [("17", 17), ("-17.00", -17), ("-2147483648", i32::MIN), ("007", 7)] {
            assert_eq!(parse::<i32>(text), Some(want), "{text}");
        }
        for text in ["", "-", "+1", "1.", ".0", "1.5", "1e3", "0x1", " 1", "2147483648", "1.0.0"] {
            assert_eq!(parse::<i32>(text), None, "{text}");
        }
        assert_eq!(parse::<u64>("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse::<u64>("-1"), None);
    }
}
