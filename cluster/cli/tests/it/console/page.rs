//! The page of the console in headless Chromium: selecting, following and comparing players, keys, gestures, and small
//! screens.

use std::time::{Duration, Instant};

use futures::FutureExt;
use purview_server::admin::balance::AskBalance;
use purview_server::admin::{ClusterView, Console};
use purview_server::config::ConsoleSettings;
use purview_server::node::balancer::{
    BalanceSurvey, BorderLoad, CandidateLine, NodeLoad, PlanLine, RecordLine, RegionLoad,
    ReservationLine,
};
use purview_server::node::{ClusterSurvey, NodeLine};
use purview_server::storage::About;
use serde_json::{Value, json};

use super::ANY_PORT;
use super::browser::{Page, Screen, with_page};
use super::world::{BELOW, FakeWorld, MEADOW, SITTER, WALKER};

/// Waits until the page has drawn every entity.
pub async fn until_drawn(page: &Page) {
    page.until(&format!("window.purview?.drawn === {MEADOW}")).await;
    page.until("window.purview.ghosts > 0 && window.purview.connected").await;
    assert_eq!(page.eval("window.purview.regions").await, json!(["R0", "R1", "R2", "R3"]));
}

/// A JavaScript expression: whether the camera has reached a player.
fn in_the_middle(id: u64) -> String {
    format!(
        "(() => {{ const p = window.purview.placeOf({id}); \
         const b = document.querySelector('[data-testid=map]').getBoundingClientRect(); \
         return p !== null && Math.hypot(p.x - b.x - b.width / 2, p.y - b.y - b.height / 2) < 25; }})()"
    )
}

#[test]
fn a_desktop_shows_players_with_their_views_reasons_and_scenes_by_mouse_and_by_keys() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        a_click_shows_the_view_of_a_player(&page).await;
        is_sound(&page).await;
        the_camera_follows_a_player_across_a_border(&page).await;
        is_sound(&page).await;
        the_page_explains_why_two_players_see_each_other_or_not(&page).await;
        is_sound(&page).await;
        keys_alone_suffice(&page).await;
        is_sound(&page).await;
        another_scene_shows_ranges_by_patches(&page).await;
        is_sound(&page).await;
        wheel_and_drag_move_the_map(&page).await;
        is_sound(&page).await;
    });
}

/// Nothing went wrong on the page; the next check begins with a new one.
async fn is_sound(page: &Page) {
    page.assert_no_errors().await;
    page.reload().await;
    until_drawn(page).await;
}

async fn a_click_shows_the_view_of_a_player(page: &Page) {
    page.until("document.querySelectorAll('[data-testid=region]').length === 4").await;
    page.until("document.querySelector('[data-testid=stat-players]')").await;
    page.picture("-overview").await;

    page.press_entity(SITTER).await;
    page.until(&format!("window.purview.player?.id === {SITTER}")).await;
    assert_eq!(page.text("player-region").await, "R0");
    assert_eq!(page.text("player-id").await, SITTER.to_string());
    assert_eq!(page.text("player-plane").await, "0");
    assert!(page.text("player-range").await.contains("90 m"));
    page.until(
        "document.querySelectorAll('[data-testid=view-list] button').length > 0 && \
         document.querySelector('[data-testid=view-count]').innerText === \
         `${window.purview.player.view.length} / 60`",
    )
    .await;
    page.until("window.purview.drawn < window.purview.entities").await;

    page.press_on("ghosts").await;
    page.until("window.purview.ghosts === 0").await;
    page.press_on("ghosts").await;

    page.eval("document.querySelector('[data-testid=view-list] button').click()").await;
    page.until(&format!("window.purview.player && window.purview.selected !== {SITTER}")).await;
    page.press_on("clear").await;
    page.until("window.purview.selected === null").await;
}

async fn wheel_and_drag_move_the_map(page: &Page) {
    let scale = page.eval("window.purview.scale").await;
    page.eval(
        "document.querySelector('[data-testid=map]').dispatchEvent(new WheelEvent('wheel', \
         { deltaY: -600, clientX: 300, clientY: 300, cancelable: true }))",
    )
    .await;
    page.until(&format!("window.purview.scale > {scale} * 1.2")).await;
    let before = page.eval(&format!("window.purview.placeOf({SITTER})")).await;
    page.drag(&[((400.0, 400.0), (520.0, 430.0))]).await;
    let after = page.eval(&format!("window.purview.placeOf({SITTER})")).await;
    for (axis, by) in [("x", 120.0), ("y", 30.0)] {
        let went = after[axis].as_f64().unwrap() - before[axis].as_f64().unwrap();
        assert!((went - by).abs() < 1.0, "{axis} went {went}, not {by}");
    }
    assert_eq!(page.eval("window.purview.selected").await, json!(null));
}

