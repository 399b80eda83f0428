//! What each key of the configuration is: its name, its legal values, its meaning, and the field that it fills.
//!
//! A section is described once, by a function over [`Keys`], which reads the keys, prints them, or describes them in a
//! JSON Schema: so these never disagree.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::form::{Description, Form, Rule};
use super::page::{Page, quoted};
use super::read::{Section, text_of};

pub(super) const HOUR: i64 = 3_600_000;

/// The legal values of a path.
pub(super) const PATH: &str = "the path of a file, relative to this file's folder";
/// The same of a file in PEM.
pub(super) const PEM: &str = "the path of a file (PEM), relative to this file's folder";
/// The legal values of a name.
pub(super) const NAME: Rule<'static> = ("1 to 64 bytes of printable text", Form::Text(1, 64));

/// Where keys are read from, printed to, or described.
pub(super) enum Io<'a> {
    /// A section of the file, and the folder of the file.
    Read(Section<'a>, &'a Path),
    Print(Page),
    Describe(Description),
}

impl<'a> Io<'a> {
    fn open(&mut self, name: &'static str) -> Io<'a> {
        match self {
            Io::Read(section, folder) => Io::Read(section.section(name), folder),
            Io::Print(page) => Io::Print(page.section(name, false)),
            Io::Describe(_) => Io::Describe(Description::default()),
        }
    }

    /// Ends a part of this one; with `off`, a word may stand in its place.
    fn close(&mut self, part: Io<'a>, (name, about, off): (&str, (&str, &str), bool)) {
        match (self, part) {
            (Io::Read(section, _), Io::Read(part, _)) => section.close(part),
            (Io::Print(page), Io::Print(part)) => page.close(part),
            (Io::Describe(description), Io::Describe(part)) => {
                let schema = match off {
                    true => json!({ "anyOf": [{ "const": "off" }, part.finish()] }),
                    false => part.finish(),
                };
                description.below(name, about, schema);
            }
            _ => {}
        }
    }
}

/// The keys of a section whose fields are those of `S`.
pub(super) struct Keys<'k, 'a, S> {
    pub io: &'k mut Io<'a>,
    pub value: &'k mut S,
    pub default: &'k mut S,
}

/// A number of a field, or a time in milliseconds.
pub(super) trait Whole: Copy {
    /// Within the limits of the key, which the type holds.
    fn of(n: i64) -> Self;
    fn whole(self) -> i64;
}

macro_rules! whole {
    ($($t:ty),*) => {
        $(impl Whole for $t {
            fn of(n: i64) -> Self {
                n as $t
            }

            fn whole(self) -> i64 {
                self as i64
            }
        })*
    };
}

whole!(u8, u16, u32, usize, i32);

impl Whole for Duration {
    fn of(ms: i64) -> Self {
        Duration::from_millis(ms.unsigned_abs())
    }

    fn whole(self) -> i64 {
        i64::try_from(self.as_millis()).unwrap_or(i64::MAX)
    }
}

pub(super) type Key<'k> = (&'static str, &'k str);

impl<'a, S> Keys<'_, 'a, S> {
    /// Whether keys are read, and not printed.
    pub fn reads(&self) -> bool {
        matches!(self.io, Io::Read(..))
    }

    pub fn describes(&self) -> bool {
        matches!(self.io, Io::Describe(_))
    }

    /// Whether keys are printed: then those without effect are left out.
    pub fn prints(&self) -> bool {
        matches!(self.io, Io::Print(_))
    }

    /// Keys that must be there; `rule` says so.
    pub fn require(&mut self, names: &[&'static str], rule: &str) {
        match self.io {
            Io::Read(section, _) => {
                let missing = names.iter().filter(|name| !section.says(name));
                missing
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|name| section.missing(name, rule));
            }
            Io::Print(_) => {}
            Io::Describe(_) => self.describe_required(names),
        }
    }

