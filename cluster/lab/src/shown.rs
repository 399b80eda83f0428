//! How the tools print what they have found.

use std::fmt::Display;

use serde::Serialize;

/// A result that is printed as text, or as one line with a JSON object.
pub trait Shown: Serialize + Display {
    /// Whether nothing is wrong.
    fn is_valid(&self) -> bool {
        true
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Prints the result. The exit code of the command says whether it is valid.
    fn show(&self, json: bool) -> anyhow::Result<u8> {
        match json {
            true => println!("{}", self.json()?),
            false => print!("{self}"),
        }
        Ok(u8::from(!self.is_valid()))
    }
}
