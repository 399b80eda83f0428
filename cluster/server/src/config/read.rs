//! Reads typed values out of the settings tree. A section records the keys that its reader asked
//! for, so that all other keys are unknown, and it collects problems instead of stopping at the
//! first.

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::form::{A_LENGTH, Form, LENGTH, Rule};
use super::origin::Origin;
use super::page::quoted;
use super::tree::{Item, Node};
use super::units::Quantity;

/// A table of the tree being read.
#[derive(Debug)]
pub(super) struct Section<'a> {
    /// The path of the section, empty for the file itself.
    pub path: String,
    node: Option<&'a Node>,
    known: Vec<&'static str>,
    pub problems: Vec<ConfigError>,
}

impl<'a> Section<'a> {
    /// The section at `path`. A section that is not there has only defaults.
    pub fn new(path: impl Into<String>, node: Option<&'a Node>) -> Section<'a> {
        let mut section = Section { path: path.into(), node, known: vec![], problems: vec![] };
        if let Some(node) = node.filter(|n| !matches!(n.item, Item::Table(_))) {
            section.problems.push(ConfigError {
                key: section.path.clone(),
                found: Some(node.item.text()),
                rule: "must be a section with keys of its own".into(),
                origin: node.origin.clone(),
            });
            section.node = None;
        }
        section
    }

    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    /// Where a key was set, or where the section was if the key was not set.
    pub fn origin_of(&self, key: &str) -> Origin {
        let node = self.node.and_then(|n| n.at(key).or(Some(n)));
        node.map_or(Origin::Default, |n| n.origin.clone())
    }

    /// Whether the key is set.
    pub fn says(&self, name: &str) -> bool {
        self.node.is_some_and(|n| n.at(name).is_some())
    }

    /// The value of the key.
    pub fn get(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        match &self.node?.item {
            Item::Table(table) => table.get(name),
            _ => None,
        }
    }

    /// The value of the key; what `read` says against it is reported.
    pub fn value<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<T> {
        let node = self.get(name)?;
        match read(node) {
            Ok(value) => Some(value),
            Err(rule) => {
                self.wrong(name, node, rule);
                None
            }
        }
    }

    /// A section of this one; return its problems with [`Section::close`].
    pub fn section(&mut self, name: &'static str) -> Section<'a> {
        self.known.push(name);
        Section::new(self.path_of(name), self.node.and_then(|n| n.at(name)))
    }

    /// The entries of a list of sections; `None` if the key is not there.
    pub fn list(&mut self, name: &'static str) -> Option<Vec<Section<'a>>> {
        self.known.push(name);
        let node = self.node?.at(name)?;
        let path = self.path_of(name);
        let Item::Array(list) = &node.item else {
            self.wrong(name, node, format!("must be a list of sections: write [[{path}]]"));
            return None;
        };
        let entry = |(i, n)| Section::new(format!("{path}.{i}"), Some(n));
        Some(list.iter().enumerate().map(entry).collect())
    }

    /// Reports a wrong value of `key`.
    pub fn wrong(&mut self, key: &str, node: &Node, rule: impl Into<String>) {
        self.problems.push(ConfigError {
            key: self.path_of(key),
            found: Some(
                node.raw.as_ref().map_or_else(|| node.item.text(), |raw| format!("{raw:?}")),
            ),
            rule: rule.into(),
            origin: node.origin.clone(),
        });
    }

    /// Reports that the value of `key` does not go with another setting. A default does not
    /// conflict: it has no effect then.
    pub fn conflict(&mut self, key: &str, node: &Node, rule: impl Into<String>) {
        if !node.is_default() {
            self.wrong(key, node, rule);
        }
    }

    /// Whether the user set the key, or something below it.
    pub fn is_set(&self, name: &str) -> bool {
        self.node.and_then(|n| n.at(name)).is_some_and(|n| !n.is_default())
    }

    /// Reports a key that is missing here.
    pub fn missing(&mut self, name: &str, rule: &str) {
        let (path, origin) = (self.path_of(name), self.origin_of(name));
        self.problems.push(ConfigError { key: path, found: None, rule: rule.into(), origin });
    }

    /// Reports a value, set or default, that does not fit other values.
    pub fn unfit(&mut self, name: &str, found: &str, rule: String) {
        let (path, origin) = (self.path_of(name), self.origin_of(name));
        let found = Some(format!("{found:?}"));
        self.problems.push(ConfigError { key: path, found, rule, origin });
    }

    /// Refuses a key that must not be set at all, without quoting its value.
    pub fn forbid(&mut self, name: &'static str, rule: &str) {
        if self.says(name) {
            self.known.push(name);
            self.refuse(name, rule);
        }
    }

    /// Refuses the value of a key without quoting it.
    pub fn refuse(&mut self, name: &str, rule: &str) {
        let origin = match self.origin_of(name) {
            Origin::Flag(_) => Origin::Flag(format!("{}=...", self.path_of(name))),
            origin => origin,
        };
        let (key, rule) = (self.path_of(name), rule.into());
        self.problems.push(ConfigError { key, found: None, rule, origin });
    }

    /// Whether there is a problem with the key or below it.
    pub fn is_wrong(&self, key: &str) -> bool {
        let path = self.path_of(key);
        let below = |p: &ConfigError| {
            p.key.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.problems.iter().any(below)
    }

    /// A quantity in its smallest unit.
    pub fn quantity(
        &mut self,
        name: &'static str,
        of: Quantity,
        least: i64,
        most: i64,
    ) -> Option<i64> {
        self.value(name, |node| quantity_within(node, of, (least, most)))
    }

    /// A time that is a whole number of ticks, in ticks.
    pub fn ticks(&mut self, name: &'static str, limits: (i64, i64), tick_ms: u32) -> Option<u32> {
        let tick = i64::from(tick_ms);
        self.value(name, |node| {
            let ms = quantity_within(node, Quantity::Time, limits)?;
            if ms >= tick && ms % tick == 0 {
                return Ok((ms / tick) as u32);
            }
            let text = |ms| Quantity::Time.text(ms);
            let (below, above) = ((ms / tick).max(1) * tick, (ms / tick + 1) * tick);
            let examples = match below == above {
                true => format!("{:?}", text(below)),
                false => format!("{:?} or {:?}", text(below), text(above)),
            };
            Err(format!("must be a multiple of the tick of {}, for example {examples}", text(tick)))
        })
    }

    pub fn count(
        &mut self,
        name: &'static str,
        (least, most): (i64, i64),
        example: i64,
    ) -> Option<i64> {
        self.value(name, |node| match node.item {
            Item::Integer(value) if (least..=most).contains(&value) => Ok(value),
            Item::Integer(_) => Err(format!("must lie between {least} and {most}")),
            _ => {
                Err(format!("must be a whole number from {least} to {most}, for example {example}"))
            }
        })
    }

    pub fn text(&mut self, name: &'static str, rule: &str) -> Option<String> {
        self.value(name, |node| {
            let text = text_of(node).map(String::from);
            text.ok_or_else(|| format!("must be a text in quotes: {rule}"))
        })
    }

    /// A file path; a path in a configuration file is relative to `folder`.
    pub fn path(&mut self, name: &'static str, rule: &str, folder: &Path) -> Option<PathBuf> {
        let text = self.text(name, rule).filter(|text| !text.is_empty())?;
        let from_file = matches!(self.origin_of(name), Origin::File(..));
        let path = if from_file { folder.join(&text) } else { PathBuf::from(&text) };
        Some(std::path::absolute(&path).unwrap_or(path))
    }

    /// The index of one of the key's words.
    pub fn choice(&mut self, name: &'static str, words: &[&'static str]) -> Option<usize> {
        self.value(name, |node| {
            let text = text_of(node).unwrap_or_default();
            words.iter().position(|word| *word == text).ok_or_else(|| {
                let near = nearest(text, words).map(|near| format!("; did you mean {near:?}?"));
                format!("must be {}{}", one_of(words), near.unwrap_or_default())
            })
        })
    }

    /// True or false.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.value(name, |node| {
            let text = match &node.item {
                Item::Odd(text) => text.as_str(),
                _ => node.raw.as_deref().unwrap_or_default(),
            };
            text.parse().map_err(|_| "must be true or false".to_owned())
        })
    }

