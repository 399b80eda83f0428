//! Compares values with the schemas of the OpenAPI document.

use purview_server::admin::OPENAPI;
use serde_json::{Value, json};

/// The document.
pub fn document() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// The differences between an answer and the document.
pub fn wrong_with(all: &Value, path: &str, status: u16, answer: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    faults(all, schema(all, path, status), answer, "", &mut wrong);
    wrong
}

/// The method of a path and its documentation; each path has one method.
pub fn operation<'a>(all: &'a Value, path: &str) -> (&'a str, &'a Value) {
    let item = all["paths"][path].as_object().unwrap_or_else(|| panic!("there is no {path}"));
    let [(method, operation)] = item.iter().collect::<Vec<_>>()[..] else { panic!("{path}") };
    (method.as_str(), operation)
}

fn schema<'a>(all: &'a Value, path: &str, status: u16) -> &'a Value {
    let (_, operation) = operation(all, path);
    let mut answer = &operation["responses"][status.to_string()];
    if let Some(reference) = answer.get("$ref") {
        answer = at(all, reference);
    }
    let schema = &answer["content"]["application/json"]["schema"];
    assert!(!schema.is_null(), "the document does not say what {path} answers with {status}");
    schema
}

/// The target of a reference.
pub fn at<'a>(all: &'a Value, reference: &Value) -> &'a Value {
    let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
    all.pointer(pointer).unwrap_or_else(|| panic!("there is no {pointer}"))
}

/// The differences between a value and its schema, each with its path. The check knows the keywords of JSON Schema
/// that the document uses, and fails on any other, so that none is ignored.
pub fn faults(all: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let Some(words) = schema.as_object() else {
        if schema == &json!(false) {
            out.push(format!("{at}: must not be there"));
        }
        return;
    };
    let mut wrong = |holds: bool, rule: &str| {
        if !holds {
            out.push(format!("{at}: {value} is not {rule}"));
        }
    };
    for (word, rule) in words {
        match word.as_str() {
            "description" => {}
            "type" => {
                let types = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
                let is = |name: &Value| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "null" => value.is_null(),
                    other => panic!("no type {other}"),
                };
                wrong(types.iter().any(is), &format!("of type {rule}"));
            }
            "const" => wrong(value == rule, &rule.to_string()),
            "enum" => wrong(rule.as_array().unwrap().contains(value), &format!("one of {rule}")),
            "minimum" => wrong(
                value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
                &format!("at least {rule}"),
            ),
            "maximum" => wrong(
                value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()),
                &format!("at most {rule}"),
            ),
            "minItems" | "maxItems" => {
                let (len, limit) =
                    (value.as_array().map(Vec::len), rule.as_u64().unwrap() as usize);
                let holds = |len| if word == "minItems" { len >= limit } else { len <= limit };
                wrong(len.is_none_or(holds), &format!("of the length {rule}"));
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    let there = value.get(name.as_str().unwrap()).is_some();
                    wrong(there || !value.is_object(), &format!("with {name}"));
                }
            }
            // Values of any name, which the test does not look into.
            "additionalProperties" if rule.is_object() => {}
            "additionalProperties" => {
                let known = words["properties"].as_object().unwrap();
                let more =
                    value.as_object().and_then(|v| v.keys().find(|k| !known.contains_key(*k)));
                wrong(more.is_none(), &format!("without {more:?}"));
            }
            "properties" | "items" | "prefixItems" | "$ref" | "oneOf" => {}
            other => panic!("{at}: the document uses {other:?}, which this test does not know"),
        }
    }
    below(all, schema, value, at, out);
}

/// The differences below a value.
fn below(all: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    if let Some(reference) = schema.get("$ref") {
        faults(all, self::at(all, reference), value, at, out);
    }
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        if let Some(value) = value.get(name) {
            faults(all, schema, value, &format!("{at}/{name}"), out);
        }
    }
    let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (i, value) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(schema) = first.get(i).or(schema.get("items")) {
            faults(all, schema, value, &format!("{at}/{i}"), out);
        }
    }
    if let Some(one_of) = schema.get("oneOf").and_then(Value::as_array) {
        let tries = one_of.iter().map(|schema| {
            let mut wrong = Vec::new();
            faults(all, schema, value, at, &mut wrong);
            wrong
        });
        let tries: Vec<_> = tries.collect();
        if tries.iter().filter(|wrong| wrong.is_empty()).count() != 1 {
            out.push(format!("{at}: {value} is not one of them: {tries:?}"));
        }
    }
}
