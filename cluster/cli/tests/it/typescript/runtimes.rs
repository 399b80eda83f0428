//! The package as it is published in each place where it runs: in a browser and in Node.js 22 by
//! WebSocket. `first` has Node.js 20 by TCP.

use std::time::Duration;

use purview_server::gateway::Tokens;
use serde_json::{Value, json};

use super::package;
use crate::console::browser::{Screen, with_page};
use crate::foreign::run;
use crate::play::{server, small_meadow, url};

/// A function of the package and of the options of a player, which says what it has done.
const PROGRAM: &str = "async ({ Player }, options) => {
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const player = await Player.join({ ...options, token: async () => options.token });
  const from = player.position();
  player.walk(1, 0);
  await sleep(1_000);
  player.stop();
  await player.act(new TextEncoder().encode('hello'));
  while (player.waiting > 0) await sleep(20);
  const [to, told] = [player.position(), player.walker.told(player.serverNow())];
  await player.leave();
  const refused = await Player.join({ ...options, scene: 'nowhere' }).catch((error) => error.reason);
  return { walked: to.x - from.x, off: Math.hypot(to.x - told.x, to.z - told.z), refused };
}";

/// It has walked and stands where the server says; errors have their names.
fn assert_played(told: &Value) {
    let walked = told["walked"].as_i64().unwrap_or_else(|| panic!("{told}"));
    assert!(walked > 100, "{told}");
    assert_eq!((&told["off"], &told["refused"]), (&json!(0), &json!("unknown_scene")), "{told}");
}

fn options(address: &str, name: &str) -> Value {
    let token = Tokens::dev().mint(name, Some(Duration::from_secs(600))).unwrap();
    json!({ "addresses": address, "token": token, "scene": "meadow" })
}

#[test]
fn the_package_plays_in_a_browser_by_websocket() {
    let server = server(small_meadow(), 30);
    let options = options(&server.reach().ws_url().unwrap(), "browser");
    with_page(url(&server), Screen::Desktop, async |page| {
        let play =
            format!("import('/play/client/index.js').then((c) => ({PROGRAM})(c, {options}))");
        assert_played(&page.eval(&play).await);
        println!("{}", page.eval("navigator.userAgent").await);
        page.assert_no_errors().await;
    });
}

#[test]
fn the_package_plays_in_node_22_by_its_own_websocket() {
    let server = server(small_meadow(), 30);
    let options = options(&server.reach().ws_url().unwrap(), "node");
    let play = format!(
        "import * as client from '@purview/client'; \
         console.log(JSON.stringify([process.version, await ({PROGRAM})(client, {options})]))"
    );
    let folder = package::copy();
    let told = run(&folder, package::node22(), &["--input-type=module", "--eval", &play]);
    let told = told.join("\n");
    println!("{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert!(told[0].as_str().unwrap().starts_with("v22."), "{told}");
    assert_played(&told[1]);
}
