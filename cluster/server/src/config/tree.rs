//! All settings as one tree, whether they come from a file, the environment or flags. Every node
//! knows its origin, so that an error can point there.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::origin::Origin;

/// A value of the tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Text(String),
    Integer(i64),
    /// A value of a type that no key has: a float, a boolean or a date, as written.
    Odd(String),
    Array(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub item: Item,
    pub origin: Origin,
    /// The text of an override; it may be a text without quotes.
    pub raw: Option<String>,
}

/// A setting given on the command line: `gateway.ws=127.0.0.1:0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The key's path, with dots; entries of a list by index from 0.
    pub path: String,
    /// The value, with or without the quotes of a text.
    pub value: String,
}

/// A `--set` argument without `=`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be KEY=VALUE, for example gateway.ws=127.0.0.1:0")]
pub struct OverrideError;

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Override, OverrideError> {
        let (path, value) = text.split_once('=').ok_or(OverrideError)?;
        let (path, value) = (path.trim(), value.trim());
        if path.is_empty() {
            return Err(OverrideError);
        }
        Ok(Override { path: path.into(), value: value.into() })
    }
}

/// The path of an environment variable: `PURVIEW_GATEWAY__WS` sets `gateway.ws`, and `PURVIEW_TICK`
/// sets `tick`. Other names without a double underscore are not settings: Kubernetes sets several
/// that start with a service's name.
pub(super) fn path_of_env(name: &str) -> Option<String> {
    let rest = name.strip_prefix("PURVIEW_")?;
    (rest.contains("__") || rest == "TICK").then(|| rest.to_lowercase().replace("__", "."))
}

impl Node {
    pub fn table(origin: Origin) -> Node {
        Node { item: Item::Table(BTreeMap::new()), origin, raw: None }
    }

    pub fn parse(text: &str, file: &Path) -> Result<Node, Vec<ConfigError>> {
        let line = |at: usize| text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        let origin = |at: usize| Origin::File(file.to_path_buf(), line(at));
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let root = Origin::File(file.to_path_buf(), 0);
            return Ok(Node {
                item: from_table(table.get_ref(), &origin),
                origin: root,
                raw: None,
            });
        }
        let tell = |e: toml::de::Error| ConfigError {
            key: String::new(),
            found: None,
            rule: e.message().to_string(),
            origin: origin(e.span().map_or(0, |s| s.start)),
        };
        Err(errors.into_iter().map(tell).collect())
    }

    /// The same tree as defaults: no value was set by anybody.
    pub fn into_defaults(mut self) -> Node {
        self.origin = Origin::Default;
        self.item = match self.item {
            Item::Array(list) => Item::Array(list.into_iter().map(Node::into_defaults).collect()),
            Item::Table(table) => {
                let table = table.into_iter().map(|(name, node)| (name, node.into_defaults()));
                Item::Table(table.collect())
            }
            item => item,
        };
        self
    }

    /// Whether everything of this value is a default.
    pub fn is_default(&self) -> bool {
        let below = match &self.item {
            Item::Array(list) => list.iter().all(Node::is_default),
            Item::Table(table) => table.values().all(Node::is_default),
            Item::Text(_) | Item::Integer(_) | Item::Odd(_) => true,
        };
        self.origin == Origin::Default && below
    }

    /// Inserts an override.
    pub fn set(&mut self, path: &str, value: &str, origin: &Origin) -> Result<(), ConfigError> {
        let mut node = self;
        for segment in path.split('.') {
            node = match node.child(segment, origin) {
                Ok(child) => child,
                Err(rule) => {
                    return Err(ConfigError {
                        key: path.into(),
                        found: None,
                        rule,
                        origin: origin.clone(),
                    });
                }
            };
        }
        let line = format!("v = {value}");
        let parsed = DeTable::parse(&line).ok().filter(|table| table.get_ref().len() == 1);
        let item = parsed.and_then(|table| {
            let whole = |_| origin.clone();
            table.get_ref().get("v").map(|v| from_value(v.get_ref(), &whole))
        });
        node.item = item.unwrap_or_else(|| Item::Text(value.into()));
        node.origin = origin.clone();
        node.raw = Some(value.into());
        Ok(())
    }

    /// The child to set; missing tables are created.
    fn child(&mut self, segment: &str, origin: &Origin) -> Result<&mut Node, String> {
        let index = segment.parse::<usize>().ok();
        if index.is_some() && self.item == Item::Table(BTreeMap::new()) {
            self.item = Item::Array(Vec::new());
        }
        match &mut self.item {
            Item::Table(table) => {
                Ok(table.entry(segment.into()).or_insert_with(|| Node::table(origin.clone())))
            }
            Item::Array(list) => {
                let len = list.len();
                let Some(index) = index.filter(|i| *i <= len) else {
                    return Err(format!("a list with {len} entries has no entry {segment:?}"));
                };
                if index == len {
                    list.push(Node::table(origin.clone()));
                }
                Ok(&mut list[index])
            }
            other => Err(format!("{} is a value and has no key {segment:?}", other.text())),
        }
    }

    /// The node at a dotted path below this one.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, segment| match &node.item {
            Item::Table(table) => table.get(segment),
            Item::Array(list) => list.get(segment.parse::<usize>().ok()?),
            _ => None,
        })
    }
}

impl Item {
    /// The value as a configuration file would have it.
    pub fn text(&self) -> String {
        match self {
            Item::Text(text) => format!("{text:?}"),
            Item::Integer(value) => value.to_string(),
            Item::Odd(text) => text.clone(),
            Item::Array(list) => {
                let items: Vec<_> = list.iter().map(|n| n.item.text()).collect();
                format!("[{}]", items.join(", "))
            }
            Item::Table(_) => "{ ... }".into(),
        }
    }
}

fn from_table(table: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Item {
    let entry =
        |(key, value): (&toml::Spanned<std::borrow::Cow<'_, str>>, &toml::Spanned<DeValue<'_>>)| {
            let item = from_value(value.get_ref(), origin);
            let node = Node { item, origin: origin(key.span().start), raw: None };
            (key.get_ref().to_string(), node)
        };
    Item::Table(table.iter().map(entry).collect())
}

fn from_value(value: &DeValue<'_>, origin: &dyn Fn(usize) -> Origin) -> Item {
    match value {
        DeValue::String(text) => Item::Text(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(value) => Item::Integer(value),
            Err(_) => Item::Odd(digits.to_string()),
        },
        DeValue::Float(float) => Item::Odd(float.to_string()),
        DeValue::Boolean(value) => Item::Odd(value.to_string()),
        DeValue::Datetime(date) => Item::Odd(date.to_string()),
        DeValue::Array(list) => Item::Array(
            list.iter()
                .map(|v| Node {
                    item: from_value(v.get_ref(), origin),
                    origin: origin(v.span().start),
                    raw: None,
                })
                .collect(),
        ),
        DeValue::Table(table) => from_table(table, origin),
    }
}