/// The console of a cluster of these processes.
fn console_of(nodes: Vec<NodeLine>, balance: AskBalance) -> Console {
    let survey = ClusterSurvey { nodes, ..ClusterSurvey::default() };
    let told = serde_json::to_value(&survey).unwrap();
    let cluster: ClusterView = Box::new(move || told.clone());
    let settings = ConsoleSettings::default();
    FakeWorld::start().console_of((ANY_PORT, &settings), Some(cluster), Some(balance))
}

fn node(name: &str, zone: &str, drains: bool) -> NodeLine {
    NodeLine {
        name: name.into(),
        process: 3,
        address: "10.0.0.1:7790".into(),
        takes_regions: true,
        gateway: false,
        capacity: 100,
        owns: 2,
        joined: 17,
        drains,
        about: About {
            zone: zone.into(),
            labels: [("map".to_owned(), "city".to_owned())].into(),
            release: "0.1.0".into(),
        },
    }
}

/// What a leader tells: a hot region beside a cool one, what comes next, and why something is not done.
fn balance() -> BalanceSurvey {
    let region = |region, share| RegionLoad { region, share: Some(share), ..RegionLoad::default() };
    let load = |node: &str, share| NodeLoad {
        node: node.into(),
        share,
        regions: 2,
        ..NodeLoad::default()
    };
    let step = |action: &str, ordered| PlanLine {
        action: action.into(),
        ordered,
        gain: 0.2,
        charge: 0.01,
    };
    BalanceSurvey {
        mode: "on".into(),
        leader: "a".into(),
        nodes: vec![load("a", 0.91), load("b", 0.12)],
        regions: vec![region(0, 0.75), region(1, 0.1), region(2, 0.05)],
        borders: vec![BorderLoad { regions: [0, 1], pairs: 40, ghosts: 9 }],
        reservations: vec![ReservationLine {
            scene: "meadow".into(),
            lands: [0, 0, 1, 1],
            nodes: vec!["b".into()],
            for_s: 90,
        }],
        plan: vec![step("move R3 from a to b", true), step("split R0 at land 1 of axis X", false)],
        records: vec![RecordLine {
            subject: "a".into(),
            rule: "move".into(),
            refusal: Some("safety".into()),
            candidates: vec![CandidateLine {
                action: "move R0 from a to b".into(),
                gain: 0.1,
                ..CandidateLine::default()
            }],
            ..RecordLine::default()
        }],
        ..BalanceSurvey::default()
    }
}

#[test]
fn the_processes_of_a_cluster_are_shown_and_loads_as_heat_and_balancing_with_its_reasons() {
    let told = serde_json::to_string(&balance()).unwrap();
    let ask: AskBalance = Box::new(move || {
        let told = told.clone();
        async move { Some(told) }.boxed()
    });
    let console = console_of(vec![node("a", "eu-1a", true), node("b", "", false)], ask);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        page.until("document.querySelectorAll('[data-testid=process]').length === 2").await;
        let rows =
            page.eval("document.querySelector('[data-testid=processes] tbody').innerText").await;
        let rows = rows.as_str().unwrap_or_default().replace(['\t', '\n'], " ");
        let words: Vec<&str> = rows.split_whitespace().collect();
        let expected = "adrains 2 0.1.0 eu-1a map=city b 2 0.1.0 – map=city";
        assert_eq!(words.join(" "), expected);
        page.until("!document.querySelector('[data-testid=loads]').hidden").await;
        assert_eq!(page.eval("window.purview.loads").await, Value::Null);
        let before = page.eval(COLOURS).await;
        page.press_on("loads").await;
        page.until("window.purview.loads?.regions === 3").await;
        assert_eq!(page.eval("window.purview.loads.borders").await, json!(1));
        // A hot region is red, a cool one green, and one without a report keeps its colour.
        let after = page.eval(COLOURS).await;
        let [red, green] = [0, 1].map(|at| after[at].as_array().unwrap().clone());
        let colour = |of: &[Value], at: usize| of[at].as_u64().unwrap();
        assert!(colour(&red, 0) > colour(&red, 1) + 40, "{red:?}");
        assert!(colour(&green, 1) > colour(&green, 0) + 20, "{green:?}");
        let unlike = |rgb: usize| {
            let of = |colours: &Value| colours[3][rgb].as_i64().unwrap();
            (of(&before) - of(&after)).abs()
        };
        assert!((0..3).all(|rgb| unlike(rgb) < 6), "{before} {after}");
        let text = page.text("balance").await.replace('\n', " ");
        for part in [
            "on · by a",
            "a 91 % · 2 regions",
            "ordered move R3 from a to b",
            "next split R0 at land 1 of axis X",
            "b reserved for meadow, 90 s more",
            "a, move nothing: safety (move R0 from a to b: gain 10 %, charge 0 %)",
        ] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        page.picture("-loads").await;
        page.press_on("loads").await;
        page.until("window.purview.loads === null").await;
        page.assert_no_errors().await;
    });
}

