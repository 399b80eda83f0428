//! Value parsers for flags of several tools, and the names of values.

use clap::ValueEnum;

/// As it is named on the command line.
pub fn name(of: &impl ValueEnum) -> String {
    of.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Parses metres above 0.
pub fn centimetres(text: &str) -> Result<i32, &'static str> {
    positive(text).map(|metres| ((metres * 100.0) as i32).max(1))
}

pub fn positive(text: &str) -> Result<f64, &'static str> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    n.ok_or("expected a number above 0, for example 20 or 0.5")
}
