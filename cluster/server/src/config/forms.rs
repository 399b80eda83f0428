//! The forms that values of keys have: how each is read, printed, and described.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::form::{ADDRESS, Form, Rule, TEXT};
use super::keys::{HOUR, Io, Key, Keys, PEM, Whole};
use super::page::quoted;
use super::read::{Section, one_of, text_of};
use super::tree::{Item, Node};
use super::units::Quantity::{self, Length, Time};

impl<'a, S> Keys<'_, 'a, S> {
    /// A quantity from `least` to `most`, in its smallest unit.
    pub fn quantity<T: Whole>(
        &mut self,
        (name, says): Key<'_>,
        (of, least, most): (Quantity, i64, i64),
        field: impl Fn(&mut S) -> &mut T,
    ) {
        let rule = format!("{} from {:?} to {:?}", of.a(), of.text(least), of.text(most));
        let rule = (&*rule, Form::Of(of, least, most));
        let read = |s: &mut Section<'a>, _: &T| s.quantity(name, of, least, most).map(T::of);
        self.key((name, rule, says), field, read, |n| quoted(&of.text(n.whole())));
    }

    pub fn length(
        &mut self,
        (name, says): Key<'_>,
        (least, most): (i64, i64),
        field: impl Fn(&mut S) -> &mut i32,
    ) {
        self.quantity((name, says), (Length, least, most), field);
    }

    pub fn time<T: Whole>(
        &mut self,
        (name, says): Key<'_>,
        (least, most): (i64, i64),
        field: impl Fn(&mut S) -> &mut T,
    ) {
        self.quantity((name, says), (Time, least, most), field);
    }

    /// A time of whole ticks; the field has ticks.
    pub fn ticks(
        &mut self,
        (name, says): Key<'_>,
        tick_ms: u32,
        field: impl Fn(&mut S) -> &mut u32,
    ) {
        let ms = |ticks: &u32| quoted(&Time.text(i64::from(*ticks) * i64::from(tick_ms)));
        let (least, most) = (10, HOUR / 4);
        let rule = format!("a time from {:?} to {:?}", Time.text(least), Time.text(most));
        let rule = (&*rule, Form::Of(Time, least, most));
        let read = |s: &mut Section<'a>, _: &u32| s.ticks(name, (least, most), tick_ms);
        self.key((name, rule, says), field, read, ms);
    }

    pub fn count<T: Whole>(
        &mut self,
        (name, says): Key<'_>,
        (least, most): (i64, i64),
        field: impl Fn(&mut S) -> &mut T,
    ) {
        let rule = format!("a whole number from {least} to {most}");
        let rule = (&*rule, Form::Whole(least, most));
        let read = |s: &mut Section<'a>, default: &T| {
            s.count(name, (least, most), default.whole()).map(T::of)
        };
        self.key((name, rule, says), field, read, |n| n.whole().to_string());
    }

    /// The same, if it is set: printed as a comment with `usual` otherwise.
    pub fn optional_count(
        &mut self,
        (name, says): Key<'_>,
        (least, most, usual): (i64, i64, i64),
        field: impl Fn(&mut S) -> &mut Option<u32>,
    ) {
        let rule = format!("a whole number from {least} to {most}");
        match self.io {
            Io::Read(section, _) => {
                if let Some(n) = section.count(name, (least, most), usual) {
                    *field(self.value) = Some(u32::of(n));
                }
            }
            Io::Print(page) => {
                let (value, usual) = (field(self.value).map(|n| n.to_string()), usual.to_string());
                page.optional(name, (&rule, says), value, (&usual, &usual));
            }
            Io::Describe(description) => {
                let rule = (&*rule, Form::Whole(least, most));
                description.key(name, (rule, says), &usual.to_string());
            }
        }
    }

    pub fn flag(&mut self, (name, says): Key<'_>, (): (), field: impl Fn(&mut S) -> &mut bool) {
        let read = |s: &mut Section<'a>, _: &bool| s.flag(name);
        self.key((name, ("true or false", Form::Flag), says), field, read, bool::to_string);
    }

    pub fn text(
        &mut self,
        (name, says): Key<'_>,
        rule: Rule<'_>,
        field: impl Fn(&mut S) -> &mut String,
    ) {
        let read = |s: &mut Section<'a>, _: &String| s.text(name, rule.0);
        self.key((name, rule, says), field, read, |text| quoted(text));
    }

    /// A text that is not there if it is empty.
    pub fn optional_text(
        &mut self,
        (name, says): Key<'_>,
        rule: &str,
        field: impl Fn(&mut S) -> &mut Option<String>,
    ) {
        let read = |s: &mut Section<'a>, _: &Option<String>| {
            s.text(name, rule).map(|text| (!text.is_empty()).then_some(text))
        };
        let rule = (rule, TEXT);
        self.key((name, rule, says), field, read, |text| quoted(text.as_deref().unwrap_or("")));
    }

    /// The path of a file or folder; printed as a comment with an example if there is none.
    pub fn path(
        &mut self,
        (name, says): Key<'_>,
        (rule, example): (&str, &str),
        field: impl Fn(&mut S) -> &mut Option<PathBuf>,
    ) {
        match self.io {
            Io::Read(section, folder) => {
                if let Some(path) = section.path(name, rule, folder) {
                    *field(self.value) = Some(path);
                }
            }
            Io::Print(page) => {
                let path = field(self.value).as_ref().map(|path| quoted(&path.to_string_lossy()));
                page.optional(name, (rule, says), path, (&quoted(example), "none"));
            }
            Io::Describe(description) => description.key(name, ((rule, TEXT), says), ""),
        }
    }

    /// The path of a file that must be there if its section is.
    pub fn file(
        &mut self,
        (name, says): Key<'_>,
        missing: &str,
        field: impl Fn(&mut S) -> &mut PathBuf,
    ) {
        match self.io {
            Io::Read(section, folder) => match section.path(name, PEM, folder) {
                Some(path) => *field(self.value) = path,
                None => section.missing(name, &format!("is missing; {missing}")),
            },
            Io::Print(page) => {
                let path = quoted(&field(self.value).to_string_lossy());
                page.key(name, (PEM, says), &path, "none");
            }
            Io::Describe(description) => {
                description.require(&[name]);
                description.key(name, ((PEM, TEXT), says), "");
            }
        }
    }

    /// One of several words.
    pub fn choice<T: Copy + PartialEq>(
        &mut self,
        (name, says): Key<'_>,
        words: &[(T, &'static str)],
        field: impl Fn(&mut S) -> &mut T,
    ) {
        let names: Vec<&'static str> = words.iter().map(|(_, word)| *word).collect();
        let read = |s: &mut Section<'a>, _: &T| s.choice(name, &names).map(|at| words[at].0);
        let word = |value: &T| {
            let named = words.iter().find(|(of, _)| of == value);
            quoted(named.map_or("", |(_, word)| *word))
        };
        self.key((name, (&one_of(&names), Form::Words(&names)), says), field, read, word);
    }

    /// As [`Keys::choice`], if one is made: printed as a comment with `usual` otherwise.
    pub fn optional_choice<T: Copy + PartialEq>(
        &mut self,
        (name, says): Key<'_>,
        words: &[(T, &'static str)],
        field: impl Fn(&mut S) -> &mut Option<T>,
    ) {
        let names: Vec<&'static str> = words.iter().map(|(_, word)| *word).collect();
        match self.io {
            Io::Read(section, _) => {
                if let Some(at) = section.choice(name, &names) {
                    *field(self.value) = Some(words[at].0);
                }
            }
            Io::Print(page) => {
                let named = words.iter().find(|(of, _)| Some(*of) == *field(self.value));
                let usual = quoted(names.first().copied().unwrap_or_default());
                let value = named.map(|(_, word)| quoted(word));
                page.optional(name, (&one_of(&names), says), value, (&usual, &usual));
            }
            Io::Describe(description) => {
                let usual = quoted(names.first().copied().unwrap_or_default());
                let rule = (&*one_of(&names), Form::Words(&names));
                description.key(name, (rule, says), &usual);
            }
        }
    }

    pub fn address(
        &mut self,
        (name, says): Key<'_>,
        (): (),
        field: impl Fn(&mut S) -> &mut SocketAddr,
    ) {
        let rule = "an address and port such as \"127.0.0.1:7711\" (port 0: any)";
        let read = |s: &mut Section<'a>, _: &SocketAddr| {
            let parse = |node: &Node| text_of(node).unwrap_or_default().parse().ok();
            s.value(name, |node| parse(node).ok_or_else(|| format!("must be {rule}")))
        };
        let rule = (rule, ADDRESS);
        self.key((name, rule, says), field, read, |address| quoted(&address.to_string()));
    }

    /// The same, or `"off"`.
    pub fn address_or_off(
        &mut self,
        (name, says): Key<'_>,
        (): (),
        field: impl Fn(&mut S) -> &mut Option<SocketAddr>,
    ) {
        let rule = "an address and port such as \"127.0.0.1:7712\" (port 0: any), or \"off\"";
        let read = |s: &mut Section<'a>, _: &Option<SocketAddr>| {
            s.value(name, |node| match text_of(node).unwrap_or_default() {
                "off" => Ok(None),
                text => text.parse().map(Some).map_err(|_| format!("must be {rule}")),
            })
        };
        let text = |address: &Option<SocketAddr>| {
            quoted(&address.map_or("off".into(), |address| address.to_string()))
        };
        self.key((name, (rule, Form::Or("off", &ADDRESS)), says), field, read, text);
    }

    pub fn list<T>(
        &mut self,
        (name, says): Key<'_>,
        (rule, parse, text): (Rule<'_>, impl Fn(&str) -> Option<T>, impl Fn(&T) -> String),
        field: impl Fn(&mut S) -> &mut Vec<T>,
    ) {
        let read = |s: &mut Section<'a>, _: &Vec<T>| {
            let all = |node: &Node| match &node.item {
                Item::Array(list) => list.iter().map(|n| text_of(n).and_then(&parse)).collect(),
                _ => None,
            };
            s.value(name, |node| all(node).ok_or_else(|| format!("must be {}", rule.0)))
        };
        let print = |all: &Vec<T>| {
            let all: Vec<_> = all.iter().map(|one| quoted(&text(one))).collect();
            format!("[{}]", all.join(", "))
        };
        self.key((name, rule, says), field, read, print);
    }

    /// A value of any other form. `read` says what would be right.
    pub fn other<T>(
        &mut self,
        (name, says): Key<'_>,
        (rule, read, text): (
            Rule<'_>,
            impl FnOnce(&Node) -> Result<T, String>,
            impl Fn(&T) -> String,
        ),
        field: impl Fn(&mut S) -> &mut T,
    ) {
        self.key((name, rule, says), field, |s, _| s.value(name, read), text);
    }

    /// Two values of one form.
    pub fn pair(
        &mut self,
        (name, says): Key<'_>,
        (rule, read, text): (
            Rule<'_>,
            impl FnOnce(&Node) -> Result<(i32, i32), String>,
            impl Fn(i32, i32) -> String,
        ),
        fields: impl Fn(&mut S) -> (&mut i32, &mut i32),
    ) {
        match self.io {
            Io::Read(section, _) => {
                if let Some((one, other)) = section.value(name, read) {
                    let fields = fields(self.value);
                    (*fields.0, *fields.1) = (one, other);
                }
            }
            Io::Print(page) => {
                let text = |(one, other): (&mut i32, &mut i32)| text(*one, *other);
                let (value, default) = (text(fields(self.value)), text(fields(self.default)));
                page.key(name, (rule.0, says), &value, &default);
            }
            Io::Describe(description) => {
                let (one, other) = fields(self.default);
                description.key(name, (rule, says), &text(*one, *other));
            }
        }
    }
}
