//! Writes the tables of `docs/protocol.md` from the description: of each part the first table below
//! the heading with its name.

use super::description::{Description, Field, From, Type};

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        out += &format!("| {} |\n", row.join(" | "));
    }
    out
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

/// The type as the document has it.
fn text(all: &Description, field: &Field) -> String {
    let mut text = field.text.clone();
    for (scalar, is) in [("rings", "u8"), ("plane", "i32"), ("error", "u16"), ("close", "u16")] {
        text = match text.strip_prefix(scalar) {
            Some(rest) => format!("{is}{rest}"),
            None => text,
        };
    }
    if let Type::List(of, _) = &field.is
        && let Type::Named(name) = &**of
        && let Some(choice) = all.find_choice(name)
    {
        let records: Vec<_> = choice.case.iter().filter_map(|c| c.record.as_deref()).collect();
        return format!("list of {}", records.join(" or "));
    }
    text
}

fn fields(all: &Description, fields: &[Field]) -> String {
    let row = |f: &Field| [code(&f.name), text(all, f), f.meaning.clone()];
    table(["field", "type", "meaning"], fields.iter().map(row))
}

/// A number with commas between thousands, as the document has limits.
fn grouped(n: i64) -> String {
    let digits = n.to_string();
    if n < 0 || digits.len() < 4 {
        return digits;
    }
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The table of this part.
pub fn of(all: &Description, name: &str) -> String {
    let limits = all.limit.iter().map(|l| [code(&l.name), grouped(l.value), l.meaning.clone()]);
    let errors = all.error.iter().map(|c| [c.code.to_string(), code(&c.name), c.meaning.clone()]);
    let closes = all.close.iter().map(|c| {
        let again = c.again.clone().expect("a close code says whether to connect again");
        [c.code.to_string(), code(&c.name), c.meaning.clone(), again]
    });
    let messages = |from: From| {
        all.message.iter().filter(move |m| m.from == from).map(|m| {
            let last = m.answer.as_ref().or(m.when.as_ref()).expect("an answer, or when");
            [m.number.to_string(), code(&m.name), last.clone()]
        })
    };
    match name {
        "limits" => table(["name", "value", "meaning"], limits),
        "errors" => table(["code", "name", "meaning"], errors),
        "close codes" => table(["code", "name", "meaning", "connect again?"], closes),
        "from client" => table(["type", "message", "answer"], messages(From::Client)),
        "from server" => table(["type", "message", "when"], messages(From::Server)),
        name => match all.message.iter().find(|m| m.name == name) {
            Some(message) => fields(all, &message.fields),
            None => fields(all, &all.record(name).fields),
        },
    }
}

/// The part of the description whose table is the first one below a heading.
fn below(all: &Description, heading: &str) -> Option<String> {
    let title = heading.trim_start_matches('#').trim();
    let known = match title {
        "Limits" | "From the client" | "From the server" | "Errors" | "Close codes" => {
            title.to_lowercase().replace("the ", "")
        }
        "Refused message" => "Refused".into(),
        name => name.into(),
    };
    let is_part = known.chars().next()?.is_lowercase()
        || all.find_record(&known).is_some()
        || all.message.iter().any(|m| m.name == known && !m.fields.is_empty());
    is_part.then_some(known)
}

/// The page with every table as the description has it, and the names of its tables.
pub fn page(all: &Description, page: &str) -> (String, Vec<String>) {
    let (mut out, mut names) = (String::new(), Vec::new());
    let mut wanted = None;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            wanted = below(all, line);
        }
        match wanted.take_if(|_| line.starts_with('|')) {
            Some(name) => {
                out += &of(all, &name);
                names.push(name);
                while lines.next_if(|line| line.starts_with('|')).is_some() {}
            }
            None => out += &format!("{line}\n"),
        }
    }
    (out, names)
}
