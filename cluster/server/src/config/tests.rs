mod defaults;
mod ground;
mod overrides;
mod schema;
mod whole_scene;

use std::path::Path;
use std::time::Duration;

use purview::scene::movement::Climb;
use purview::scene::spec::{BondSpec, CrowdSpec, MoveSpec, Moves, PaceSpec, UpdateError};
use purview::scene::{RangeSet, SceneSpec, Visibility};

use crate::config::*;
use crate::gateway::Tokens;
use crate::gateway::token::Rules;
use crate::logins::Duplicate;

/// The error message of a text, one problem per line.
fn wrong(text: &str) -> String {
    Config::parse(text).unwrap_err().to_string()
}

fn set(overrides: &[&str]) -> Result<Config, ConfigErrors> {
    let overrides: Vec<Override> = overrides.iter().map(|o| o.parse().unwrap()).collect();
    Config::load(None, [], &overrides)
}

fn scene(keys: &str) -> SceneSpec {
    Config::parse(&format!("[[scene]]\n{keys}")).unwrap().scenes.remove(0).spec
}

#[test]
fn an_empty_file_gives_the_defaults() {
    assert_eq!(Config::parse("").unwrap(), Config::default());
    assert_eq!(Config::parse("[[scene]]").unwrap(), Config::default());
}

#[test]
fn the_printed_defaults_read_back_as_the_defaults() {
    let text = Config::default().to_toml();
    assert_eq!(Config::parse(&text).unwrap(), Config::default(), "{text}");
}

/// Behind `=>` stands what a JSON Schema can notice, too, and behind `~>` what depends on other keys.
#[test]
fn what_is_wrong_is_told_where_it_stands_and_what_would_be_right() {
    for case in include_str!("tests/wrong.txt").split("\n\n") {
        let told = case.find("\n=> ").or_else(|| case.find("\n~> ")).expect("an error");
        let (text, told) = case.trim_end().split_at(told);
        assert_eq!(wrong(text), told[4..].replace("\n=> ", "\n"));
    }
}

#[test]
fn updates_by_error_can_be_turned_off_and_near_entities_are_then_told_in_every_tick() {
    let (on, off) = (scene("name = \"a\""), scene("update_error = \"off\""));
    assert_eq!((on.update_error, on.rates.near), (Some(UpdateError::default()), 5));
    assert_eq!((off.update_error, off.rates.near), (None, 1));
    assert_eq!((on.egress_bits_s, on.crowd), (0, None));
    assert_eq!(scene("crowd = {}").crowd, Some(CrowdSpec::default()));
    for bad in ["3", "101%", "3.25%", "-1%", "%", "1e1%"] {
        assert_eq!(
            wrong(&format!("[[scene]]\nupdate_error = {{ share = {bad:?} }}")),
            format!(
                "config:2: scene.0.update_error.share = {bad:?}: must be a share from \"0%\" to \"100%\", in tenths \
                 of a percent, for example \"3%\""
            )
        );
    }
}

#[test]
fn scene_errors_name_the_key_of_the_file() {
    assert_eq!(
        wrong("[[scene]]\nname = \"a\"\n\npatch = \"30m\"\nspawn = [\"-1m\", \"1m\"]\n")
            .lines()
            .collect::<Vec<_>>(),
        [
            "config:4: scene.0.patch = 30 m (layer \"common\"): a land of 512 m must be a power of \
             two times the patch, for example 32 m",
            "config:5: scene.0.spawn = [\"-1m\", \"1m\"]: is not a length; write for example \
             \"80m\", \"250cm\" or \"1.5km\"",
        ]
    );
    let message = wrong("[[scene]]\nvisibility = \"circle\"\nenter = \"80m\"\nleave = \"80m\"");
    let rule = "config:4: scene.0.leave = 80 m: must be greater than the enter radius of 80 m";
    assert!(message.starts_with(rule), "{message}");
}

