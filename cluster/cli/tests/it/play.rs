//! The page `/play`: its files and tokens over HTTP (`http`), and visitors who play it in headless Chromium (`visitors`).

mod herd;
mod http;
mod visitors;

use std::net::SocketAddr;
use std::sync::Arc;

use purview::actor::logic::LogicFactory;
use purview::scene::properties::{Properties, PropertyId, Value};
use purview::scene::{SceneSpec, Visibility};
use purview_demo::{hunt, scene};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::{Background, Inside};

/// The scene of `purview dev`, but smaller: four regions of 64 m.
pub fn small_meadow() -> SceneSpec {
    SceneSpec {
        width_cm: 12_800,
        depth_cm: 12_800,
        region_lands_x: 1,
        region_lands_z: 1,
        visibility: Visibility::Circle { enter_cm: 2_600, leave_cm: 3_000 },
        top_speed_cm_s: 1_000,
        spawn_x_cm: 4_800,
        spawn_z_cm: 4_800,
        ..scene::meadow()
    }
}

/// A server with the page and the example game, on free ports.
pub fn server(spec: SceneSpec, tokens: u32) -> Background {
    server_with(spec, tokens, hunt::hunt())
}

/// The same with other rules.
fn server_with(spec: SceneSpec, tokens: u32, logic: Arc<dyn LogicFactory>) -> Background {
    let mut config = Config { scenes: vec![spec.into()], ..Config::default() };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    (config.gateway.ws, config.gateway.tcp, config.console.listen) = (any, None, None);
    (config.play.enabled, config.play.listen, config.play.tokens) = (true, any, tokens);
    let inside = Inside { logic: Some(logic), ..Inside::default() };
    Background::start_inside(config, Tokens::dev(), inside).unwrap()
}

/// One property that is a number.
fn hit_points(id: PropertyId, n: i64) -> Properties {
    let mut properties = Properties::default();
    properties.begin_with(id, Value::of(&n).expect("a number is a value"));
    properties
}

/// The address of the page.
pub fn url(server: &Background) -> String {
    server.reach().play.clone().expect("the page is served")
}
