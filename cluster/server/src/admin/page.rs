//! The page, embedded in the binary: no build step, no resource from another host.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its name under `assets/`.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its text.
    pub text: &'static str,
}

const JS: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $media_type:expr) => {
        Asset {
            name: $name,
            media_type: $media_type,
            text: include_str!(concat!("assets/", $name)),
        }
    };
}

/// The page itself.
pub const PAGE: Asset = asset!("page.html", "text/html; charset=utf-8");

/// The files under `assets/` that the page loads.
pub const ASSETS: [Asset; 12] = [
    asset!("style.css", "text/css; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
    asset!("app.js", JS),
    asset!("access.js", JS),
    asset!("camera.js", JS),
    asset!("world.js", JS),
    asset!("ground.js", JS),
    asset!("terrain.js", JS),
    asset!("figures.js", JS),
    asset!("input.js", JS),
    asset!("panel.js", JS),
    asset!("pair.js", JS),
];

/// The page may load and run only what this server serves.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; \
     style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_only_what_is_served() {
        let all = ASSETS.iter().chain([&PAGE]);
        for asset in all {
            for other in ["http://", "https://", "//cdn", "@import url", "eval(", "style=\""] {
                let text = asset.text.replace("http://www.w3.org/2000/svg", "");
                assert!(!text.contains(other), "{} contains {other:?}", asset.name);
            }
        }
        for part in PAGE.text.split("assets/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(ASSETS.iter().any(|a| a.name == name), "assets/{name} is not served");
        }
    }

    #[test]
    fn every_import_of_a_script_is_served() {
        for asset in ASSETS.iter().filter(|a| a.media_type == JS) {
            for part in asset.text.split("from \"./").skip(1) {
                let name = part.split('"').next().unwrap();
                assert!(ASSETS.iter().any(|a| a.name == name), "{}: {name}", asset.name);
            }
        }
    }
}
