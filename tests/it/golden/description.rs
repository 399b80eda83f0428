//! Reads `proto/client/messages.toml`, the description of all client messages.

use serde::Deserialize;

const SOURCE: &str = include_str!("../../../proto/client/messages.toml");

/// All client messages, as the file describes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub version: u16,
    pub limit: Vec<Limit>,
    pub message: Vec<Message>,
    pub record: Vec<Record>,
    pub choice: Vec<Choice>,
    pub error: Vec<Code>,
    pub close: Vec<Code>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    pub name: String,
    pub value: i64,
    pub meaning: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    Client,
    Server,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub from: From,
    pub number: u8,
    pub name: String,
    /// The server's answer to a message of a client.
    pub answer: Option<String>,
    /// When the server sends the message.
    pub when: Option<String>,
    pub fields: Vec<Field>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub name: String,
    pub fields: Vec<Field>,
}

/// Name, type and meaning.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "(String, String, String)")]
pub struct Field {
    pub name: String,
    /// The type as the file has it.
    pub text: String,
    pub is: Type,
    pub meaning: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub name: String,
    pub meaning: String,
    pub case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The first element of its array.
    pub tag: Option<u8>,
    #[serde(default)]
    pub fields: Vec<Field>,
    /// A choice by length: the record of this case.
    pub record: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    pub code: u16,
    pub name: String,
    pub meaning: String,
    /// For close codes: whether the client connects again.
    pub again: Option<String>,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// An integer and its range.
    Int(i128, i128),
    /// A number of the error codes, or of the close codes.
    Error,
    Close,
    Bool,
    Text,
    Steps,
    Bytes,
    Value,
    /// A record or a choice.
    Named(String),
    /// Of any length, or of this one.
    List(Box<Type>, Option<usize>),
    Optional(Box<Type>),
}

impl std::convert::From<(String, String, String)> for Field {
    fn from((name, text, meaning): (String, String, String)) -> Field {
        Field { name, is: Type::of(&text), text, meaning }
    }
}

impl Type {
    fn of(text: &str) -> Type {
        if let Some(inner) = text.strip_suffix(" or nil") {
            return Type::Optional(Type::of(inner).into());
        }
        if let Some(inner) = text.strip_prefix("list of ") {
            let counted = inner.split_once(' ').and_then(|(n, of)| Some((n.parse().ok()?, of)));
            return match counted {
                Some((count, of)) => Type::List(Type::of(of).into(), Some(count)),
                None => Type::List(Type::of(inner).into(), None),
            };
        }
        match text {
            "u8" => Type::Int(0, u8::MAX.into()),
            "rings" => Type::Int(0, 7),
            "u16" | "facing" => Type::Int(0, u16::MAX.into()),
            "u32" => Type::Int(0, u32::MAX.into()),
            "u64" => Type::Int(0, (1 << 53) - 1),
            "i32" => Type::Int(i32::MIN.into(), i32::MAX.into()),
            "plane" => Type::Int(i128::from(i32::MIN) + 1, i32::MAX.into()),
            "error" => Type::Error,
            "close" => Type::Close,
            "bool" => Type::Bool,
            "text" => Type::Text,
            "steps" => Type::Steps,
            "bytes" => Type::Bytes,
            "value" => Type::Value,
            name if name.starts_with(char::is_uppercase) => Type::Named(name.into()),
            other => panic!("{other:?} is no type"),
        }
    }
}

impl Description {
    pub fn read() -> Description {
        let all: Description = toml::from_str(SOURCE).unwrap_or_else(|e| panic!("{e}"));
        for field in all.fields() {
            all.check(&field.is);
        }
        all
    }

    /// Every name that a type uses must be there.
    fn check(&self, is: &Type) {
        match is {
            Type::List(of, _) | Type::Optional(of) => self.check(of),
            Type::Named(name) => {
                let known = self.find_record(name).is_some() || self.find_choice(name).is_some();
                assert!(known, "there is no record or choice {name}");
            }
            _ => {}
        }
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        let messages = self.message.iter().flat_map(|m| &m.fields);
        let cases = self.choice.iter().flat_map(|c| &c.case).flat_map(|c| &c.fields);
        messages.chain(self.record.iter().flat_map(|r| &r.fields)).chain(cases)
    }

    pub fn find_record(&self, name: &str) -> Option<&Record> {
        self.record.iter().find(|r| r.name == name)
    }

    pub fn record(&self, name: &str) -> &Record {
        self.find_record(name).unwrap_or_else(|| panic!("there is no record {name}"))
    }

    pub fn find_choice(&self, name: &str) -> Option<&Choice> {
        self.choice.iter().find(|c| c.name == name)
    }

    pub fn message(&self, number: u8) -> &Message {
        let found = self.message.iter().find(|m| m.number == number);
        found.unwrap_or_else(|| panic!("there is no message {number}"))
    }
}

impl Choice {
    /// The case of an array and its fields, without the tag.
    pub fn of<'a>(&'a self, all: &'a Description, array: &[super::tree::Tree]) -> Chosen<'a> {
        let tagged = self.case.iter().find(|case| {
            case.tag.is_some_and(|tag| array.first() == Some(&super::tree::Tree::Int(tag.into())))
        });
        if let Some(case) = tagged {
            return Chosen { case, fields: &case.fields, tags: 1 };
        }
        let mut cases: Vec<_> = self.case.iter().collect();
        let length = |case: &Case| case.record.as_ref().map(|name| all.record(name).fields.len());
        cases.sort_by_key(|case| std::cmp::Reverse(length(case)));
        let fits = |case: &&&Case| length(case).is_some_and(|length| length <= array.len());
        let case = cases.iter().find(fits).unwrap_or_else(|| panic!("{}: no case", self.name));
        let record = case.record.as_ref().expect("a choice by length has records");
        Chosen { case, fields: &all.record(record).fields, tags: 0 }
    }
}

/// A case of a choice.
pub struct Chosen<'a> {
    pub case: &'a Case,
    pub fields: &'a [Field],
    /// Elements before the fields.
    pub tags: usize,
}
