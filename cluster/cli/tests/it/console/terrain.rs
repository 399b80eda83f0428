//! The terrain on the page of the console: walls and doors, by the colours of single pixels.

use serde_json::json;

use super::ANY_PORT;
use super::browser::{Page, Screen, with_page};
use super::page::until_drawn;
use super::world::{self, FakeWorld};

/// Colour and opacity of the page's canvas at a position of the world, metres.
async fn pixel(page: &Page, x: f64, z: f64) -> Vec<u64> {
    let pixel = format!(
        "(() => {{ const p = window.purview.pixelOf({x} * 100, {z} * 100); \
         return [...document.querySelector('[data-testid=map]').getContext('2d')\
         .getImageData(p.x, p.y, 1, 1).data]; }})()"
    );
    serde_json::from_value(page.eval(&pixel).await).unwrap()
}

/// Shows the harbour and waits until the visible terrain is drawn.
async fn show_harbour(page: &Page) {
    until_drawn(page).await;
    page.eval(
        "(() => { const s = document.querySelector('[data-testid=scene]'); \
         s.value = 'harbour'; s.dispatchEvent(new Event('change')); })()",
    )
    .await;
    page.until("window.purview.regions[0] === 'R4' && window.purview.drawn > 0").await;
    until_walls(page).await;
}

async fn until_walls(page: &Page) {
    let frames = page.eval("window.purview.frames").await;
    page.until(&format!(
        "window.purview.frames > {frames} && window.purview.terrain.shape && \
         window.purview.terrain.pieces > 0 && window.purview.terrain.waiting === 0"
    ))
    .await;
}

/// Moves the camera to a position, metres, with so many pixels per metre.
async fn centre_at(page: &Page, x: f64, z: f64, scale: f64) {
    page.eval(&format!("window.purview.lookAt({x} * 100, {z} * 100, {scale} / 100)")).await;
    until_walls(page).await;
}

#[test]
fn blocked_tiles_and_doors_are_drawn_at_every_zoom_and_walls_can_be_switched_off() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let (water, rock) = (f64::from(world::WATER_M), f64::from(world::ROCK_M));
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        show_harbour(&page).await;
        page.picture("-walls").await;
        // Without names, grid and ghosts only the ground is drawn at a position.
        for switch in ["names", "grid", "ghosts"] {
            page.press_on(switch).await;
        }
        page.until("window.purview.ghosts === 0").await;
        // No entity is ever in the water or beyond the rock.
        let places = |scale: f64| {
            [(water - 3.5 / scale, 40.5), (water + 3.5 / scale, 40.5), (rock + 0.5, rock + 0.5)]
        };
        for (scale, level) in [(0.3, 1), (0.9, 0), (6.0, 0), (40.0, 0)] {
            let mut told = Vec::new();
            for walls in [true, false] {
                let mut pixels = Vec::new();
                for (x, z) in places(scale) {
                    centre_at(&page, x, z, scale).await;
                    pixels.push(pixel(&page, x, z).await);
                }
                told.push(pixels);
                if walls {
                    assert_eq!(page.eval("window.purview.terrain.level").await, json!(level));
                }
                page.press_on("walls").await;
            }
            let [with, without] = &told[..] else { unreachable!("on and off") };
            assert_eq!(with[1], without[1], "free ground is not drawn over, {scale}");
            for (place, name) in [(0, "water"), (2, "rock")] {
                let lighter = (0..3).all(|c| with[place][c] > without[place][c] + 10);
                // At a third of a pixel per tile a single blocked tile is faint.
                if place == 0 || scale > 1.0 {
                    assert!(
                        lighter,
                        "{name} at {scale}: {:?} over {:?}",
                        with[place], without[place]
                    );
                }
            }
        }
        page.assert_no_errors().await;
        page.reload().await;
        doors_are_drawn_in_their_state(&page, &world).await;
        page.assert_no_errors().await;
    });
}

async fn doors_are_drawn_in_their_state(page: &Page, world: &FakeWorld) {
    show_harbour(page).await;
    assert_eq!(
        page.eval("window.purview.terrain.doors").await,
        json!([{ "name": "gate", "open": false }, { "name": "bridge", "open": true }])
    );
    assert!(page.text("legend").await.contains("closed door"));
    for (scale, suffix) in [(0.3, "-doors-far"), (8.0, "-doors")] {
        centre_at(page, 202.0, 310.0, scale).await;
        let closed = pixel(page, 202.0, 310.0).await;
        assert!(closed[0] > closed[1] + 50, "red: {closed:?}");
        world.open_gate(true);
        page.until("window.purview.terrain.doors[0].open").await;
        until_walls(page).await;
        page.picture(suffix).await;
        let open = pixel(page, 202.0, 310.0).await;
        assert!(open[1] > open[0] + 10, "green: {open:?}");
        centre_at(page, 202.0, 610.0, scale).await;
        let bridge = pixel(page, 202.0, 610.0).await;
        assert!(bridge[1] > bridge[0] + 10, "green: {bridge:?}");
        world.open_gate(false);
        page.until("!window.purview.terrain.doors[0].open").await;
    }
}

#[test]
fn a_scene_without_a_map_has_no_switch_for_walls() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Phone, async |page| {
        until_drawn(&page).await;
        let hidden = "document.querySelector('[data-testid=walls]').hidden";
        assert_eq!(page.eval(hidden).await, json!(true));
        assert!(!page.text("legend").await.contains("door"));
        show_harbour(&page).await;
        page.until(&format!("!{hidden}")).await;
        page.picture("-phone-walls").await;
        let overlap = "(() => { const box = (c) => document.querySelector(c).getBoundingClientRect(); \
                       return box('.switches').right - box('.zoom').left; })()";
        assert!(page.eval(overlap).await.as_f64().unwrap() < 0.0, "the switches have room");
        page.assert_no_errors().await;
    });
}
