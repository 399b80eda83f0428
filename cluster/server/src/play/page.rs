//! The files of the page, embedded in the binary: no build step, no resource from another host. The
//! client library is the compiled one of `clients/typescript`.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path below `/play/`.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its text.
    pub text: &'static str,
}

const JS: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $media_type:expr) => {
        Asset {
            path: concat!("assets/", $name),
            media_type: $media_type,
            text: include_str!(concat!("assets/", $name)),
        }
    };
}

macro_rules! client {
    ($name:literal) => {
        Asset {
            path: concat!("client/", $name),
            media_type: JS,
            text: include_str!(concat!("../../../../clients/typescript/dist/", $name)),
        }
    };
}

/// The page itself.
pub const PAGE: Asset = asset!("page.html", "text/html; charset=utf-8");

/// The files that the page loads.
pub const ASSETS: [Asset; 44] = [
    asset!("style.css", "text/css; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
    asset!("main.js", JS),
    asset!("game.js", JS),
    asset!("net.js", JS),
    asset!("input.js", JS),
    asset!("pad.js", JS),
    asset!("draw.js", JS),
    asset!("shapes.js", JS),
    asset!("borders.js", JS),
    asset!("figures.js", JS),
    asset!("hud.js", JS),
    asset!("probe.js", JS),
    client!("clock.js"),
    client!("display/cells.js"),
    client!("display/clock.js"),
    client!("display/display.js"),
    client!("display/index.js"),
    client!("display/track.js"),
    client!("errors.js"),
    client!("events.js"),
    client!("index.js"),
    client!("movement/blend.js"),
    client!("movement/ground.js"),
    client!("movement/integers.js"),
    client!("movement/move.js"),
    client!("movement/predictor.js"),
    client!("movement/trajectory.js"),
    client!("movement/walk.js"),
    client!("schema.js"),
    client!("session/connect.js"),
    client!("session/line.js"),
    client!("session/options.js"),
    client!("session/outbox.js"),
    client!("session/player.js"),
    client!("transport/transport.js"),
    client!("transport/websocket.js"),
    client!("value.js"),
    client!("view.js"),
    client!("walker.js"),
    client!("wire/codec.js"),
    client!("wire/messages.js"),
    client!("wire/reader.js"),
    client!("wire/writer.js"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_only_what_is_served() {
        for asset in ASSETS.iter().chain([&PAGE]) {
            for other in ["http://", "https://", "//cdn", "@import url", "eval(", "style=\""] {
                let text = asset.text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(other), "{} contains {other:?}", asset.path);
            }
        }
        for part in PAGE.text.split("play/assets/").skip(1) {
            let name = part.split('"').next().unwrap();
            let path = format!("assets/{name}");
            assert!(ASSETS.iter().any(|a| a.path == path), "{path} is not served");
        }
    }

    #[test]
    fn every_import_of_a_script_is_served() {
        for asset in ASSETS.iter().filter(|a| a.media_type == JS) {
            let imports = asset.text.split("from \"").skip(1);
            for name in imports.filter_map(|part| part.split('"').next()) {
                let mut path: Vec<&str> = asset.path.split('/').collect();
                path.pop();
                for part in name.split('/') {
                    match part {
                        "." => {}
                        ".." => drop(path.pop()),
                        part => path.push(part),
                    }
                }
                let path = path.join("/");
                assert!(ASSETS.iter().any(|a| a.path == path), "{} imports {path}", asset.path);
            }
        }
    }
}