#[test]
fn consequences_of_an_error_are_not_reported() {
    assert_eq!(wrong("[[scene]]\nland = \"5\"\nband = \"9m\"").lines().count(), 1);
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_the_file() {
    let text = "tick = 3\n[gateway]\nws = 4\nwss = 5\n[[scene]]\nview_cap = 0\nlines = \"x\"";
    let errors = Config::parse(text).unwrap_err();
    let keys: Vec<_> = errors.0.iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["tick", "gateway.ws", "gateway.wss", "scene.0.view_cap", "scene.0.lines"]);
}

#[test]
fn a_toml_syntax_error_names_its_line() {
    let message = wrong("tick = \"50ms\"\n[gateway\n");
    assert!(message.starts_with("config:2: "), "{message}");
}

#[test]
fn a_missing_file_is_reported() {
    let message = Config::load(Some(Path::new("/no/such.toml")), [], &[]).unwrap_err().to_string();
    assert!(message.starts_with("/no/such.toml: cannot be read: "), "{message}");
}

#[test]
fn a_secret_must_be_in_a_file_of_its_own() {
    let message = set(&["token.secret=hunter2"]).unwrap_err().to_string();
    assert_eq!(
        message,
        "--set token.secret=...: token.secret: a secret must not be in the configuration; put it \
         into a file and name that file in token.secret_file"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("purview.toml");
    std::fs::write(&file, "token.secret_file = \"key\"").unwrap();
    let config = Config::load(Some(&file), [], &[]).unwrap();
    assert_eq!(config.token.secret_file, Some(folder.path().join("key")));
    let keys = || Tokens::of_files(config.token.files(), config.token.rules());
    let message = keys().unwrap_err().to_string();
    assert!(message.contains("cannot be read: ") && message.contains("head -c 32"), "{message}");
    std::fs::write(folder.path().join("key"), "short\n").unwrap();
    let message = keys().unwrap_err().to_string();
    assert!(message.ends_with("has 5 bytes; a secret has at least 32"), "{message}");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(folder.path().join("key"), format!(" {secret}\n")).unwrap();
    assert_eq!(format!("{:?}", keys().unwrap()), "Tokens(..)");
}

#[test]
fn token_rules_are_read_and_printed_back() {
    let set = set(&[
        "token.keys_file=/run/keys.json",
        "token.issuer=login",
        "token.audience=game",
        "token.expiry=optional",
        "token.claims=[\"guild\", \"level\"]",
        "token.duplicate=refuse",
        "token.max_sessions=3",
    ]);
    let token = set.as_ref().unwrap().token.clone();
    assert_eq!(token.keys_file, Some("/run/keys.json".into()));
    let (issuer, audience) = (Some("login".into()), Some("game".into()));
    let claims = vec!["guild".to_owned(), "level".to_owned()];
    assert_eq!(token.rules(), Rules { issuer, audience, may_last: true, claims });
    assert_eq!(token.duplicate, Some(Duplicate::Refuse));
    assert_eq!((token.max_sessions, token.sessions_per_subject()), (Some(3), 3));
    assert_eq!(Config::parse(&set.unwrap().to_toml()).unwrap().token, token);
    let message =
        super::Config::load(None, [], &["token.audience=purview-resume".parse().unwrap()]);
    assert!(message.unwrap_err().to_string().contains("is reserved for resume tickets"));
}

#[test]
fn defaults_depend_on_the_keys_of_the_scene() {
    let small = scene(
        "width = \"96m\"\ndepth = \"64m\"\nland = \"16m\"\nregion = [2, 2]\nmoves = \"trusted\"",
    );
    assert_eq!(small.layers[0].patch_cm, [100; 2]);
    assert_eq!((small.spawn_x_cm, small.spawn_z_cm), (4_800, 3_200));
}

#[test]
fn region_ids_count_through_all_scenes() {
    let config = Config::parse("[[scene]]\nname = \"a\"\n[[scene]]\nname = \"b\"").unwrap();
    let scenes = config.build_scenes().unwrap();
    assert_eq!(scenes[1].id, SceneId(1));
    assert_eq!(scenes[1].map.regions[0].id, RegionId(4));
}

#[test]
fn the_files_under_deploy_are_legal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/scenes");
    let load = |name: &str| Config::load(Some(&folder.join(name)), [], &[]).unwrap();
    let dev = load("dev.toml").build_scenes().unwrap();
    assert_eq!(dev[0].map.regions.len(), 9);
    let keep = load("keep.toml").build_scenes().unwrap();
    let terrain = keep[0].terrain.as_ref().unwrap();
    assert_eq!((terrain.width(), terrain.depth(), terrain.tile_cm()), (192, 128, 200));
    let station = load("station.toml").build_scenes().unwrap();
    let scene = &station[0];
    assert_eq!(scene.map.regions.len(), 6);
    assert_eq!((scene.spec.width_cm, scene.spec.depth_cm), (9_600, 6_400));
    assert_eq!((scene.spec.land_cm, scene.spec.layers[0].patch_cm), (1_600, [400; 2]));
    assert_eq!((scene.band_cm, scene.spec.top_speed_cm_s), (3_200, 6_000));
}

