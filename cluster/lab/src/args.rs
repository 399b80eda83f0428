//! Value parsers for flags of several tools.

/// Parses a factor.
///
/// # Errors
/// The text is not a finite number above 0.
pub fn positive(text: &str) -> Result<f64, FactorError> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    n.ok_or(FactorError)
}

/// The error of an invalid factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a number above 0, for example 20 or 0.5")]
pub struct FactorError;
