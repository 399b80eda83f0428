//! Watches the configuration file of `purview dev`, checks each change, and says what needs a restart.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use purview_demo::flags::ConfigFlags;
use purview_server::config::Config;

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(500);

/// Watches the file of these flags, until it is dropped.
pub async fn watch(flags: &ConfigFlags, running: &Config) {
    let Some(file) = &flags.file else { return std::future::pending().await };
    let changed = || std::fs::metadata(file).and_then(|meta| meta.modified()).ok();
    let mut seen = changed();
    loop {
        tokio::time::sleep(LOOK).await;
        let now = changed();
        if now == seen || now.is_none() {
            continue;
        }
        seen = now;
        let lines = match flags.load() {
            Ok(config) => said(&values(running), &values(&config)),
            Err(errors) => {
                errors.to_string().lines().map(|line| format!("error: {line}")).collect()
            }
        };
        let mut out = std::io::stdout().lock();
        for line in lines {
            // Nobody reads it any more: nothing to do.
            drop(writeln!(out, "{}: {line}", file.display()));
        }
        drop(out.flush());
    }
}

/// Every key of a configuration with its value.
fn values(config: &Config) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    // What is printed is valid, by a test of its own.
    if let Ok(table) = config.to_toml().parse::<toml::Table>() {
        flatten("", &toml::Value::Table(table), &mut all);
    }
    all
}

fn flatten(path: &str, value: &toml::Value, all: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&below(key), value, all));
        }
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            let numbered = list.iter().enumerate();
            numbered.for_each(|(n, value)| flatten(&below(&n.to_string()), value, all));
        }
        value => drop(all.insert(path.to_owned(), value.to_string())),
    }
}

/// What a change of the file says: each key that differs from the running server.
fn said(running: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let value = |of: &BTreeMap<String, String>, key: &str| {
        of.get(key).map_or("nothing".to_owned(), String::clone)
    };
    let keys: std::collections::BTreeSet<&String> = running.keys().chain(new.keys()).collect();
    let differs = keys.into_iter().filter(|key| running.get(*key) != new.get(*key));
    let lines: Vec<String> = differs
        .map(|key| {
            let (from, to) = (value(running, key), value(new, key));
            format!("{key} is {to}, and the server runs with {from}: it needs a restart")
        })
        .collect();
    if lines.is_empty() { vec!["valid, as the server runs".into()] } else { lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_key_is_told_with_both_values() {
        let of = |text: &str| values(&Config::parse(text).unwrap());
        let (one, two) = (of("[[scene]]\nview_cap = 7\n"), of("[[scene]]\nview_cap = 9\n"));
        assert_eq!(
            said(&one, &two),
            ["scene.0.view_cap is 9, and the server runs with 7: it needs a restart"]
        );
        assert_eq!(said(&one, &one), ["valid, as the server runs"]);
    }
}
