//! Quantities with units in their text: `"80m"`, `"100ms"`, `"20m/s"`, `"16KiB"`.
//!
//! A text is converted exactly into a whole number of the smallest unit, and back into the shortest
//! text of equal value.

/// What a quantity measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A length, in centimetres.
    Length,
    /// A time, in milliseconds.
    Time,
    /// A speed, in centimetres per second.
    Speed,
    /// A size, in bytes.
    Size,
    /// A flow of data, in bits per second.
    Flow,
}

/// Why a text is not a quantity. The message gives examples of correct texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("{} needs a unit, for example {}", .0.a(), .0.examples())]
    NoUnit(Quantity),
    /// A unit that the quantity does not have.
    #[error("{unit:?} is not a unit of {}; write for example {}", .of.noun(), .of.examples())]
    UnknownUnit {
        /// What was wanted.
        of: Quantity,
        /// The text after the number.
        unit: String,
    },
    /// Not a number at all.
    #[error("is not {}; write for example {}", .0.a(), .0.examples())]
    NotANumber(Quantity),
    /// A fraction of the smallest unit.
    #[error("is finer than {}, the smallest step of {}", .0.text(1), .0.a())]
    TooFine(Quantity),
    /// Larger than the number type.
    #[error("is too large for {}", .0.a())]
    TooLarge(Quantity),
}

