//! Writes the codec of the TypeScript client from the description: `messages.ts` has the types and
//! codes, `codec.ts` the functions that read and write them.

use std::fmt::Write;

use super::description::{Case, Code, Description, Field, From, Type};

const HEAD: &str = "\
// Written by a test from proto/client/messages.toml: see there. Do not edit.
";

/// `start_ms` as `startMs`.
pub fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1);
        out += &first.to_uppercase();
        out += rest;
    }
    out
}

fn type_of(is: &Type) -> String {
    match is {
        Type::Int(..) | Type::Error | Type::Close => "number".into(),
        Type::Bool => "boolean".into(),
        Type::Text | Type::Steps => "string".into(),
        Type::Bytes | Type::Value => "Uint8Array".into(),
        Type::Named(name) => name.clone(),
        Type::List(of, _) => format!("{}[]", type_of(of)),
        Type::Optional(of) => format!("{} | null", type_of(of)),
    }
}

/// The text of the document without its links and code spans.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        match link.split_once("](").and_then(|(name, after)| Some((name, after.split_once(')')?.1)))
        {
            Some((name, after)) => {
                out = out + before + name;
                rest = after;
            }
            None => {
                out = out + before + "[";
                rest = link;
            }
        }
    }
    out + rest
}

fn interface(out: &mut String, doc: &str, name: &str, own: &str, fields: &[Field]) {
    write!(out, "\n/** {doc} */\nexport interface {name} {{\n{own}").unwrap();
    for f in fields {
        let (name, is) = (camel(&f.name), type_of(&f.is));
        writeln!(out, "  /** {} */\n  {name}: {is};", plain(&f.meaning)).unwrap();
    }
    out.push_str("}\n");
}

fn case_name(choice: &str, case: &Case) -> String {
    let (first, rest) = case.name.split_at(1);
    format!("{choice}{}{rest}", first.to_uppercase())
}

fn union(out: &mut String, name: &str, doc: &str, cases: &[String]) {
    writeln!(out, "\n/** {doc} */\nexport type {name} = {};", cases.join(" | ")).unwrap();
}

/// `messages.ts`.
pub fn messages(all: &Description) -> String {
    let mut out = HEAD.to_owned();
    for limit in &all.limit {
        let (name, value) = (&limit.name, limit.value);
        write!(out, "\n/** {} */\nexport const {name} = {value};\n", plain(&limit.meaning))
            .unwrap();
    }
    codes(&mut out, "ERRORS", "ErrorName", "Why a message was refused.", &all.error);
    codes(&mut out, "CLOSES", "CloseName", "Why a session was closed.", &all.close);
    for r in &all.record {
        interface(&mut out, &format!("Part of a message: `{}`.", r.name), &r.name, "", &r.fields);
    }
    for choice in &all.choice {
        let mut cases = Vec::new();
        for case in &choice.case {
            let kind = format!("kind: '{}'", case.name);
            match &case.record {
                Some(record) => cases.push(format!("({record} & {{ {kind} }})")),
                None => {
                    let name = case_name(&choice.name, case);
                    let doc = format!("`{}`: {}.", choice.name, case.name);
                    interface(&mut out, &doc, &name, &format!("  {kind};\n"), &case.fields);
                    cases.push(name);
                }
            }
        }
        union(&mut out, &choice.name, &format!("{}.", choice.meaning), &cases);
    }
    for m in &all.message {
        let own = format!("  type: '{}';\n", m.name);
        let doc = match (&m.answer, &m.when) {
            (Some(answer), _) => format!("To the server; the answer is {answer}."),
            (_, Some(when)) => format!("From the server: {when}."),
            _ => panic!("{} says neither answer nor when", m.name),
        };
        interface(&mut out, &doc, &m.name, &own, &m.fields);
    }
    for (name, from) in [("ClientMessage", From::Client), ("ServerMessage", From::Server)] {
        let of = all.message.iter().filter(|m| m.from == from).map(|m| m.name.clone());
        union(&mut out, name, &format!("Any message of a {name}."), &of.collect::<Vec<_>>());
    }
    out.replace("Any message of a ClientMessage.", "A message to the server.")
        .replace("Any message of a ServerMessage.", "A message from the server.")
}

fn codes(out: &mut String, table: &str, name: &str, doc: &str, all: &[Code]) {
    write!(out, "\n/** {doc} */\nexport const {table} = {{\n").unwrap();
    for code in all {
        writeln!(out, "  /** {} */\n  {}: '{}',", plain(&code.meaning), code.code, code.name)
            .unwrap();
    }
    write!(out, "}} as const;\n\n/** {doc} */\n").unwrap();
    writeln!(out, "export type {name} = (typeof {table})[keyof typeof {table}];").unwrap();
}

