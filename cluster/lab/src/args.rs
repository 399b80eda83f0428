//! Values that flags of several tools take.

/// Parses a factor.
///
/// # Errors
/// The text is not a finite number above 0.
pub fn positive(text: &str) -> Result<f64, FactorError> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    n.ok_or(FactorError)
}

/// A factor that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("want a number above 0, for example 20 or 0.5")]
pub struct FactorError;
