//! The console of a real server with bots and NPCs in a real browser; with `PURVIEW_SCREENSHOT` it makes the picture
//! of the README.

use serde_json::Value;

use super::operations::{get, metric};
use super::process::Served;
use crate::common::waits;
use crate::console::browser::{Screen, with_page};

fn json(console: &str, path: &str) -> Value {
    let (_, body) = get(console, path);
    serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"))
}

/// The player with the largest view among those near the centre of the map.
fn most_watched(console: &str) -> u64 {
    let all = json(console, "/api/entities?scene=meadow&plane=0");
    let ids = all["entities"].as_array().unwrap().iter().filter_map(|e| e[0].as_u64());
    let players = ids.filter_map(|id| {
        let (status, body) = get(console, &format!("/api/player/{id}"));
        let player: Value = serde_json::from_str(&body).unwrap();
        (status == 200).then(|| (player["view"].as_array().map_or(0, Vec::len), id))
    });
    players.max().expect("there are players").1
}

#[test]
fn the_console_shows_a_real_world() {
    let server = Served::with_bots("200", &[]);
    let console = server.console.clone();
    with_page(format!("http://{console}/"), Screen::Desktop, async |page| {
        page.until("window.purview?.drawn >= 200 && window.purview.ghosts > 0").await;
        page.until("window.purview.connected").await;
        // Until the bots have spread from the spawn position.
        let handoffs = || metric(&get(&console, "/metrics").1, "purview_handoffs_total");
        waits("the bots have spread", || handoffs() >= 150.0).await;
        let id = most_watched(&console);
        page.eval(&format!("window.purview.select({id})")).await;
        page.until(&format!("window.purview.player?.id === {id}")).await;
        page.until("document.querySelectorAll('[data-testid=view-list] button').length > 0").await;
        // A player at some distance who stays in view for a moment.
        page.eval("window.purview.compare(window.purview.player.view.slice(0, 5).at(-1).id)").await;
        page.until("window.purview.why?.seen && window.purview.joined").await;
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        page.picture("").await;
        page.assert_no_errors().await;
    });
}