fn read(is: &Type) -> String {
    match is {
        Type::Int(low, high) => int(*low, *high).into(),
        Type::Error | Type::Close => "r.u16()".into(),
        Type::Bool => "r.bool()".into(),
        Type::Text => "r.text()".into(),
        Type::Steps => "r.steps()".into(),
        Type::Bytes | Type::Value => "r.bytes()".into(),
        Type::Named(name) => format!("read{name}(r)"),
        Type::List(of, count) => {
            let one = match &**of {
                Type::Named(name) => format!("read{name}"),
                of => format!("() => {}", read(of)),
            };
            let count = count.map_or(String::new(), |n| format!(", {n}"));
            format!("r.list({one}{count})")
        }
        Type::Optional(of) => format!("r.nil() ? null : {}", read(of)),
    }
}

fn int(low: i128, high: i128) -> &'static str {
    match (low, high) {
        (0, 7) => "r.sum7()",
        (0, 0xff) => "r.u8()",
        (0, 0xffff) => "r.u16()",
        (0, 0xffff_ffff) => "r.u32()",
        (0, _) => "r.u64()",
        _ => "r.i32()",
    }
}

fn write(is: &Type, value: &str) -> String {
    match is {
        Type::Int(low, high) => format!("w{}{value})", int(*low, *high)[1..].replace(')', "")),
        Type::Error | Type::Close => format!("w.u16({value})"),
        Type::Bool => format!("w.bool({value})"),
        Type::Text => format!("w.text({value})"),
        Type::Steps => format!("w.steps({value})"),
        Type::Bytes | Type::Value => format!("w.bytes({value})"),
        Type::Named(name) => format!("write{name}(w, {value})"),
        Type::List(of, _) => {
            format!("w.list({value}, (v) => {})", write(of, "v"))
        }
        Type::Optional(of) => {
            format!("{value} === null ? w.nil() : {}", write(of, value))
        }
    }
}

fn object(fields: &[Field], own: &str) -> String {
    let one = |f: &Field| format!("{}: {}", camel(&f.name), read(&f.is));
    let own = Some(own.to_owned()).filter(|own| !own.is_empty());
    let all: Vec<_> = own.into_iter().chain(fields.iter().map(one)).collect();
    format!("{{ {} }}", all.join(", "))
}

fn reader(out: &mut String, name: &str, own: &str, fields: &[Field]) {
    let count = fields.len();
    write!(out, "\nfunction read{name}(r: Reader): {name} {{\n").unwrap();
    writeln!(out, "  const more = r.open({count});").unwrap();
    writeln!(out, "  const m: {name} = {};", object(fields, own)).unwrap();
    out.push_str("  r.skip(more);\n  return m;\n}\n");
}

fn choice_reader(out: &mut String, all: &Description, name: &str, cases: &[Case]) {
    write!(out, "\nfunction read{name}(r: Reader): {name} {{\n").unwrap();
    if cases.iter().all(|case| case.record.is_some()) {
        let mut cases: Vec<_> =
            cases.iter().filter_map(|c| Some((c, c.record.as_ref()?))).collect();
        cases.sort_by_key(|(_, record)| std::cmp::Reverse(all.record(record).fields.len()));
        let last = cases.len() - 1;
        for (i, (case, record)) in cases.iter().enumerate() {
            let length = all.record(record).fields.len();
            let made = format!("{{ kind: '{}', ...read{record}(r) }}", case.name);
            match i == last {
                true => writeln!(out, "  return {made};").unwrap(),
                false => writeln!(out, "  if (r.peek() >= {length}) return {made};").unwrap(),
            }
        }
        out.push_str("}\n");
        return;
    }
    out.push_str("  let more = r.open(1);\n  let m: ");
    write!(out, "{name};\n  switch (r.u8()) {{\n").unwrap();
    for case in cases {
        let tag = case.tag.expect("a choice by tag");
        let own = format!("kind: '{}'", case.name);
        writeln!(out, "    case {tag}:\n      more = r.need(more, {});", case.fields.len())
            .unwrap();
        let object = object(&case.fields, &own);
        writeln!(out, "      m = {object};\n      break;").unwrap();
    }
    writeln!(out, "    default:\n      throw r.bad('a known {name}');\n  }}").unwrap();
    out.push_str("  r.skip(more);\n  return m;\n}\n");
}