/// The mean colour of a square in each region.
const COLOURS: &str = "(() => { const map = document.querySelector('[data-testid=map]'); \
     const side = 60; \
     return window.purview.rects().map((r) => { \
       const p = window.purview.pixelOf(r.x0 + (r.x1 - r.x0) / 8, r.z0 + (r.z1 - r.z0) / 2); \
       const { data } = map.getContext('2d').getImageData(p.x, p.y, side, side); \
       return [0, 1, 2].map((of) => Math.round(data.filter((_, i) => i % 4 === of) \
         .reduce((sum, v) => sum + v, 0) / side / side)); }); })()";

async fn the_camera_follows_a_player_across_a_border(page: &Page) {
    page.eval(&format!("window.purview.select({WALKER})")).await;
    for region in ["R0", "R1", "R0"] {
        page.until(&format!("window.purview.player?.region_name === '{region}'")).await;
    }
    page.until(&in_the_middle(WALKER)).await;
    page.picture("").await;
}

#[test]
fn the_page_asks_for_the_token_and_then_shows_everything() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("console.token");
    let settings = ConsoleSettings { token_file: Some(file.clone()), ..Default::default() };
    let console = FakeWorld::start().console_with(ANY_PORT, &settings);
    let token = std::fs::read_to_string(&file).unwrap();
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        page.until("!document.querySelector('[data-testid=access]').hidden").await;
        page.press_on("token").await;
        page.type_text(token.trim()).await;
        page.press_on("token-show").await;
        until_drawn(&page).await;
        page.until("document.querySelector('[data-testid=access]').hidden").await;
    });
}

/// The row of a view list, as text: rank, id, bond and distance.
const FIRST_ROW: &str =
    "[...document.querySelector('[data-testid=view-list]').rows[0].cells].map((c) => c.innerText)";

async fn the_page_explains_why_two_players_see_each_other_or_not(page: &Page) {
    page.press_entity(SITTER).await;
    page.until("document.querySelectorAll('[data-testid=view-list] button').length > 0").await;
    let row = page.eval(FIRST_ROW).await;
    assert_eq!((&row[0], &row[2]), (&json!("1"), &json!("–")), "{row}");
    assert!(row[3].as_str().unwrap().ends_with(" m"), "{row}");

    // A player from the list, who is seen: a line joins the two.
    page.eval(
        "(() => { const key = document.querySelector('[data-testid=view-list] button'); \
         window.friend = Number(key.textContent); \
         key.dispatchEvent(new MouseEvent('click', { shiftKey: true, bubbles: true })); })()",
    )
    .await;
    page.until("window.purview.why?.seen && window.purview.other === window.friend").await;
    page.until("window.purview.joined").await;
    assert!(page.text("pair-sentences").await.contains("see each other: no bond, "));
    assert_eq!(page.eval("window.purview.selected").await, json!(SITTER));
    page.picture("-pair").await;

    // A player on the map, who may walk away from the pointer: several tries.
    page.until(&in_the_middle(SITTER)).await;
    page.eval("window.purview.compare(null)").await;
    page.shift(true).await;
    let begin = Instant::now();
    while page.eval("window.purview.other").await == Value::Null {
        assert!(begin.elapsed() < Duration::from_secs(20), "no click on the map compares");
        let at = page.eval("window.purview.placeOf(window.friend)").await;
        page.press(at["x"].as_f64().unwrap(), at["y"].as_f64().unwrap()).await;
    }
    page.shift(false).await;
    page.until("window.purview.why").await;
    assert_eq!(page.eval("window.purview.selected").await, json!(SITTER));

    // By keys alone, a player who is not seen.
    page.eval("document.querySelector('[data-testid=map]').focus()").await;
    page.type_text("a").await;
    page.until("document.activeElement.dataset.testid === 'pair'").await;
    page.eval("document.activeElement.select()").await;
    page.type_text(&format!("{BELOW}\u{E007}")).await;
    page.until(&format!("window.purview.why?.b === {BELOW}")).await;
    page.until("!window.purview.joined").await;
    assert!(page.text("pair-sentences").await.contains("on plane 0 and 900 on plane 7"));
    page.type_text("\u{E00C}").await;
    page.until("window.purview.other === null").await;
    assert_eq!(page.text("pair-sentences").await, "");

    page.eval("window.purview.compare(424242)").await;
    page.until("window.purview.other === 424242").await;
    page.until(
        "document.querySelector('[data-testid=pair-sentences]').innerText.includes('No region has')",
    )
    .await;
    page.press_on("pair-clear").await;
    page.until("window.purview.other === null && window.purview.connected").await;
}