    /// The same of keys that something else checks.
    pub fn describe_required(&mut self, names: &[&'static str]) {
        if let Io::Describe(description) = self.io {
            description.require(names);
        }
    }

    /// Whether the user has set a key, or something below it.
    pub fn is_set(&self, name: &str) -> bool {
        matches!(&self.io, Io::Read(section, _) if section.is_set(name))
    }

    pub fn check(&mut self, check: impl FnOnce(&mut Section<'a>, &mut S)) {
        if let Io::Read(section, _) = self.io {
            check(section, self.value);
        }
    }

    /// The keys of a part of `S` that has no section of its own.
    pub fn within<T>(&mut self, field: impl Fn(&mut S) -> &mut T) -> Keys<'_, 'a, T> {
        Keys { io: &mut *self.io, value: field(self.value), default: field(self.default) }
    }

    /// A key whose field has a value in any case.
    pub fn key<T>(
        &mut self,
        (name, rule, says): (&'static str, Rule<'_>, &str),
        field: impl Fn(&mut S) -> &mut T,
        read: impl FnOnce(&mut Section<'a>, &T) -> Option<T>,
        text: impl Fn(&T) -> String,
    ) {
        match self.io {
            Io::Read(section, _) => {
                if let Some(found) = read(section, field(self.default)) {
                    *field(self.value) = found;
                }
            }
            Io::Print(page) => {
                let default = text(field(self.default));
                page.key(name, (rule.0, says), &text(field(self.value)), &default);
            }
            Io::Describe(description) => {
                description.key(name, (rule, says), &text(field(self.default)));
            }
        }
    }

    pub fn section<T>(
        &mut self,
        (name, says): Key<'_>,
        keys: impl FnOnce(&mut Keys<'_, 'a, T>),
        field: impl Fn(&mut S) -> &mut T,
    ) {
        if let Io::Print(page) = self.io {
            page.note(says);
        }
        let mut io = self.io.open(name);
        keys(&mut Keys { io: &mut io, value: field(self.value), default: field(self.default) });
        self.io.close(io, (name, ("", says), false));
    }

    /// A section that need not be there; with `off`, `"off"` says that it is not.
    pub fn optional<T: Clone + Default>(
        &mut self,
        (name, says): Key<'_>,
        (rule, off, keys): (&str, bool, impl FnOnce(&mut Keys<'_, 'a, T>)),
        field: impl Fn(&mut S) -> &mut Option<T>,
    ) {
        match self.io {
            Io::Read(section, _) => {
                let node = section.get(name);
                if node.is_none() || off && node.and_then(text_of) == Some("off") {
                    if node.is_some() {
                        *field(self.value) = None;
                    }
                    return;
                }
            }
            Io::Print(page) => {
                if field(self.value).is_none() {
                    let value = off.then(|| quoted("off"));
                    return page.optional(name, (rule, says), value, ("{}", "none"));
                }
                page.note(says);
            }
            Io::Describe(_) => {}
        }
        let mut default = field(self.default).clone().unwrap_or_default();
        let mut value = match self.reads() {
            true => default.clone(),
            false => field(self.value).clone().unwrap_or_default(),
        };
        let mut io = self.io.open(name);
        keys(&mut Keys { io: &mut io, value: &mut value, default: &mut default });
        self.io.close(io, (name, (rule, says), off));
        *field(self.value) = Some(value);
    }

    /// A list of sections, each of which begins as `new`.
    pub fn sections<T: Clone>(
        &mut self,
        (name, says): Key<'_>,
        (new, mut keys): (T, impl FnMut(&mut Keys<'_, 'a, T>)),
        field: impl Fn(&mut S) -> &mut Vec<T>,
    ) {
        match self.io {
            Io::Read(section, folder) => {
                let Some(list) = section.list(name) else { return };
                let all = list.into_iter().map(|entry| {
                    let (mut value, mut default) = (new.clone(), new.clone());
                    let mut io = Io::Read(entry, folder);
                    keys(&mut Keys { io: &mut io, value: &mut value, default: &mut default });
                    if let Io::Read(entry, _) = io {
                        section.close(entry);
                    }
                    value
                });
                *field(self.value) = all.collect();
            }
            Io::Print(page) => {
                page.note(says);
                for value in field(self.value) {
                    let mut io = Io::Print(page.section(name, true));
                    keys(&mut Keys { io: &mut io, value, default: &mut new.clone() });
                    if let Io::Print(entry) = io {
                        page.close(entry);
                    }
                }
            }
            Io::Describe(description) => {
                let mut io = Io::Describe(Description::default());
                let (mut value, mut default) = (new.clone(), new);
                keys(&mut Keys { io: &mut io, value: &mut value, default: &mut default });
                if let Io::Describe(entry) = io {
                    let list = json!({ "type": "array", "items": entry.finish() });
                    description.below(name, ("", says), list);
                }
            }
        }
    }
}

/// Settings and their keys: each field is a key of its name, which its documentation explains. `form(limits)` is a method
/// of [`Keys`]; without one the field is no key by itself.
macro_rules! settings {
    ($(#[doc = $about:literal])+ pub struct $name:ident {
        $($(#[doc = $says:literal])+ pub $field:ident: $t:ty = $default:expr, $form:ident $limits:tt;)*
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $says])+ pub $field: $t,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $name {
            #[allow(unused_parens, reason = "one limit is no tuple")]
            pub(in crate::config) fn keys(k: &mut $crate::config::keys::Keys<'_, '_, $name>) {
                $(k.$form((stringify!($field), concat!($($says),+)), $limits, |s| &mut s.$field);)*
            }
        }
    };
}

/// Keys of a struct that is declared elsewhere: `"name" form(limits) field: "meaning";`.
macro_rules! keys {
    ($k:ident; $($name:literal $form:ident $limits:tt $($field:tt).+: $says:literal;)*) => {
        #[allow(unused_parens, reason = "one limit is no tuple")]
        {
            $($k.$form(($name, $says), $limits, |s| &mut s.$($field).+);)*
        }
    };
}

pub(super) use {keys, settings};
