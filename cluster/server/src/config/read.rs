//! Reads typed values out of the settings tree. A section records the keys that its reader asked
//! for, so that all other keys are unknown, and it collects problems instead of stopping at the
//! first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ConfigError;
use super::keys::{Form, Key, nearest};
use super::origin::Origin;
use super::tree::{Item, Node};
use super::units::Quantity;

/// A table of the tree being read.
#[derive(Debug)]
pub(super) struct Section<'a> {
    /// The path of the section, empty for the file itself.
    pub path: String,
    node: Option<&'a Node>,
    known: Vec<&'static str>,
    /// The problems so far.
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

    /// The path of a key of this section.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    /// Where a key was set, or where the section was if the key was not set.
    pub fn origin_of(&self, key: &str) -> Origin {
        let node = self.node.and_then(|n| n.at(key).or(Some(n)));
        node.map_or(Origin::Default, |n| n.origin.clone())
    }

    /// Whether the key is set.
    pub fn says(&self, key: &Key) -> bool {
        self.node.is_some_and(|n| n.at(key.name).is_some())
    }

    /// The value of the key.
    pub fn get(&mut self, key: &Key) -> Option<&'a Node> {
        self.known.push(key.name);
        match &self.node?.item {
            Item::Table(table) => table.get(key.name),
            _ => None,
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
    pub fn is_set(&self, key: &Key) -> bool {
        self.node.and_then(|n| n.at(key.name)).is_some_and(|n| !n.is_default())
    }

    /// Reports a key that is missing here.
    pub fn missing(&mut self, key: &Key, rule: &str) {
        let (path, origin) = (self.path_of(key.name), self.origin_of(key.name));
        self.problems.push(ConfigError { key: path, found: None, rule: rule.into(), origin });
    }

    /// Reports a value, set or default, that does not fit other values.
    pub fn unfit(&mut self, key: &Key, found: &str, rule: String) {
        let (path, origin) = (self.path_of(key.name), self.origin_of(key.name));
        let found = Some(format!("{found:?}"));
        self.problems.push(ConfigError { key: path, found, rule, origin });
    }

    /// Refuses a key that must not be set at all, without quoting its value.
    pub fn forbid(&mut self, name: &'static str, rule: &str) {
        let Some(node) = self.node.and_then(|n| n.at(name)) else { return };
        self.known.push(name);
        let origin = match &node.origin {
            Origin::Flag(_) => Origin::Flag(format!("{}=...", self.path_of(name))),
            origin => origin.clone(),
        };
        let (key, rule) = (self.path_of(name), rule.into());
        self.problems.push(ConfigError { key, found: None, rule, origin });
    }

    /// Refuses the value of a key without quoting it.
    pub fn refuse(&mut self, key: &Key, rule: &str) {
        let origin = match self.origin_of(key.name) {
            Origin::Flag(_) => Origin::Flag(format!("{}=...", self.path_of(key.name))),
            origin => origin,
        };
        let (key, rule) = (self.path_of(key.name), rule.into());
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
    pub fn quantity(&mut self, key: &Key, default: i64) -> i64 {
        let Some(node) = self.get(key) else { return default };
        let Form::Quantity(quantity, min, max) = key.form else { return default };
        match quantity_of(node, quantity) {
            Ok(value) if (min..=max).contains(&value) => return value,
            Ok(_) => {
                let (min, max) = (quantity.text(min), quantity.text(max));
                self.wrong(key.name, node, format!("must lie between {min:?} and {max:?}"));
            }
            Err(rule) => self.wrong(key.name, node, rule),
        }
        default
    }

    /// A whole number.
    pub fn count(&mut self, key: &Key, default: i64) -> i64 {
        let Some(node) = self.get(key) else { return default };
        let Form::Count(min, max) = key.form else { return default };
        match node.item {
            Item::Integer(value) if (min..=max).contains(&value) => return value,
            Item::Integer(_) => {
                self.wrong(key.name, node, format!("must lie between {min} and {max}"));
            }
            _ => {
                let rule = format!("must be {}, for example {default}", key.form.rule());
                self.wrong(key.name, node, rule);
            }
        }
        default
    }

    /// A text.
    pub fn text(&mut self, key: &Key, default: &str) -> String {
        let Some(node) = self.get(key) else { return default.into() };
        match text_of(node) {
            Some(text) => text.into(),
            None => {
                self.wrong(
                    key.name,
                    node,
                    format!("must be a text in quotes: {}", key.form.rule()),
                );
                default.into()
            }
        }
    }

    /// A file path; a path in a configuration file is relative to `folder`.
    pub fn path(&mut self, key: &Key, folder: &Path) -> Option<PathBuf> {
        let text = self.text(key, "");
        let from_file = matches!(self.origin_of(key.name), Origin::File(..));
        (!text.is_empty()).then(|| {
            let path = if from_file { folder.join(&text) } else { PathBuf::from(&text) };
            std::path::absolute(&path).unwrap_or(path)
        })
    }

    /// The index of one of the key's words.
    pub fn choice(&mut self, key: &Key, default: usize) -> usize {
        let Some(node) = self.get(key) else { return default };
        let Form::Choice(words) = key.form else { return default };
        let text = text_of(node).unwrap_or_default();
        if let Some(place) = words.iter().position(|w| *w == text) {
            return place;
        }
        let mut rule = format!("must be {}", key.form.rule());
        if let Some(near) = nearest(text, words) {
            rule += &format!("; did you mean {near:?}?");
        }
        self.wrong(key.name, node, rule);
        default
    }

    /// True or false.
    pub fn flag(&mut self, key: &Key, default: bool) -> bool {
        let Some(node) = self.get(key) else { return default };
        let text = match &node.item {
            Item::Odd(text) => text.as_str(),
            _ => node.raw.as_deref().unwrap_or_default(),
        };
        match text {
            "true" => true,
            "false" => false,
            _ => {
                self.wrong(key.name, node, format!("must be {}", key.form.rule()));
                default
            }
        }
    }

    /// An address on which to listen; `None` is "off".
    pub fn address(&mut self, key: &Key, default: Option<SocketAddr>) -> Option<SocketAddr> {
        let Some(node) = self.get(key) else { return default };
        let text = text_of(node).unwrap_or_default();
        if text == "off" && matches!(key.form, Form::AddressOrOff) {
            return None;
        }
        match text.parse() {
            Ok(address) => Some(address),
            Err(_) => {
                self.wrong(key.name, node, format!("must be {}", key.form.rule()));
                default
            }
        }
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

/// A time, in milliseconds or with a unit.
pub(super) fn time(s: &mut Section<'_>, key: &Key, default: Duration) -> Duration {
    Duration::from_millis(s.quantity(key, default.as_millis() as i64) as u64)
}

/// A length that fits `i32`; the key's range guarantees it.
pub(super) fn cm(s: &mut Section<'_>, key: &Key, default: i32) -> i32 {
    s.quantity(key, default.into()) as i32
}

/// A time that is a whole number of ticks, in ticks.
pub(super) fn rate(s: &mut Section<'_>, key: &Key, tick_ms: u32, default: u32) -> u32 {
    let tick = i64::from(tick_ms);
    let ms = s.quantity(key, i64::from(default) * tick);
    if ms >= tick && ms % tick == 0 {
        return (ms / tick) as u32;
    }
    if let Some(node) = s.get(key) {
        let text = |ms| Quantity::Time.text(ms);
        let (below, above) = ((ms / tick).max(1) * tick, (ms / tick + 1) * tick);
        let examples = match below == above {
            true => format!("{:?}", text(below)),
            false => format!("{:?} or {:?}", text(below), text(above)),
        };
        let rule =
            format!("must be a multiple of the tick of {}, for example {examples}", text(tick));
        s.wrong(key.name, node, rule);
    }
    default
}
