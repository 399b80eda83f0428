//! A rule that a scene's configuration breaks, and how such a rule is told.
//!
//! `spec`, `layout` and `terrain` check rules and report them with these.

/// Longest length of any kind: 1,000 km. Three of them and their squares' sum fit their types.
pub(in crate::scene) const MAX_SIDE_CM: i32 = 100_000_000;

/// The rule of the names of a scene's parts.
pub(in crate::scene) const NAME_RULE: &str = "must have 1 to 64 bytes of printable text";

/// A rule that a scene breaks: which key, what it says, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {found}: {rule}")]
pub struct SpecError {
    /// The key at fault, as [`SceneSpec`](super::SceneSpec) names it.
    pub key: &'static str,
    /// What the key says, with its unit.
    pub found: String,
    /// The rule, with the figures that would satisfy it.
    pub rule: String,
}

/// Metres, for messages.
pub(in crate::scene) fn m(cm: i32) -> String {
    if cm % 100 == 0 {
        format!("{} m", cm / 100)
    } else {
        format!("{:.2} m", f64::from(cm) / 100.0)
    }
}

/// Two sides in metres, for messages.
pub(in crate::scene) fn sides([x, z]: [i32; 2]) -> String {
    if x == z { m(x) } else { format!("{} x {}", m(x), m(z)) }
}

/// Adds a broken rule to the list.
pub(in crate::scene) fn err(
    errors: &mut Vec<SpecError>,
    key: &'static str,
    found: impl ToString,
    rule: String,
) {
    errors.push(SpecError { key, found: found.to_string(), rule });
}
