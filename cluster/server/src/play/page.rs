//! The files of the page, embedded in the binary: no build step, no resource from another host. The
//! client library is the compiled one of `clients/typescript`.

use crate::admin::page::{Asset, assets};

pub const PAGE: Asset = Asset { name: "page.html", text: include_str!("assets/page.html") };

const OWN: &[Asset] = &assets! {
    "assets/" as "assets/":
    "style.css" "icon.svg" "main.js" "game.js" "net.js" "input.js" "pad.js" "draw.js"
    "shapes.js" "borders.js" "figures.js" "hud.js" "probe.js"
};

const CLIENT: &[Asset] = &assets! {
    "../../../../clients/typescript/dist/" as "client/":
    "clock.js" "display/cells.js" "display/clock.js" "display/display.js" "display/index.js"
    "display/track.js" "errors.js" "events.js" "index.js" "movement/blend.js"
    "movement/ground.js" "movement/integers.js" "movement/move.js" "movement/predictor.js"
    "movement/trajectory.js" "movement/walk.js" "schema.js" "session/connect.js"
    "session/line.js" "session/options.js" "session/outbox.js" "session/player.js"
    "transport/transport.js" "transport/websocket.js" "value.js" "view.js" "walker.js"
    "wire/codec.js" "wire/messages.js" "wire/reader.js" "wire/writer.js"
};

pub fn assets() -> impl Iterator<Item = &'static Asset> {
    OWN.iter().chain(CLIENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::page::check;

    #[test]
    fn the_page_loads_only_what_is_served() {
        check(&PAGE, "play/assets/", &assets().collect::<Vec<_>>());
    }
}
