//! Regular expressions for numbers within limits, of the kind that JSON Schema has (ECMA-262).

use super::units::Quantity;

/// The texts of a quantity from `least` to `most`, in its smallest unit. A fraction passes if a legal value lies between
/// its whole number and the next one: so the expression stays short.
pub(super) fn quantity(of: Quantity, least: i64, most: i64) -> String {
    let up = |n: i64, by: i64| (n + by - 1) / by;
    let units = of.units().iter().filter_map(|(unit, worth)| {
        let whole = numbers(up(least, *worth), most / worth).map(|n| format!(r"{n}(?:\.0+)?"));
        let parted = (*worth > 1).then(|| numbers(least / worth, up(most, *worth) - 1)).flatten();
        let parted = parted.map(|n| format!(r"{n}\.[0-9]*[1-9][0-9]*"));
        let forms: Vec<String> = whole.into_iter().chain(parted).collect();
        (!forms.is_empty()).then(|| format!(r"{}\s*{unit}", any_of(&forms)))
    });
    format!(r"^\s*0*{}\s*$", any_of(&units.collect::<Vec<_>>()))
}

/// The whole numbers from `least` on, without leading zeros; `None`: there is none.
fn numbers(least: i64, most: i64) -> Option<String> {
    let mut forms = Vec::new();
    if least <= 0 && most >= 0 {
        forms.push("0".to_owned());
    }
    let (mut least, mut full) = (least.max(1), None::<(usize, usize)>);
    while least <= most {
        let digits = least.to_string().len();
        let last = 10_i64.checked_pow(digits as u32).map_or(i64::MAX, |next| next - 1);
        if least == last / 10 + 1 && last <= most {
            full = Some((full.map_or(digits, |(from, _)| from), digits));
        } else {
            forms.push(between(&least.to_string(), &last.min(most).to_string()));
        }
        least = last.saturating_add(1);
    }
    forms.extend(full.map(|(from, to)| match (from - 1, to - 1) {
        (0, 0) => "[1-9]".to_owned(),
        (from, to) if from == to => format!("[1-9]{}", any(to)),
        (from, to) => format!("[1-9][0-9]{{{from},{to}}}"),
    }));
    (!forms.is_empty()).then(|| any_of(&forms))
}

/// The numbers from one to another of as many digits.
fn between(least: &str, most: &str) -> String {
    let all = |text: &str, digit: char| text.chars().all(|c| c == digit);
    if all(least, '0') && all(most, '9') {
        return any(least.len());
    }
    let ((first, least), (last, most)) = (least.split_at(1), most.split_at(1));
    if first == last {
        return format!("{first}{}", between(least, most));
    }
    let digit = |text: &str| text.parse::<u8>().unwrap_or(0);
    let (mut from, mut to) = (digit(first), digit(last));
    let mut forms = Vec::new();
    if !all(least, '0') {
        forms.push(format!("{first}{}", between(least, &"9".repeat(least.len()))));
        from += 1;
    }
    if !all(most, '9') {
        forms.push(format!("{last}{}", between(&"0".repeat(most.len()), most)));
        to -= 1;
    }
    match from.cmp(&to) {
        std::cmp::Ordering::Less => forms.push(format!("[{from}-{to}]{}", any(most.len()))),
        std::cmp::Ordering::Equal => forms.push(format!("{from}{}", any(most.len()))),
        std::cmp::Ordering::Greater => {}
    }
    any_of(&forms)
}

fn any(digits: usize) -> String {
    match digits {
        0 => String::new(),
        1 => "[0-9]".to_owned(),
        _ => format!("[0-9]{{{digits}}}"),
    }
}

fn any_of(forms: &[String]) -> String {
    match forms {
        [only] => only.clone(),
        _ => format!("(?:{})", forms.join("|")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::config::units::Quantity::{Flow, Length, Size, Speed, Time};

    #[test]
    fn expressions_are_as_short_as_one_would_write_them() {
        let of = |least, most| numbers(least, most).unwrap_or_default();
        assert_eq!(of(1, 64), "(?:(?:6[0-4]|[1-5][0-9])|[1-9])");
        assert_eq!(of(0, 9_999), "(?:0|[1-9][0-9]{0,3})");
        assert_eq!(of(5, 4), "");
    }

    proptest! {
        #[test]
        fn numbers_within_the_limits_match_and_no_others(
            a in 0..200_000_i64, b in 0..200_000_i64, near in -3..3_i64, n in 0..300_000_i64
        ) {
            let (least, most) = (a.min(b), a.max(b));
            let pattern = Regex::new(&format!("^{}$", numbers(least, most).unwrap())).unwrap();
            for n in [n, least + near, most + near].into_iter().filter(|n| *n >= 0) {
                prop_assert_eq!(pattern.is_match(&n.to_string()), (least..=most).contains(&n), "{}", n);
            }
        }

        #[test]
        fn every_text_of_a_legal_quantity_matches(
            a in 0..400_000_i64, b in 0..400_000_i64, text in "[0-9]{1,6}([.][0-9]{1,4})? ?"
        ) {
            let (least, most) = (a.min(b), a.max(b));
            for of in [Length, Time, Speed, Size, Flow] {
                let pattern = Regex::new(&quantity(of, least, most)).unwrap();
                for (unit, worth) in of.units() {
                    let text = format!("{text}{unit}");
                    let Ok(value) = of.parse(&text) else { continue };
                    let matches = pattern.is_match(&text);
                    prop_assert!(matches || !(least..=most).contains(&value), "{}: {}", text, pattern);
                    // What is refused besides lies a unit or more beyond a limit, or is whole.
                    let beyond = value < least - worth || value > most + worth;
                    prop_assert!(!(matches && beyond), "{}: {}", text, pattern);
                }
                for value in [least, most] {
                    prop_assert!(pattern.is_match(&of.text(value)), "{}", of.text(value));
                }
                for beyond in [least - 1, most + 1].into_iter().filter(|value| *value >= 0) {
                    prop_assert!(!pattern.is_match(&of.text(beyond)), "{}", of.text(beyond));
                }
            }
        }
    }
}
