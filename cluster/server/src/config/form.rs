//! The legal values of keys, for machines: `purview check --schema config` prints them as a JSON Schema, with which
//! editors complete and check configurations.
//!
//! The schema knows each value by itself. What depends on other keys, or on files, only [`Config::parse`] finds: it
//! refuses more than the schema, never less.
//!
//! [`Config::parse`]: super::Config::parse

use serde_json::{Map, Value, json};

use super::patterns;
use super::units::Quantity;

/// The legal values of a key: in words, and for machines.
pub(super) type Rule<'a> = (&'a str, Form<'a>);

/// The legal values of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'a> {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A number with a unit, from the second to the third in the smallest unit.
    Of(Quantity, i64, i64),
    Text(usize, usize),
    /// A text that matches a regular expression.
    Matching(&'static str),
    Words(&'a [&'static str]),
    /// One word, or something else.
    Or(&'static str, &'a Form<'a>),
    Either(&'a Form<'a>, &'a Form<'a>),
    List(&'a Form<'a>),
    /// A list of at least and at most so many of them.
    Few(usize, usize, &'a Form<'a>),
    /// A list of a value of each form.
    Each(&'a [Form<'a>]),
    Table,
}

/// 1,000 km in centimetres.
pub(super) const KM_1000: i64 = 100_000_000;
/// A length that is not 0, in centimetres.
pub(super) const LENGTH: (i64, i64) = (1, KM_1000);
pub(super) const A_LENGTH: Form<'static> = Form::Of(Quantity::Length, LENGTH.0, LENGTH.1);
pub(super) const LENGTH_OR_0: Form<'static> = Form::Of(Quantity::Length, 0, KM_1000);

pub(super) const TEXT: Form<'static> = Form::Text(0, usize::MAX);

/// IP address and port.
pub(super) const ADDRESS: Form<'static> =
    Form::Matching(r"^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-fA-F:.%]+\]):[0-9]+$");

impl Form<'_> {
    pub fn schema(self) -> Value {
        match self {
            Form::Flag => json!({ "type": "boolean" }),
            Form::Whole(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Form::Of(of, least, most) => {
                json!({ "type": "string", "pattern": patterns::quantity(of, least, most) })
            }
            Form::Text(least, most) => {
                let mut text = json!({ "type": "string" });
                if least > 0 {
                    text["minLength"] = json!(least);
                }
                if most < usize::MAX {
                    text["maxLength"] = json!(most);
                }
                text
            }
            Form::Matching(pattern) => json!({ "type": "string", "pattern": pattern }),
            Form::Words(words) => json!({ "enum": words }),
            Form::Or(word, form) => json!({ "anyOf": [{ "const": word }, form.schema()] }),
            Form::Either(one, other) => json!({ "anyOf": [one.schema(), other.schema()] }),
            Form::List(form) => json!({ "type": "array", "items": form.schema() }),
            Form::Few(least, most, form) => {
                let items = form.schema();
                json!({ "type": "array", "items": items, "minItems": least, "maxItems": most })
            }
            Form::Each(forms) => {
                let each: Vec<Value> = forms.iter().map(|form| form.schema()).collect();
                json!({ "type": "array", "prefixItems": each, "items": false, "minItems": forms.len() })
            }
            Form::Table => json!({ "type": "object" }),
        }
    }
}

/// A section being described.
#[derive(Debug, Default)]
pub(super) struct Description {
    keys: Map<String, Value>,
    required: Vec<&'static str>,
}

impl Description {
    /// A key and its default, as TOML has it; empty: it has none.
    pub fn key(&mut self, name: &str, ((rule, form), says): (Rule<'_>, &str), default: &str) {
        let mut schema = form.schema();
        schema["description"] = json!(about(rule, says));
        let default = toml::from_str::<toml::Table>(&format!("of = {default}"));
        let default = default.ok().and_then(|mut table| table.remove("of"));
        if let Some(default) = default.filter(|_| !depends(says)) {
            schema["default"] = json!(default);
        }
        self.keys.insert(name.to_owned(), schema);
    }

    /// A section of this one, or a list of them.
    pub fn below(&mut self, name: &str, (rule, says): (&str, &str), mut schema: Value) {
        schema["description"] = json!(about(rule, says));
        self.keys.insert(name.to_owned(), schema);
    }

    /// Keys that a section must have.
    pub fn require(&mut self, names: &[&'static str]) {
        self.required.extend(names);
    }

    /// The schema of the section. A key that must be there has no default.
    pub fn finish(mut self) -> Value {
        for name in &self.required {
            if let Some(Value::Object(key)) = self.keys.get_mut(*name) {
                key.remove("default");
            }
        }
        let mut schema =
            json!({ "type": "object", "additionalProperties": false, "properties": self.keys });
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        schema
    }
}

/// Whether the meaning of a key names a default that depends on other keys.
pub(super) fn depends(says: &str) -> bool {
    says.contains("efault:")
}

/// The legal values of a key as a sentence.
pub(super) fn sentence(rule: &str) -> String {
    let mut chars = rule.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    let mut sentence: String = first.into_iter().chain(chars).collect();
    sentence.push('.');
    sentence
}

fn about(rule: &str, says: &str) -> String {
    match rule {
        "" => says.trim().to_owned(),
        rule => format!("{}\n{}", says.trim(), sentence(rule)),
    }
}