    /// Adds the problems of a section of this one.
    pub fn close(&mut self, section: Section<'a>) {
        self.problems.extend(section.finish());
    }

    /// All problems, unknown keys included.
    pub fn finish(mut self) -> Vec<ConfigError> {
        let Some(Node { item: Item::Table(table), .. }) = self.node else { return self.problems };
        for (name, node) in table {
            if self.known.contains(&name.as_str()) {
                continue;
            }
            let rule = match nearest(name, &self.known) {
                Some(near) => format!("unknown key; did you mean {near:?}?"),
                None => format!("unknown key; known here: {}", self.known.join(", ")),
            };
            let key = self.path_of(name);
            self.problems.push(ConfigError { key, found: None, rule, origin: node.origin.clone() });
        }
        self.problems
    }
}

/// The text of a node; an override needs no quotes.
pub(super) fn text_of(node: &Node) -> Option<&str> {
    match &node.item {
        Item::Text(text) => Some(text),
        _ => node.raw.as_deref(),
    }
}

/// The quantity of a node, in its smallest unit.
pub(super) fn quantity_of(node: &Node, quantity: Quantity) -> Result<i64, String> {
    let text = match &node.item {
        Item::Text(text) => text.clone(),
        Item::Integer(value) => value.to_string(),
        Item::Odd(text) => text.clone(),
        Item::Array(_) | Item::Table(_) => {
            return Err(format!("must be {}, for example {}", quantity.a(), quantity.examples()));
        }
    };
    quantity.parse(&text).map_err(|e| e.to_string())
}

