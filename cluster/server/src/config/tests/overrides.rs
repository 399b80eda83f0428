//! Flags and variables that override a file.

use super::*;

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("purview.toml");
    std::fs::write(&file, "[gateway]\nburst = 10\nrate_limit = 10\nsend_queue = 10").unwrap();
    let env = [
        ("PURVIEW_GATEWAY__BURST", "20"),
        ("PURVIEW_GATEWAY__RATE_LIMIT", "20"),
        ("PURVIEW_TICK", "50ms"),
        ("PURVIEW_SCENE__0__VIEW_CAP", "20"),
        ("PURVIEW_SERVICE_HOST", "10.0.0.1"),
        ("OTHER", "1"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()));
    let flags = ["gateway.burst=30".parse().unwrap(), "gateway.ws=127.0.0.1:0".parse().unwrap()];
    let config = Config::load(Some(&file), env, &flags).unwrap();
    let g = &config.gateway;
    assert_eq!((g.send_queue, g.rate_limit, g.burst), (10, 20, 30));
    assert_eq!(g.ws.port(), 0);
    assert_eq!((config.tick_ms, config.scenes[0].spec.view_cap), (50, 20));
}

#[test]
fn overrides_of_any_form_work_with_and_without_quotes() {
    let quoted = set(&["scene.0.name=\"42\"", "scene.0.region=[4, 4]", "log.level=debug"]).unwrap();
    let plain =
        set(&["scene.0.name=42", "scene.0.region=[ 4,4 ]", "log.level = \"debug\""]).unwrap();
    assert_eq!(quoted, plain);
    assert_eq!(plain.scenes[0].spec.name, "42");
    assert_eq!(plain.scenes[0].spec.region_lands_x, 4);
}

#[test]
fn a_wrong_override_names_the_flag_or_the_variable() {
    assert_eq!(
        set(&["gateway.wss=1"]).unwrap_err().to_string(),
        "--set gateway.wss=1: gateway.wss: unknown key; did you mean \"ws\"?"
    );
    assert_eq!(
        set(&["scene.3.lines=1"]).unwrap_err().to_string(),
        "--set scene.3.lines=1: scene.3.lines: a list with 0 entries has no entry \"3\""
    );
    assert_eq!(
        set(&["tick.x=1"]).unwrap_err().to_string(),
        "--set tick.x=1: tick = { ... }: must be a time, for example \"100ms\", \"30s\" or \"2m\""
    );
    let env = [("PURVIEW_GATEWAY__BURST".to_string(), "few".to_string())];
    assert_eq!(
        Config::load(None, env, &[]).unwrap_err().to_string(),
        "environment PURVIEW_GATEWAY__BURST: gateway.burst = \"few\": must be a whole number from 1 \
         to 1000000, for example 1000"
    );
}