fn statements(fields: &[Field], indent: &str) -> String {
    let one = |f: &Field| format!("{indent}{};\n", write(&f.is, &format!("m.{}", camel(&f.name))));
    fields.iter().map(one).collect()
}

/// Records and choices that messages of this side contain.
fn within(all: &Description, from: From) -> Vec<String> {
    fn add(all: &Description, is: &Type, found: &mut Vec<String>) {
        match is {
            Type::List(of, _) | Type::Optional(of) => add(all, of, found),
            Type::Named(name) if !found.contains(name) => {
                found.push(name.clone());
                let record = all.find_record(name).map(|r| &r.fields).into_iter().flatten();
                let cases = all.find_choice(name).into_iter().flat_map(|c| &c.case);
                for field in record.chain(cases.clone().flat_map(|case| &case.fields)) {
                    add(all, &field.is, found);
                }
                for record in cases.filter_map(|case| case.record.clone()) {
                    add(all, &Type::Named(record), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for field in all.message.iter().filter(|m| m.from == from).flat_map(|m| &m.fields) {
        add(all, &field.is, &mut found);
    }
    found
}

fn writers(out: &mut String, all: &Description) {
    for name in within(all, From::Client) {
        write!(out, "\nfunction write{name}(w: Writer, m: {name}): void {{\n").unwrap();
        if let Some(record) = all.find_record(&name) {
            let count = record.fields.len();
            write!(out, "  w.array({count});\n{}", statements(&record.fields, "  ")).unwrap();
        }
        for case in all.find_choice(&name).into_iter().flat_map(|c| &c.case) {
            let tag = case.tag.expect("a client writes choices by tag");
            let count = case.fields.len() + 1;
            write!(out, "  if (m.kind === '{}') {{\n    w.array({count});\n", case.name).unwrap();
            write!(out, "    w.u8({tag});\n{}  }}\n", statements(&case.fields, "    ")).unwrap();
        }
        out.push_str("}\n");
    }
    out.push_str("\n/** The bytes of a message to the server. */\n");
    out.push_str("export function encode(m: ClientMessage): Uint8Array {\n");
    out.push_str("  const w = new Writer();\n  switch (m.type) {\n");
    for m in all.message.iter().filter(|m| m.from == From::Client) {
        let (name, number, count) = (&m.name, m.number, m.fields.len());
        write!(out, "    case '{name}':\n      w.message({number}, {count});\n").unwrap();
        writeln!(out, "{}      break;", statements(&m.fields, "      ")).unwrap();
    }
    out.push_str("  }\n  return w.done();\n}\n");
}

/// `codec.ts`.
pub fn codec(all: &Description) -> String {
    let mut body = String::new();
    let read = within(all, From::Server);
    for r in all.record.iter().filter(|r| read.contains(&r.name)) {
        reader(&mut body, &r.name, "", &r.fields);
    }
    for choice in all.choice.iter().filter(|c| read.contains(&c.name)) {
        choice_reader(&mut body, all, &choice.name, &choice.case);
    }
    let of_server: Vec<_> = all.message.iter().filter(|m| m.from == From::Server).collect();
    for m in &of_server {
        reader(&mut body, &m.name, &format!("type: '{}'", m.name), &m.fields);
    }
    body.push_str("\n/**\n * Reads a message from the server. `null`: a message of a type that only a later version knows.\n");
    body.push_str(" *\n * @throws DecodeError The bytes are no message.\n */\n");
    body.push_str("export function decode(bytes: Uint8Array): ServerMessage | null {\n");
    body.push_str("  const r = new Reader(bytes);\n  const m = body(r, r.message());\n");
    body.push_str("  r.end();\n  return m;\n}\n\n");
    body.push_str(
        "function body(r: Reader, type: number): ServerMessage | null {\n  switch (type) {\n",
    );
    for m in &of_server {
        writeln!(body, "    case {}:\n      return read{}(r);", m.number, m.name).unwrap();
    }
    body.push_str("    default:\n      return r.unknown(type);\n  }\n}\n");
    writers(&mut body, all);
    let known = all.record.iter().map(|r| &r.name).chain(all.choice.iter().map(|c| &c.name));
    let mut names: Vec<String> = known.cloned().collect();
    names.extend(of_server.iter().map(|m| m.name.clone()));
    names.extend(["ClientMessage", "ServerMessage"].map(String::from));
    names.sort();
    let names: String = names.iter().map(|name| format!("  {name},\n")).collect();
    format!(
        "{HEAD}\nimport type {{\n{names}}} from './messages.js';\nimport {{ Reader }} from './reader.js';\nimport {{ Writer }} from './writer.js';\n{body}"
    )
}
