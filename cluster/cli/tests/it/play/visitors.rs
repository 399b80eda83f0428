//! Visitors in headless Chromium: two browsers play with each other, on a desktop and on a phone.

use std::time::{Duration, Instant};

use fantoccini::key::Key;
use purview::scene::SceneSpec;
use purview_demo::players::{self, Role, Stage};
use purview_server::gateway::Tokens;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{server, small_meadow, url};
use crate::console::browser::{Page, Screen, with_page, with_pages};

/// Gives a name and waits until the visitor is in the world.
pub async fn enter(page: &Page, name: &str) {
    page.until("document.querySelector('#welcome').open").await;
    page.type_text(name).await;
    page.tap(char::from(Key::Enter)).await;
    page.until("window.purview.isJoined && window.purview.me").await;
}

pub async fn number(page: &Page, expression: &str) -> f64 {
    let value = page.eval(expression).await;
    value.as_f64().unwrap_or_else(|| panic!("{expression} is {value}"))
}

/// A JavaScript expression: the other visitor, as this page draws it.
fn other(name: &str) -> String {
    format!("window.purview.entities.find((e) => e.name === '{name}')")
}

/// The nearest entity of a kind: where it is from the visitor, metres, and how far.
async fn nearest(page: &Page, kind: &str) -> Option<(f64, f64, f64)> {
    let found = page
        .eval(&format!(
            "(() => {{ const me = window.purview.me; const all = window.purview.entities\
             .filter((e) => e.kind === '{kind}' && e.hp !== 0)\
             .map((e) => [(e.x - me.x) / 100, (e.z - me.z) / 100])\
             .map(([x, z]) => [x, z, Math.hypot(x, z)]).sort((a, b) => a[2] - b[2]); \
             return all[0] ?? null; }})()"
        ))
        .await;
    let at = |n: usize| found[n].as_f64();
    Some((at(0)?, at(1)?, at(2)?))
}

/// Holds the keys towards an entity of a kind until it is in reach; false: there is none.
async fn walk_to(page: &Page, kind: &str, reach: f64) -> bool {
    let Some((x, z, far)) = nearest(page, kind).await else { return false };
    if far > reach {
        step_towards(page, x, z).await;
    }
    true
}

