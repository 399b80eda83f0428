//! Value parsers for flags of several tools.

pub fn positive(text: &str) -> Result<f64, &'static str> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    n.ok_or("expected a number above 0, for example 20 or 0.5")
}
