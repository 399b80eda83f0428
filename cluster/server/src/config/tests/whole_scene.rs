//! A scene that sets every key.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "every key has a line")]
fn a_scene_with_every_key_is_read_and_printed_back() {
    let text = r#"
        tick = "50ms"
        [server]
        arbiters = 3
        region_threads = 4
        data_dir = "/var/lib/purview"
        demo = true
        [gateway]
        tcp = "off"
        heartbeat = "2m"
        [console]
        listen = "off"
        [token]
        secret_file = "/run/secrets/purview"
        [log]
        level = "warn,purview=debug"
        format = "json"
        [[scene]]
        name = "a \"quoted\" name"
        width = "1.024km"
        depth = "512m"
        land = "128m"
        region = [1, 2]
        layer = [{ name = "people", patch = "16m" }, { name = "beasts", patch = "32m" }]
        kind = [{ name = "player", speed = "6m/s", sights = [["near"], []] }, { name = "dragon", layer = "beasts" }]
        moves = "judged"
        teleports = "clients"
        linger = "10s"
        movement = { tile = "50cm", command = "400ms", grace = "200ms", leash = "800ms", allowance = "900ms", climb_up = "60cm", climb_down = "2m" }
        range = ["near", "far"]
        patch_margin = "150cm"
        height = "8m"
        view_cap = 7
        view_margin = "150cm"
        rates = { near = "50ms", middle = "500ms", far = "1s" }
        bonds = { kinds = ["raid", "fight"], cap = 5, enter = "100m", leave = "110m", fight = "3s", fights = "logic" }
        update_error = { min = "50cm", share = "2.5%" }
        frame_budget = "1KiB"
        egress = "20kbps"
        pace = { acts = 5, bytes = "2KiB" }
        crowd = { max = 300, every = "2s" }
        handoff_margin = "3m"
        top_speed = "7m/s"
        band = "120m"
        lines = 2
        line_capacity = 30
        spawn = ["10m", "20m"]
        [[scene]]
        name = "arena"
        width = "512m"
        depth = "512m"
        region = [1, 1]
        visibility = "circle"
        enter = "80m"
        leave = "90m"
    "#;
    let config = Config::parse(text).unwrap();
    let scene = &config.scenes[0].spec;
    assert_eq!((scene.width_cm, scene.depth_cm), (102_400, 51_200));
    assert_eq!(scene.kinds[1].layer, 1);
    assert_eq!(scene.kinds[0].sights, [RangeSet::NEAR, RangeSet::NONE]);
    assert_eq!((scene.kinds[0].speed_cm_s, scene.kinds[1].speed_cm_s), (Some(600), None));
    let moves = MoveSpec {
        mode: Moves::Judged,
        tile_cm: 50,
        command_ms: 400,
        grace_ms: 200,
        leash_ms: 800,
        allowance_ms: 900,
        climb: Some(Climb { up_cm: 60, down_cm: 200 }),
    };
    assert_eq!(scene.moves, moves);
    assert_eq!(scene.pace, PaceSpec { acts_per_s: 5, bytes_per_s: 2_048 });
    assert!(scene.client_teleports && !config.scenes[1].spec.client_teleports);
    assert_eq!((scene.linger_ms, config.scenes[1].spec.linger_ms), (10_000, 0));
    assert_eq!(scene.range, RangeSet::NEAR.or(RangeSet::FAR));
    assert_eq!((scene.patch_margin_cm, scene.height_cm), (Some(150), Some(800)));
    let bonds = BondSpec {
        kinds: vec!["raid".into(), "fight".into()],
        cap: 5,
        enter_cm: 10_000,
        leave_cm: 11_000,
        fight_ms: 3_000,
        client_fights: false,
    };
    assert_eq!(scene.bonds, bonds);
    assert_eq!((scene.rates.near, scene.rates.middle, scene.rates.far), (1, 10, 20));
    assert_eq!(scene.update_error, Some(UpdateError { min_cm: 50, share_permille: 25 }));
    assert_eq!(scene.egress_bits_s, 20_000);
    assert_eq!(scene.crowd, Some(CrowdSpec { max: 300, interval: 40 }));
    assert_eq!((scene.spawn_x_cm, scene.spawn_z_cm), (1_000, 2_000));
    assert_eq!(config.gateway.heartbeat, Duration::from_secs(120));
    let circle = Visibility::Circle { enter_cm: 8_000, leave_cm: 9_000 };
    assert_eq!(config.scenes[1].spec.visibility, circle);
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config, "{}", config.to_toml());
}

#[test]
fn a_linger_time_is_at_most_an_hour() {
    let linger = |text: &str| {
        Config::parse(&format!("[[scene]]\nname = \"wood\"\nlinger = {text}\n"))
            .map(|config| config.scenes[0].spec.linger_ms)
            .map_err(|errors| errors.to_string())
    };
    assert_eq!(linger("\"1h\""), Ok(3_600_000));
    assert_eq!(linger("\"0ms\""), Ok(0));
    for wrong in ["\"61m\"", "10", "\"ten\""] {
        let error = linger(wrong).unwrap_err();
        assert!(error.contains("scene.0.linger"), "{error}");
    }
}

#[test]
fn a_scene_that_keeps_players_has_one_of_each_subject() {
    let keeps = [
        "linger = \"10s\"",
        "kind = [{ name = \"player\", properties = [{ name = \"gold\", id = 1, type = \"int\", persist = true }] }]",
    ];
    let read = |duplicate: &str, keys: &str| {
        let text =
            format!("[token]\nduplicate = {duplicate:?}\n[[scene]]\nname = \"wood\"\n{keys}\n");
        Config::parse(&text).map(drop).map_err(|errors| errors.to_string())
    };
    assert_eq!(read("allow", ""), Ok(()));
    for keys in keeps {
        assert_eq!(read("replace", keys), Ok(()));
        let error = read("allow", keys).unwrap_err();
        assert!(error.contains("token.duplicate") && error.contains("\"wood\""), "{error}");
    }
}
