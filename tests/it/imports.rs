//! The directions of import (DESIGN, "The house"), checked by reading the sources: `scene` imports
//! no module of ours, `wire` imports `scene`, `actor` imports both, `cluster` imports the library,
//! and nothing imports `cluster`. The scene has no actor, socket, clock, thread or global
//! randomness.

use std::process::Command;

use crate::house::{files, root, short};

/// Names that the code of a folder must not contain, and why.
struct Rule {
    folder: &'static str,
    forbidden: &'static [&'static str],
    why: &'static str,
}

/// Log lines that can repeat with every message must use `log_limited!`.
const LINES: [&str; 4] = ["tracing::warn!", "tracing::error!", "warn!", "error!"];
const LIMITED: &str =
    "lines that can repeat with every message are logged at most once a second: use log_limited!";

const RULES: [Rule; 12] = [
    Rule {
        folder: "src/scene",
        forbidden: &["crate::wire", "crate::actor", "crate::{", "use crate::*"],
        why: "the scene imports no other module of ours",
    },
    Rule {
        folder: "src/scene",
        forbidden: &[
            "actix",
            "tokio",
            "futures",
            "std::time",
            "Instant",
            "SystemTime",
            "std::thread",
            "std::net",
            "std::fs",
            "std::io",
            "std::env",
            "std::process",
            "std::sync::Mutex",
            "rand::",
            "rand_",
            "RandomState",
            "std::collections::HashMap",
            "std::collections::HashSet",
        ],
        why: "the scene has no actor, socket, clock, thread, lock or global randomness",
    },
    Rule {
        folder: "src/wire",
        forbidden: &["crate::actor", "crate::{", "use crate::*", "actix", "tokio", "std::net"],
        why: "wire imports scene and does no IO",
    },
    Rule {
        folder: "src",
        forbidden: &["purview_server", "purview_lab", "purview_cli", "purview_client"],
        why: "nothing imports cluster, and the library does not import its client",
    },
    Rule {
        folder: "clients/rust/src",
        forbidden: &["purview_server", "purview_lab", "purview::actor", "actix"],
        why: "a client needs the scene's types and the wire, no more",
    },
    Rule { folder: "src/scene", forbidden: &LINES, why: LIMITED },
    Rule { folder: "src/wire", forbidden: &LINES, why: LIMITED },
    Rule { folder: "src/actor", forbidden: &LINES, why: LIMITED },
    Rule {
        folder: "cluster/server/src",
        forbidden: &["purview_lab", "purview_cli", "clap", "fantoccini"],
        why: "the server is production code: no tools, no command line, no browser",
    },
    Rule {
        folder: "cluster/lab/src",
        forbidden: &["purview_cli", "fantoccini"],
        why: "tools are called by the command line and do not call it",
    },
    Rule {
        folder: "src/interest",
        forbidden: &["crate::actor", "crate::wire", "crate::{", "use crate::*", "std::time"],
        why: "interest management needs the scene's geometry and index, no more",
    },
    Rule {
        folder: "src/actor/player",
        forbidden: &["actor::region", "super::region"],
        why: "sessions and regions know addresses and messages, not each other",
    },
];

/// The forbidden names in the code, with line numbers. Comments and the tests at the end of a file
/// do not count.
fn offences(source: &str, forbidden: &[&'static str]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (i, line) in source.lines().enumerate() {
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        found.extend(forbidden.iter().filter(|word| names(code, word)).map(|word| (i + 1, *word)));
    }
    found
}

/// Whether the code contains the name as a whole word.
fn names(code: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let open_end = word.ends_with(|c| !part(c) || c == '_');
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(part);
        let after = code[at + word.len()..].chars().next().is_some_and(part);
        !before && (open_end || !after)
    })
}

#[test]
fn imports_go_only_in_the_directions_of_the_design() {
    let mut found = Vec::new();
    for rule in &RULES {
        for file in files(rule.folder, ".rs") {
            let source = std::fs::read_to_string(&file).unwrap();
            for (line, word) in offences(&source, rule.forbidden) {
                found.push(format!("{}:{line}: {word}: {}", short(&file), rule.why));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_manifest_depends_against_the_direction() {
    let manifest = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let client = manifest("clients/rust/Cargo.toml");
    assert!(!client.contains("purview-server") && !client.contains("purview-lab"));
    let server = manifest("cluster/server/Cargo.toml");
    let server = &server[..server.find("[dev-dependencies]").unwrap()];
    assert!(!server.contains("purview-lab") && !server.contains("test-util"));
    let library = manifest("Cargo.toml");
    let library = &library[library.find("[dependencies]").unwrap()..];
    assert!(!library[..library.find("[profile").unwrap()].contains("purview-"));
}

#[test]
fn forbidden_lines_are_detected() {
    let scene = RULES[1].forbidden;
    for line in [
        "use std::time::Duration;",
        "use tokio::sync::mpsc;",
        "    let now = Instant::now();",
        "use rand::Rng;",
        "use actix::prelude::*;",
    ] {
        assert_eq!(offences(line, scene).len(), 1, "{line}");
    }
    assert_eq!(offences("use crate::actor::messages;", RULES[0].forbidden), [(1, "crate::actor")]);
    assert_eq!(offences("use crate::{actor, wire};", RULES[0].forbidden), [(1, "crate::{")]);
}

#[test]
fn comments_tests_and_longer_names_are_allowed() {
    let scene = RULES[1].forbidden;
    for text in [
        "// tokio would be wrong here",
        "let instantly = 1;",
        "fn operand::x()",
        "#[cfg(test)]\nmod tests { use std::time::Instant; }",
    ] {
        assert!(offences(text, scene).is_empty(), "{text}");
    }
}

#[test]
fn a_game_client_in_rust_compiles_no_actor_framework() {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let args = "tree --offline --locked --package purview-client --edges normal --prefix none";
    let tree =
        Command::new(cargo).args(args.split(' ')).current_dir(root()).output().expect("cargo runs");
    let crates = String::from_utf8_lossy(&tree.stdout);
    assert!(crates.contains("tokio-tungstenite"), "{}", String::from_utf8_lossy(&tree.stderr));
    assert!(!crates.contains("actix"), "{crates}");
}