pub(super) fn quantity_within(
    node: &Node,
    of: Quantity,
    (least, most): (i64, i64),
) -> Result<i64, String> {
    let value = quantity_of(node, of)?;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("must lie between {:?} and {:?}", of.text(least), of.text(most))),
    }
}

pub(super) const ANY_LENGTH: Form<'static> = Form::Of(Quantity::Length, 0, i32::MAX as i64);

/// A list of lengths, centimetres; `rule` says what the list is.
pub(super) fn lengths(node: &Node, rule: &str) -> Result<Vec<i32>, String> {
    let Item::Array(list) = &node.item else { return Err(format!("must be {rule}")) };
    let fits = |v: i64| i32::try_from(v).map_err(|_| "must be at most \"1000km\"".to_string());
    list.iter().map(|node| quantity_of(node, Quantity::Length).and_then(fits)).collect()
}

pub(super) fn lengths_text(lengths: &[i32]) -> String {
    let text = |cm: &i32| quoted(&Quantity::Length.text((*cm).into()));
    format!("[{}]", lengths.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// One length, or two along x and z.
pub(super) const SIDES: Rule<'static> =
    ("a length, or two: [\"16m\", \"10m\"]", Form::Either(&A_LENGTH, &Form::Few(2, 2, &A_LENGTH)));

/// The lengths of [`SIDES`], centimetres.
pub(super) fn sides(node: &Node) -> Result<[i32; 2], String> {
    let side = |node: &Node| quantity_within(node, Quantity::Length, LENGTH).map(|cm| cm as i32);
    match &node.item {
        Item::Array(list) => match &list[..] {
            [x, z] => Ok([side(x)?, side(z)?]),
            _ => Err(format!("must be {}", SIDES.0)),
        },
        _ => side(node).map(|side| [side; 2]),
    }
}

pub(super) fn sides_text(&[x, z]: &[i32; 2]) -> String {
    let side = |cm: i32| quoted(&Quantity::Length.text(cm.into()));
    if x == z { side(x) } else { format!("[{}, {}]", side(x), side(z)) }
}

/// The legal values of a choice.
pub(super) fn one_of(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("one of {}", words.join(", "))
}

/// The word of `known` that is nearest to `word`, if it is near enough to be a likely typing error.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = word.to_lowercase().replace('-', "_");
    let limit = (lower.chars().count() / 3).max(2);
    known
        .iter()
        .map(|k| (strsim::levenshtein(&lower, k), *k))
        .filter(|(d, k)| *d <= limit && *d < k.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["heartbeat", "burst", "ws", "tcp"];
        assert_eq!(nearest("heart_beat", &known), Some("heartbeat"));
        assert_eq!(nearest("brust", &known), Some("burst"));
        assert_eq!(nearest("wss", &known), Some("ws"));
        assert_eq!(nearest("elephant", &known), None);
    }
}
