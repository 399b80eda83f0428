//! How the tools print what they have found.

use serde::Serialize;

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
    fn text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
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

/// A Markdown table of rows without lists and objects. Its head has the names of their fields.
pub fn table<Row: Serialize>(rows: &[Row]) -> anyhow::Result<String> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| lines.serialize(row))?;
    let lines = lines.into_inner()?;
    let mut lines = csv::ReaderBuilder::new().has_headers(false).from_reader(&*lines);
    let mut text = String::new();
    for (number, line) in lines.records().enumerate() {
        let line = line?;
        let cells: Vec<String> = line.iter().map(cell).collect();
        text += &format!("| {} |\n", cells.join(" | "));
        if number == 0 {
            text += &format!("|{}\n", "---|".repeat(cells.len()));
        }
    }
    Ok(text)
}

/// A number with a fraction is rounded.
fn cell(of: &str) -> String {
    let fraction = of.parse::<f64>().ok().filter(|_| of.contains(['.', 'e']));
    fraction.map_or_else(|| of.into(), |number| format!("{number:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        what: &'static str,
        us: f64,
        growth: Option<u32>,
    }

    #[test]
    fn a_table_has_a_head_and_a_line_for_each_row() {
        let rows = [("a, b", 2.0 / 3.0, Some(4)), ("c", 2e-9, None)];
        let rows = rows.map(|(what, us, growth)| Row { what, us, growth });
        let want =
            "| what | us | growth |\n|---|---|---|\n| a, b | 0.667 | 4 |\n| c | 0.000 |  |\n";
        assert_eq!(table(&rows).unwrap(), want);
        assert_eq!(table::<Row>(&[]).unwrap(), "");
    }
}
