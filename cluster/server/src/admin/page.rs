//! The page, embedded in the binary: no build step, no resource from another host.

use axum::http::header;
use axum::response::{IntoResponse, Response};

#[derive(Debug)]
pub struct Asset {
    pub name: &'static str,
    pub text: &'static str,
}

impl Asset {
    pub fn response(&self) -> Response {
        let media_type = match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        };
        ([(header::CONTENT_TYPE, media_type)], self.text).into_response()
    }
}

/// Files of a folder, each with a name that begins with `as`.
macro_rules! assets {
    ($folder:literal as $prefix:literal: $($name:literal)*) => {
        [$(Asset { name: concat!($prefix, $name), text: include_str!(concat!($folder, $name)) }),*]
    };
}

pub(crate) use assets;

pub const PAGE: Asset = Asset { name: "page.html", text: include_str!("assets/page.html") };

pub const ASSETS: &[Asset] = &assets! {
    "assets/" as "":
    "style.css" "icon.svg" "app.js" "access.js" "camera.js" "world.js" "ground.js" "terrain.js"
    "figures.js" "input.js" "loads.js" "panel.js" "pair.js"
};

/// The page may load and run only what this server serves.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; \
     style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// A page loads only what this server serves: `prefix` begins the paths of its files.
#[cfg(test)]
pub(crate) fn check(page: &Asset, prefix: &str, all: &[&Asset]) {
    let serves = |name: &str| all.iter().any(|asset| asset.name == name);
    for asset in all.iter().chain([&page]) {
        for other in ["http://", "https://", "//cdn", "@import url", "eval(", "style=\""] {
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains(other), "{} contains {other:?}", asset.name);
        }
    }
    for part in page.text.split(prefix).skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(serves(name) || serves(&format!("assets/{name}")), "{name} is not served");
    }
    for asset in all.iter().filter(|asset| asset.name.ends_with(".js")) {
        let imports = asset.text.split("from \"").skip(1);
        for name in imports.filter_map(|part| part.split('"').next()) {
            let mut path: Vec<&str> = asset.name.split('/').collect();
            path.pop();
            for part in name.split('/') {
                match part {
                    "." => {}
                    ".." => drop(path.pop()),
                    part => path.push(part),
                }
            }
            assert!(serves(&path.join("/")), "{} imports {name}", asset.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_only_what_is_served() {
        check(&PAGE, "assets/", &ASSETS.iter().collect::<Vec<_>>());
    }
}