/// Holds keys for a moment, in a direction in metres.
async fn step_towards(page: &Page, x: f64, z: f64) {
    let keys = [(x < -1.0, 'a'), (x > 1.0, 'd'), (z < -1.0, 'w'), (z > 1.0, 's')];
    let held: Vec<char> = keys.into_iter().filter(|(on, _)| *on).map(|(_, key)| key).collect();
    for key in &held {
        page.key(*key, true).await;
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    for key in &held {
        page.key(*key, false).await;
    }
}

/// Walks around the middle of the first region, where monsters are sooner or later.
async fn wander(page: &Page, begin: Instant) {
    let corners = [(1_600.0, 1_600.0), (4_800.0, 1_600.0), (4_800.0, 4_800.0), (1_600.0, 4_800.0)];
    let (x, z) = corners[begin.elapsed().as_secs() as usize / 6 % 4];
    let (dx, dz) = (
        x - number(page, "window.purview.me.x").await,
        z - number(page, "window.purview.me.z").await,
    );
    step_towards(page, dx / 100.0, dz / 100.0).await;
}

/// Hunts with keys until the visitor has gold.
async fn hunt(page: &Page) {
    let begin = Instant::now();
    while number(page, "window.purview.me.gold").await == 0.0 {
        assert!(begin.elapsed() < Duration::from_secs(120), "no gold in two minutes");
        if walk_to(page, "drop", 2.5).await {
            page.tap('e').await;
        } else if walk_to(page, "monster", 2.5).await {
            page.tap(' ').await;
        } else {
            wander(page, begin).await;
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

#[test]
fn two_visitors_meet_hunt_talk_and_cross_borders() {
    let server = server(small_meadow(), 30);
    let screens = [Screen::Desktop, Screen::Phone];
    with_pages(url(&server), screens, async |[ann, ben]: [Page; 2]| {
        enter(&ann, "Ann").await;
        enter(&ben, "Ben").await;
        ann.until(&other("Ben")).await;
        ben.until(&other("Ann")).await;
        walks_smoothly(&ann, &ben).await;

        // They talk: near each other, and in their party.
        ann.tap(char::from(Key::Enter)).await;
        ann.type_text("hello there").await;
        ann.tap(char::from(Key::Enter)).await;
        ben.until("document.querySelector('#log').innerText.includes('Ann: hello there')").await;
        ann.tap('p').await;
        ben.until(&format!("{}?.party === {}", other("Ann"), party(&ann).await)).await;
        ben.eval("document.querySelector('[data-act=party]').click()").await;
        assert_eq!(party(&ben).await, party(&ann).await);
        ann.until(&format!("{}?.party === window.purview.me.party", other("Ben"))).await;
        ben.eval("document.querySelector('#to').value = 'say'").await;
        ben.eval("(document.querySelector('#text').value = 'to the dungeon', document.querySelector('#say').requestSubmit())").await;
        ann.until("document.querySelector('#log').innerText.includes('Ben: to the dungeon')").await;

        // They enter the dungeon of their party, and leave it.
        ann.tap('g').await;
        ann.until("window.purview.me.plane >= 1000").await;
        ben.until(&format!("!{}", other("Ann"))).await;
        ben.eval("document.querySelector('[data-act=dungeon]').click()").await;
        ben.until(&format!("window.purview.me.plane >= 1000 && {}", other("Ann"))).await;
        ann.tap('g').await;
        ben.eval("document.querySelector('[data-act=dungeon]').click()").await;
        ann.until("window.purview.me.plane === 0").await;
        ben.until("window.purview.me.plane === 0").await;

        hunt(&ann).await;
        ann.until("window.purview.me.gold >= 10").await;
        crosses_borders(&ann).await;
        ann.picture("").await;
        films(&ann).await;
        ben.picture("-phone").await;
        for page in [&ann, &ben] {
            assert_eq!(page.eval("window.purview.errors").await, json!([]));
        }
    });
}

async fn party(page: &Page) -> Value {
    page.eval("window.purview.me.party").await
}

/// Ann walks, and Ben's page draws her without a jump.
async fn walks_smoothly(ann: &Page, ben: &Page) {
    ben.eval(
        "(window.drawn = [], window.watch = () => { const ann = window.purview.entities\
         .find((e) => e.name === 'Ann'); if (ann) window.drawn.push([performance.now(), ann.x, ann.z]); \
         requestAnimationFrame(window.watch); }, window.watch())",
    )
    .await;
    let before = number(ann, "window.purview.me.x").await;
    ann.key('d', true).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    ann.key('d', false).await;
    let walked = number(ann, "window.purview.me.x").await - before;
    assert!((500.0..1_500.0).contains(&walked), "Ann walked {walked} cm");
    ben.until(&format!("Math.abs({}.x - {}) < 5", other("Ann"), before + walked)).await;
    // The speed between pictures 100 ms apart is never much above that of the walk.
    let fastest = number(
        ben,
        "Math.max(...window.drawn.map(([at, x, z], n) => { const to = window.drawn.slice(n)\
         .find(([later]) => later >= at + 100); return to ? Math.hypot(to[1] - x, to[2] - z) \
         / (to[0] - at) * 100 : 0; }))",
    )
    .await;
    assert!((400.0..900.0).contains(&(fastest * 10.0)), "{fastest} m/s");
}

/// The switch shows regions with owner and ghosts; a walk over a border changes nothing else.
async fn crosses_borders(page: &Page) {
    page.tap('b').await;
    page.until("/region \\d+ · local · \\d+ own, \\d+ ghosts/.test(document.querySelector('#region').innerText)").await;
    let from = page.eval("window.purview.me.region").await;
    let key = if number(page, "window.purview.me.x").await < 6_400.0 { 'd' } else { 'a' };
    page.key(key, true).await;
    page.until(&format!("window.purview.me.region !== {from}")).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    page.key(key, false).await;
    assert_eq!(page.eval("document.querySelector('#notice').hidden").await, json!(true));
    page.until("document.querySelector('#region').innerText.startsWith(`region ${window.purview.me.region} `)").await;
}

/// A walk over borders, picture by picture.
async fn films(page: &Page) {
    for (turn, key) in ['a', 's', 'd', 'w', 'd'].into_iter().enumerate() {
        page.key(key, true).await;
        for step in 0..8 {
            page.picture(&format!("-{:02}", 8 * turn + step)).await;
        }
        page.key(key, false).await;
    }
}

#[test]
fn a_visitor_on_a_phone_walks_with_the_stick_is_bitten_and_returns() {
    let server = server(small_meadow(), 30);
    with_page(url(&server), Screen::Phone, async |page| {
        enter(&page, "Cy").await;
        let (x, z) = (
            number(&page, "window.purview.me.x").await,
            number(&page, "window.purview.me.z").await,
        );
        let stick = page
            .eval(
                "(() => { const b = document.querySelector('#stick').getBoundingClientRect(); \
                 return [b.x + b.width / 2, b.y + b.height / 2]; })()",
            )
            .await;
        let middle = (stick[0].as_f64().unwrap().round(), stick[1].as_f64().unwrap().round());
        page.hold(middle, (middle.0 + 50.0, middle.1), Duration::from_millis(800)).await;
        let moved = [
            number(&page, "window.purview.me.x").await - x,
            number(&page, "window.purview.me.z").await - z,
        ];
        assert!(moved[0] > 200.0 && moved[1].abs() < 60.0, "{moved:?}");
        // Monsters come, bite, and the visitor falls and stands again.
        let begin = Instant::now();
        while number(&page, "window.purview.me.falls").await == 0.0 {
            assert!(begin.elapsed() < Duration::from_secs(150), "no monster has come");
            if !walk_to(&page, "monster", 2.0).await {
                wander(&page, begin).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        page.until("window.purview.me.hp > 50 && window.purview.isJoined").await;
        page.until("document.querySelector('#notice').innerText.includes('You fell')").await;
        assert_eq!(
            page.eval("document.documentElement.scrollWidth <= innerWidth").await,
            json!(true)
        );
        assert_eq!(page.eval("window.purview.errors").await, json!([]));
    });
}

#[test]
fn a_hidden_page_lets_its_player_stand_and_is_whole_when_it_is_shown() {
    let server = server(small_meadow(), 30);
    let screens = [Screen::Desktop, Screen::Desktop];
    with_pages(url(&server), screens, async |[ann, ben]: [Page; 2]| {
        enter(&ann, "Ann").await;
        enter(&ben, "Ben").await;
        ann.until(&other("Ben")).await;
        ann.key('d', true).await;
        ann.until("window.purview.net.way[0] === 1").await;
        hide(&ann, true).await;
        ann.key('d', false).await;
        ann.until("window.purview.net.way[0] === 0").await;
        let stood = number(&ann, "window.purview.me.x").await;
        // Ben walks on while Ann's page draws nothing.
        ben.key('s', true).await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        ben.key('s', false).await;
        assert_eq!(number(&ann, "window.purview.me.x").await, stood);
        hide(&ann, false).await;
        let there = number(&ben, "window.purview.me.z").await;
        ann.until(&format!("Math.abs({}.z - {there}) < 5", other("Ben"))).await;
        assert_eq!(ann.eval("window.purview.net.player.isConnected").await, json!(true));
        assert_eq!(ann.eval("window.purview.errors").await, json!([]));
    });
}

/// Lets a page believe that its tab is hidden: it draws no pictures and hears of it.
async fn hide(page: &Page, hidden: bool) {
    page.eval(&format!(
        "(Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {hidden} }}), \
         document.dispatchEvent(new Event('visibilitychange')))"
    ))
    .await;
}

#[test]
fn the_crowd_beyond_the_view_list_is_drawn_as_dots() {
    let server = server(SceneSpec { view_cap: 4, ..small_meadow() }, 30);
    let (url_of_bots, tokens) = (server.reach().url().unwrap(), Tokens::dev());
    let bots =
        (0..48).map(|n| tokens.mint(&format!("bot-{n}"), Some(Duration::from_secs(600))).unwrap());
    let (bots, stage) = (
        bots.collect::<Vec<_>>(),
        Stage { url: url_of_bots, scene: "meadow".into(), ground: None },
    );
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let (_never, rests) = watch::channel(false);
    runtime.spawn(players::play(stage, Role::Walks, bots, rests));
    with_page(url(&server), Screen::Desktop, async |page| {
        enter(&page, "Fay").await;
        page.until("window.purview.figures?.dots >= 3").await;
        let players = "window.purview.entities.filter((e) => e.kind === 'player').length";
        assert!(number(&page, players).await <= 4.0);
        page.picture("-crowd").await;
        assert_eq!(page.eval("window.purview.errors").await, json!([]));
    });
}

#[test]
fn a_connection_that_slept_resumes_and_a_name_is_asked_once() {
    let server = server(small_meadow(), 30);
    with_page(url(&server), Screen::Desktop, async |page| {
        enter(&page, "Dee").await;
        let id = page.eval("window.purview.me.id").await;
        // As after a sleep of the machine: the connection is given up, and the player is the same.
        page.eval("window.purview.net.reconnect('slept')").await;
        page.until("window.purview.net.arrival === 'resumed'").await;
        assert_eq!(page.eval("window.purview.me.id").await, id);
        page.eval("location.reload()").await;
        page.until("window.purview?.isJoined && window.purview.me?.hp > 0").await;
        assert_eq!(page.eval("document.querySelector('#welcome').open").await, json!(false));
        assert_eq!(page.eval("document.querySelector('#name').textContent").await, json!("Dee"));
    });
}
