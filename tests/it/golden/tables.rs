//! Writes the tables of `docs/protocol.md` from the description. A table stands between the comments
//! `<!-- NAME -->` and `<!-- end -->`.

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

/// The table between the markers of this name.
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

/// The page with every table as the description has it, and the names of its tables.
pub fn page(all: &Description, page: &str) -> (String, Vec<String>) {
    let (mut out, mut names) = (String::new(), Vec::new());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let name = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->"));
        if let Some(name) = name {
            out += &format!("\n{}\n<!-- end -->\n", of(all, name));
            names.push(name.to_owned());
            let rest = lines.by_ref().take_while(|l| *l != "<!-- end -->").count();
            assert!(rest > 0, "{name}: the table has no end");
        }
    }
    (out, names)
}
