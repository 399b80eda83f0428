//! How the tools print what they have found.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A result that is printed as text, or as one line with a JSON object.
pub trait Shown: Serialize {
    /// Whether nothing is wrong.
    fn is_valid(&self) -> bool {
        true
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// For people to read.
    fn text(&self) -> serde_json::Result<String> {
        lines(self)
    }

    /// Prints the result. The exit code of the command says whether it is valid.
    fn show(&self, json: bool) -> anyhow::Result<u8> {
        match json {
            true => println!("{}", self.json()?),
            false => print!("{}", self.text()?),
        }
        Ok(u8::from(!self.is_valid()))
    }
}

/// A line for each field of an object.
pub fn lines(of: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let fields = fields(of)?;
    Ok(fields.into_iter().map(|(name, value)| format!("{name:<32} {value}\n")).collect())
}

/// A Markdown table with a row for each object. Its head has the names of the fields.
pub fn table<Row: Serialize>(rows: &[Row]) -> serde_json::Result<String> {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = String::new();
    for row in rows {
        let (names, cells): (Vec<_>, Vec<_>) = fields(row)?.into_iter().unzip();
        if text.is_empty() {
            let rule = "---|".repeat(names.len());
            text = format!("{}|{rule}\n", line(names));
        }
        text += &line(cells);
    }
    Ok(text)
}

/// The fields of an object, in order. Those of an object in it come as `object.field`, and a list comes as a field for
/// each of its items.
fn fields(of: &(impl Serialize + ?Sized)) -> serde_json::Result<Vec<(String, String)>> {
    let Fields(all) = serde_json::from_str(&serde_json::to_string(of)?)?;
    let mut flat = Vec::new();
    all.into_iter().for_each(|(name, value)| flatten(name, value, &mut flat));
    Ok(flat)
}

fn flatten(name: String, value: Value, to: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Object(all) => {
            return all
                .into_iter()
                .for_each(|(of, value)| flatten(format!("{name}.{of}"), value, to));
        }
        Value::Array(all) if !all.iter().all(Value::is_number) => {
            return to.extend(all.into_iter().map(|item| (name.clone(), item.to_string())));
        }
        Value::Number(number) if number.is_f64() => {
            format!("{:.3}", number.as_f64().unwrap_or_default())
        }
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    };
    to.push((name, text));
}

/// A JSON object in the order in which it was written.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
        from.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut all = Vec::new();
        while let Some(field) = map.next_entry()? {
            all.push(field);
        }
        Ok(Fields(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Row {
        what: &'static str,
        us: f64,
        more: Value,
    }

    const ROWS: [(&str, f64, Option<u64>); 2] = [("b", 2.0 / 3.0, Some(4)), ("a", 2e-9, None)];

    #[test]
    fn a_table_has_a_head_and_a_line_for_each_row() {
        let rows = ROWS.map(|(what, us, more)| Row { what, us, more: json!(more) });
        let want = "| what | us | more |\n|---|---|---|\n| b | 0.667 | 4 |\n| a | 0.000 |  |\n";
        assert_eq!(table(&rows).unwrap(), want);
        assert_eq!(table::<Row>(&[]).unwrap(), "");
    }

    #[test]
    fn a_line_tells_of_a_field_or_of_an_item() {
        let more = json!({ "n": [1, 2], "all": [{ "x": 1 }, "y"] });
        let text = lines(&Row { what: "c", us: 1.0, more }).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, "what c us 1.000 more.all {\"x\":1} more.all \"y\" more.n [1,2]");
        assert_eq!(text.lines().count(), 5);
    }
}
