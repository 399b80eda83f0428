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

/// Parses a share of a whole.
///
/// # Errors
/// The text is not a number from 0 to 1.
pub fn share(text: &str) -> Result<f64, ShareError> {
    let n = text.parse().ok().filter(|n: &f64| (0.0..=1.0).contains(n));
    n.ok_or(ShareError)
}

/// The error of an invalid share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0 to 1, for example 0.5")]
pub struct ShareError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_between_nothing_and_the_whole() {
        assert_eq!(["0", "0.25", "1"].map(share), [Ok(0.0), Ok(0.25), Ok(1.0)]);
        for wrong in ["", "-0.1", "1.01", "NaN", "half"] {
            assert_eq!(share(wrong), Err(ShareError), "{wrong}");
        }
    }
}
