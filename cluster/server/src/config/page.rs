//! The text of a configuration, with the meaning, the legal values and the default of each key.

use super::form::{depends, sentence};

/// A section being written.
#[derive(Default)]
pub(super) struct Page {
    /// Its header and its path; empty for the file itself.
    header: String,
    path: String,
    keys: String,
    /// The sections below it, which follow its keys.
    sections: String,
    /// What is said before the next section.
    note: String,
    /// The list of sections to which the last entry belongs: only the first entry explains the keys.
    list: &'static str,
    is_silent: bool,
}

/// A text as TOML quotes it.
pub(super) fn quoted(value: &str) -> String {
    toml::Value::String(value.into()).to_string()
}

impl Page {
    /// A section of this one, or an entry of a list of sections.
    pub fn section(&mut self, name: &'static str, of_list: bool) -> Page {
        let dot = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{name}", self.path);
        let is_silent = self.is_silent || of_list && self.list == name;
        let note = std::mem::take(&mut self.note);
        let note = if is_silent { String::new() } else { note };
        let header = match of_list {
            true => format!("\n{note}[[{path}]]\n"),
            false => format!("\n{note}[{path}]\n"),
        };
        self.list = if of_list { name } else { "" };
        Page { header, path, is_silent, ..Page::default() }
    }

    pub fn close(&mut self, section: Page) {
        self.sections += &section.finish();
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.header + &self.keys + &self.sections
    }

    /// Says something of the next section.
    pub fn note(&mut self, says: &str) {
        self.note = match says.trim() {
            "" => String::new(),
            says => format!("# {says}\n"),
        };
    }

    fn about(&mut self, (rule, says): (&str, &str), default: &str) {
        if self.is_silent {
            return;
        }
        let (says, rule) = (says.trim(), sentence(rule));
        let default = match default.is_empty() || depends(says) {
            true => String::new(),
            false => format!(" Default: {default}."),
        };
        self.keys += &format!("# {says}\n# {rule}{default}\n");
    }

    pub fn key(&mut self, name: &str, about: (&str, &str), value: &str, default: &str) {
        self.about(about, default);
        self.keys += &format!("{name} = {value}\n");
    }

    /// A key that need not be there: an example as a comment shows it then.
    pub fn optional(
        &mut self,
        name: &str,
        about: (&str, &str),
        value: Option<String>,
        (example, default): (&str, &str),
    ) {
        self.about(about, default);
        match value {
            Some(value) => self.keys += &format!("{name} = {value}\n"),
            None if self.is_silent => {}
            None => self.keys += &format!("# {name} = {example}\n"),
        }
    }
}