impl Quantity {
    /// The units and their values in the smallest unit, largest first.
    pub(super) fn units(self) -> &'static [(&'static str, i64)] {
        match self {
            Quantity::Length => &[("km", 100_000), ("m", 100), ("cm", 1)],
            Quantity::Time => &[("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)],
            Quantity::Speed => &[("m/s", 100), ("cm/s", 1)],
            Quantity::Size => &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)],
            Quantity::Flow => &[("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)],
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Quantity::Length => "length",
            Quantity::Time => "time",
            Quantity::Speed => "speed",
            Quantity::Size => "size",
            Quantity::Flow => "flow of data",
        }
    }

    /// The quantity's name with its article, such as "a length".
    pub fn a(self) -> String {
        format!("a {}", self.noun())
    }

    /// Examples of correct texts, for messages.
    pub fn examples(self) -> &'static str {
        match self {
            Quantity::Length => r#""80m", "250cm" or "1.5km""#,
            Quantity::Time => r#""100ms", "30s" or "2m""#,
            Quantity::Speed => r#""20m/s" or "250cm/s""#,
            Quantity::Size => r#""16KiB", "512B" or "1MiB""#,
            Quantity::Flow => r#""20kbps" or "1Mbps""#,
        }
    }

    /// Reads a quantity, in its smallest unit; never negative.
    ///
    /// # Errors
    /// [`UnitError`] when the text is not a number with one of the quantity's units.
    pub fn parse(self, text: &str) -> Result<i64, UnitError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let dot_without_digits = number.contains('.') && fraction.is_empty();
        if whole.is_empty() || dot_without_digits || fraction.contains('.') {
            return Err(UnitError::NotANumber(self));
        }
        let unit = unit.trim();
        if unit.is_empty() {
            return Err(UnitError::NoUnit(self));
        }
        let Some((_, worth)) = self.units().iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError::UnknownUnit { of: self, unit: unit.into() });
        };
        let whole: i64 = whole.parse().map_err(|_| UnitError::TooLarge(self))?;
        let whole = whole.checked_mul(*worth).ok_or(UnitError::TooLarge(self))?;
        whole.checked_add(self.part(fraction, *worth)?).ok_or(UnitError::TooLarge(self))
    }

    /// The value of the digits after the decimal point.
    fn part(self, fraction: &str, worth: i64) -> Result<i64, UnitError> {
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() {
            return Ok(0);
        }
        if fraction.len() > 12 {
            return Err(UnitError::TooFine(self));
        }
        let digits: i128 = fraction.parse().map_err(|_| UnitError::NotANumber(self))?;
        let scale = 10_i128.pow(fraction.len() as u32);
        let scaled = digits * i128::from(worth);
        if scaled % scale != 0 {
            return Err(UnitError::TooFine(self));
        }
        i64::try_from(scaled / scale).map_err(|_| UnitError::TooLarge(self))
    }

    /// The shortest text without a decimal point for `value`, which is in the smallest unit.
    pub fn text(self, value: i64) -> String {
        let base = match self {
            Quantity::Length => ("m", 100),
            Quantity::Time => ("ms", 1),
            Quantity::Flow => ("bps", 1),
            Quantity::Speed => ("m/s", 100),
            Quantity::Size => ("B", 1),
        };
        let fits = |(_, worth): &&(&str, i64)| value % worth == 0 && value != 0;
        let (unit, worth) = *self.units().iter().find(fits).unwrap_or(&base);
        format!("{}{unit}", value / worth)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Quantity; 5] =
        [Quantity::Length, Quantity::Time, Quantity::Speed, Quantity::Size, Quantity::Flow];

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(Quantity::Length.parse("80m"), Ok(8_000));
        assert_eq!(Quantity::Length.parse("250cm"), Ok(250));
        assert_eq!(Quantity::Length.parse("1.5km"), Ok(150_000));
        assert_eq!(Quantity::Length.parse("0.29m"), Ok(29));
        assert_eq!(Quantity::Length.parse(" 3 m "), Ok(300));
        assert_eq!(Quantity::Time.parse("100ms"), Ok(100));
        assert_eq!(Quantity::Time.parse("30s"), Ok(30_000));
        assert_eq!(Quantity::Time.parse("2m"), Ok(120_000));
        assert_eq!(Quantity::Speed.parse("20m/s"), Ok(2_000));
        assert_eq!(Quantity::Size.parse("16KiB"), Ok(16_384));
    }

    #[test]
    fn errors_about_quantities_give_an_example() {
        let tell = |q: Quantity, text| q.parse(text).unwrap_err().to_string();
        assert_eq!(
            tell(Quantity::Length, "80"),
            r#"a length needs a unit, for example "80m", "250cm" or "1.5km""#
        );
        assert_eq!(
            tell(Quantity::Length, "80ft"),
            r#""ft" is not a unit of length; write for example "80m", "250cm" or "1.5km""#
        );
        assert_eq!(
            tell(Quantity::Time, "soon"),
            r#"is not a time; write for example "100ms", "30s" or "2m""#
        );
        assert_eq!(
            tell(Quantity::Speed, "-3m/s"),
            r#"is not a speed; write for example "20m/s" or "250cm/s""#
        );
        assert_eq!(
            tell(Quantity::Length, "0.5cm"),
            "is finer than 1cm, the smallest step of a length"
        );
        assert_eq!(tell(Quantity::Size, "99999999999GiB"), "is too large for a size");
    }

    #[test]
    fn the_shortest_text_is_chosen() {
        assert_eq!(Quantity::Length.text(150_000), "1500m");
        assert_eq!(Quantity::Length.text(200_000), "2km");
        assert_eq!(Quantity::Length.text(0), "0m");
        assert_eq!(Quantity::Time.text(120_000), "2m");
        assert_eq!(Quantity::Time.text(0), "0ms");
        assert_eq!(Quantity::Size.text(16_384), "16KiB");
    }

    proptest! {
        #[test]
        fn text_reads_back_as_the_same_value(value in 0..i64::MAX / 4) {
            for q in ALL {
                prop_assert_eq!(q.parse(&q.text(value)), Ok(value));
            }
        }

        #[test]
        fn no_text_panics(text in ".*", digits in "[0-9]{0,30}[.]?[0-9]{0,30}(km|m|GiB|h|m/s)?") {
            for q in ALL {
                let _ = (q.parse(&text), q.parse(&digits));
            }
        }
    }
}
