//! Which texts are names: of scenes, kinds, doors, nodes, workers and players. Names reach log lines,
//! metrics and terminals, so a name is one printable line. Whoever takes a name from outside asks here.

/// Whether a text may be a name: 1 to `most` bytes that all are part of one printable line.
pub fn is_name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && !text.chars().any(disturbs_line)
}

/// Whether a character begins a new line, controls a terminal, or changes the direction of what
/// follows.
fn disturbs_line(c: char) -> bool {
    let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_printable_line() {
        for good in ["a", "city 7", "Grüße", "場面", "a\u{200d}b"] {
            assert!(is_name(good, 16), "{good:?}");
        }
        let bad = ["", "a\nINFO forged", "a\rb", "\u{1b}[2J", "a\0", "a\u{85}b", "a\u{2028}b"];
        for bad in bad.into_iter().chain(["a\u{202e}b", "a\u{2066}b", "12345678901234567"]) {
            assert!(!is_name(bad, 16), "{bad:?}");
        }
    }
}