async fn keys_alone_suffice(page: &Page) {
    let key = async |name: &str| {
        page.eval(&format!(
            "document.querySelector('[data-testid=map]').dispatchEvent(\
             new KeyboardEvent('keydown', {{ key: '{name}', cancelable: true }}))"
        ))
        .await
    };
    // A player who crosses a border is in no region's list for a moment.
    page.until(&format!(
        "window.purview.playerIds()[0] === {WALKER} && \
         document.querySelector('[data-testid=map]').dispatchEvent(\
         new KeyboardEvent('keydown', {{ key: 'n', cancelable: true }})) !== null"
    ))
    .await;
    page.until(&format!("window.purview.player?.id === {WALKER}")).await;
    key("n").await;
    page.until(&format!("window.purview.player?.id === {SITTER}")).await;
    key("Escape").await;
    page.until("window.purview.selected === null").await;
    key("0").await;
    page.until(&format!("window.purview.drawn === {MEADOW}")).await;
    key("g").await;
    page.until("window.purview.ghosts === 0").await;
}

async fn another_scene_shows_ranges_by_patches(page: &Page) {
    page.eval(
        "(() => { const s = document.querySelector('[data-testid=scene]'); \
         s.value = 'harbour'; s.dispatchEvent(new Event('change')); })()",
    )
    .await;
    page.until("window.purview.regions[0] === 'R4' && window.purview.drawn > 0").await;
    page.eval("window.purview.select(10002)").await;
    page.until("window.purview.player?.range.mode === 'patches'").await;
    assert_eq!(page.text("player-range").await, "full, 5 × 5 of 32 m");
    page.until(&in_the_middle(10002)).await;
    page.picture("-patches").await;
    // The user selects a player of another scene: the page switches to that scene.
    page.eval(&format!("window.purview.select({SITTER})")).await;
    page.until("window.purview.scene === 'meadow' && window.purview.drawn > 0").await;
}

#[test]
fn on_a_phone_everything_fits_a_tap_selects_and_a_pinch_zooms() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Phone, async |page| {
        until_drawn(&page).await;
        assert_eq!(page.eval("[innerWidth, innerHeight]").await, json!([390, 844]));
        page.until("document.querySelector('[data-testid=stat-players]')").await;
        page.picture("-phone-overview").await;
        page.press_entity(SITTER).await;
        page.until(&format!("window.purview.player?.id === {SITTER}")).await;
        page.until("document.querySelectorAll('[data-testid=view-list] button').length > 0").await;
        page.until(&in_the_middle(SITTER)).await;
        page.picture("-phone").await;
        let too_wide = "[...document.querySelectorAll('body *')].filter((e) => \
             e.getBoundingClientRect().right > 390.5 && !e.closest('.unseen')).map((e) => e.outerHTML)";
        assert_eq!(page.eval(too_wide).await, json!([]));
        assert_eq!(page.eval("document.documentElement.scrollWidth").await, json!(390));
        is_sound(&page).await;
        let scale = page.eval("window.purview.scale").await;
        page.drag(&[((180.0, 250.0), (100.0, 250.0)), ((220.0, 250.0), (300.0, 250.0))]).await;
        page.until(&format!("window.purview.scale > {scale} * 3")).await;
        assert_eq!(page.eval("window.purview.selected").await, json!(null));
        page.assert_no_errors().await;
    });
}

#[test]
fn the_page_reports_a_lost_server_and_recovers_by_itself() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let addr = console.addr();
    with_page(format!("http://{addr}"), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        console.stop().await;
        page.until("!document.querySelector('[data-testid=banner]').hidden").await;
        assert!(page.text("banner").await.contains("does not answer"));
        assert_eq!(page.eval("window.purview.connected").await, json!(false));
        let polls = page.eval("window.purview.polls").await;
        let console = world.console(addr);
        page.until("document.querySelector('[data-testid=banner]').hidden").await;
        page.until(&format!("window.purview.polls > {polls}")).await;
        until_drawn(&page).await;
        page.assert_no_errors().await;
        console.stop().await;
    });
}