#[test]
fn the_time_between_checkpoints_is_at_most_half_of_what_recovery_keeps() {
    let with =
        |tick: &str, every: &str| format!("tick = {tick:?}\n[cluster]\ncheckpoint = {every:?}");
    assert!(Config::parse(&with("100ms", "1m")).is_ok());
    assert!(Config::parse(&with("1s", "10m")).is_ok());
    let text = wrong(&with("100ms", "61s"));
    assert!(
        text.contains("cluster.checkpoint") && text.contains("600 ticks of \"100ms\""),
        "{text}"
    );
    assert!(text.contains("must be at most \"1m\""), "{text}");
    assert!(wrong(&with("10ms", "7s")).contains("must be at most \"6s\""));
}

#[test]
fn a_process_must_be_able_to_end_before_it_is_killed() {
    let long = wrong("[cluster]\ndrain = \"2m\"\n");
    assert!(
        long.contains("server.grace = \"60s\"") || long.contains("server.grace = \"1m\""),
        "{long}"
    );
    assert!(long.contains("drain 120 s") && long.contains("cluster.drain"), "{long}");
    assert!(Config::parse("[server]\ngrace = \"55s\"\n").is_err());
    let config = Config::parse("[server]\ngrace = \"56s\"\n").unwrap();
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    Config::parse("[server]\ngrace = \"3m\"\n[cluster]\ndrain = \"2m\"\n").unwrap();
}

#[test]
fn the_page_for_visitors_is_off_and_its_gateway_is_a_websocket_address() {
    let config = Config::parse("").unwrap();
    assert!(!config.play.enabled && config.play.gateway.is_none());
    let text = "[play]\nenabled = true\nhosts = \"play.example.net\"\n";
    let open = Config::parse(&format!("{text}gateway = \"wss://play.example.net/ws\"\n")).unwrap();
    assert!(open.play.enabled);
    assert_eq!(open.play.gateway.as_deref(), Some("wss://play.example.net/ws"));
    for url in ["http://play", "wss://", "ws:///x", "ws://a b", "ws://a; script-src *"] {
        let told = wrong(&format!("[play]\ngateway = \"{url}\"\n"));
        assert!(told.contains("play.gateway") && told.contains("ws:// or wss://"), "{told}");
    }
}

#[test]
fn console_hosts_must_be_host_names() {
    let config = Config::parse("[console]\nhosts = \"Ops.internal, purview\"\n").unwrap();
    assert_eq!(config.console.hosts, ["ops.internal", "purview"]);
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    for hosts in ["http://ops", "ops:7780", "*"] {
        let told = wrong(&format!("[console]\nhosts = \"{hosts}\"\n"));
        assert!(told.contains("console.hosts") && told.contains("is not a host name"), "{told}");
    }
}
