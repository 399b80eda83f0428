//! Property tests: every text is either read or refused, and none panics.

use proptest::prelude::*;

use crate::config::*;

/// Texts that are almost configurations: known keys with values of every form.
#[expect(clippy::too_many_lines, reason = "every key has a line")]
fn near_toml() -> impl Strategy<Value = String> {
    let header = prop::sample::select(vec![
        "",
        "[gateway]",
        "[[scene]]",
        "[scene.0]",
        "[[scene.layer]]",
        "[[scene.kind]]",
        "[log]",
        "[scene.rates]",
        "[scene.bonds]",
        "[scene.movement]",
        "[token]",
        "[console]",
        "[play]",
        "[cluster]",
        "[cluster.tls]",
        "[scene.map]",
        "[[scene.map.door]]",
    ]);
    let key = prop::sample::select(vec![
        "tick",
        "ws",
        "tcp",
        "burst",
        "region_threads",
        "heartbeat",
        "max_sessions",
        "name",
        "width",
        "depth",
        "land",
        "region",
        "patch",
        "layer",
        "kind",
        "visibility",
        "enter",
        "leave",
        "range",
        "patch_margin",
        "height",
        "rates",
        "update_error",
        "egress",
        "crowd",
        "every",
        "max",
        "share",
        "min",
        "bonds",
        "kinds",
        "cap",
        "fight",
        "near",
        "band",
        "spawn",
        "level",
        "top_speed",
        "moves",
        "command",
        "leash",
        "allowance",
        "climb_up",
        "handoff_margin",
        "secret_file",
        "token_file",
        "command_token_file",
        "hosts",
        "enabled",
        "listen",
        "tokens",
        "insecure",
        "certificate",
        "key",
        "authority",
        "etcd",
        "etcd_user",
        "etcd_password_file",
        "postgres",
        "postgres_password_file",
        "lines",
        "scene",
        "map",
        "tile",
        "threshold",
        "door",
        "tiles",
        "open",
    ]);
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (0..200_i64).prop_map(|n| n.to_string())
    ];
    let unit = prop::sample::select(vec!["m", "km", "cm", "ms", "s", "m/s", "KiB", ""]);
    let value = prop_oneof![
        number.clone(),
        (number.clone(), unit).prop_map(|(n, u)| format!("\"{n}{u}\"")),
        (number.clone(), number).prop_map(|(a, b)| format!("[{a}, {b}]")),
        prop::sample::select(vec![
            "\"circle\"",
            "\"all\"",
            "[]",
            "{}",
            "true",
            "1e9",
            "nan",
            "[\"1m\", \"2m\"]"
        ])
        .prop_map(String::from),
    ];
    let line = prop_oneof![
        header.prop_map(String::from),
        (key, value).prop_map(|(k, v)| format!("{k} = {v}")),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Config::parse(&text);
        let _ = Config::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_near_configuration_panics_and_legal_ones_print_back(text in near_toml()) {
        if let Ok(config) = Config::parse(&text) {
            prop_assert!(config.build_scenes().is_ok());
            prop_assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        }
    }

    #[test]
    fn no_override_panics(path in "[a-z0-9_.]{0,20}", value in ".{0,20}") {
        let known = format!("scene.0.{path}");
        for path in [path, known] {
            let _ = Config::load(None, [], &[Override { path, value: value.clone() }]);
        }
    }
}
