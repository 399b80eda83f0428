//! The configuration: one TOML file with units in its values, overridden by the environment and by
//! flags.
//!
//! The command line reads it once per process; every other folder gets typed, valid values. A key
//! that is unknown, a value out of range or a combination that cannot work must never get past this
//! folder.
//!
//! ```
//! use purview_server::config::Config;
//!
//! let config = Config::parse("[gateway]\nheartbeat = \"45s\"\n").unwrap();
//! assert_eq!(config.gateway.heartbeat.as_secs(), 45);
//! assert_eq!(config.scenes.len(), 1);
//! ```
//!
//! Precedence, highest first: `--set gateway.ws=127.0.0.1:0`, then the environment
//! (`PURVIEW_GATEWAY__WS`, two underscores for each dot; `PURVIEW_SCENE__0__VIEW_CAP` for entries
//! of a list), then the file, then the defaults. An unknown key is an error in every one of them.

mod advertise;
mod cluster;
mod contents;
mod error;
mod form;
mod forms;
mod keys;
mod kinds;
mod logic;
mod map;
mod objects;
mod options;
mod origin;
mod page;
mod patterns;
mod pool;
mod portals;
mod ranges;
mod read;
mod scene;
mod settings;
mod tree;
pub mod units;
mod updates;
mod visibility;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use purview::scene::spec::{KindSpec, MoveSpec, Moves, Rates, SpecError, UpdateError};
use purview::scene::{Kind, RegionId, Scene, SceneId, SceneSpec};

use crate::logins::Duplicate;
use crate::maps::{self, MapSpec};
use crate::shutdown;

pub use advertise::Advertise;
pub use error::{ConfigError, ConfigErrors};
pub use logic::{AskAbout, LogicSettings, NoAnswer};
pub use origin::Origin;
pub use settings::{
    ClusterSettings, ConsoleSettings, Expiry, GatewaySettings, PlaySettings, ServerSettings,
    TokenSettings,
};
pub use tree::{Override, OverrideError};

// Options of parts of the server, which the configuration fills.
pub use crate::admission::AddressLimits;
pub use crate::logs::{LogFormat, LogSettings};
pub use crate::storage::password::{Password, PasswordError};
pub use crate::tls::{CertificateSettings, TlsSettings};

use form::Description;
use keys::{Io, Keys, keys};
use page::Page;
use read::Section;
use tree::Node;
use units::Quantity;

/// All settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Milliseconds between two ticks, 10 to 10,000.
    pub tick_ms: u32,
    /// Settings of the process.
    pub server: ServerSettings,
    /// Client connections.
    pub gateway: GatewaySettings,
    /// Console, metrics and health.
    pub console: ConsoleSettings,
    /// The page on which visitors play.
    pub play: PlaySettings,
    /// Logic workers.
    pub logic: LogicSettings,
    /// This process as a member of a cluster.
    pub cluster: ClusterSettings,
    /// How clients authenticate.
    pub token: TokenSettings,
    /// Logs.
    pub log: LogSettings,
    /// The scenes, at least one; each fulfils the rules of [`Scene::new`].
    pub scenes: Vec<SceneSettings>,
}

/// A scene and the source of its map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneSettings {
    /// The scene.
    pub spec: SceneSpec,
    /// The map; `None`: the whole scene is walkable.
    pub map: Option<MapSpec>,
}

/// The scene of an empty configuration: the server validates every move.
fn default_scene() -> SceneSpec {
    let moves = MoveSpec { mode: Moves::Judged, ..MoveSpec::default() };
    let rates = Rates { near: 5, ..SceneSpec::default().rates };
    let update_error = Some(UpdateError::default());
    SceneSpec { moves, rates, update_error, ..SceneSpec::default() }
}

impl Default for SceneSettings {
    fn default() -> Self {
        default_scene().into()
    }
}

impl From<SceneSpec> for SceneSettings {
    fn from(spec: SceneSpec) -> Self {
        SceneSettings { spec, map: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            tick_ms: 100,
            server: ServerSettings::default(),
            gateway: GatewaySettings::default(),
            console: ConsoleSettings::default(),
            play: PlaySettings::default(),
            logic: LogicSettings::default(),
            cluster: ClusterSettings::default(),
            token: TokenSettings::default(),
            log: LogSettings::default(),
            scenes: vec![SceneSettings::default()],
        }
    }
}

impl Config {
    /// How long a process may take to end.
    pub fn ending(&self) -> shutdown::Limits {
        shutdown::Limits { drain: self.cluster.drain, lame_duck: self.gateway.lame_duck }
    }

    /// Reads a configuration from a text, without file, environment or flags.
    ///
    /// # Errors
    /// All problems of the text, not only the first.
    pub fn parse(text: &str) -> Result<Config, ConfigErrors> {
        Config::resolve(Node::parse(text, Path::new("config")), Path::new(""), ([], &[]))
    }

    /// The effective configuration: `file` if there is one, overridden by `env` (pairs of name and
    /// value, such as [`std::env::vars`]; names that are not settings are ignored), overridden by
    /// `set`.
    ///
    /// # Errors
    /// All problems, not only the first; or that the file cannot be read.
    pub fn load(
        file: Option<&Path>,
        env: impl IntoIterator<Item = (String, String)>,
        set: &[Override],
    ) -> Result<Config, ConfigErrors> {
        let Some(path) = file else {
            return Config::resolve(Ok(Node::table(Origin::Default)), Path::new(""), (env, set));
        };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                Config::resolve(Node::parse(&text, path), folder, (env, set))
            }
            Err(e) => Err(ConfigErrors(vec![ConfigError {
                key: String::new(),
                found: None,
                rule: format!("cannot be read: {e}"),
                origin: Origin::File(path.into(), 0),
            }])),
        }
    }

    /// A configuration built by a program in place of the defaults, overridden by `env` and `set`.
    /// As with the defaults, a value of `base` that does not go with a setting has no effect.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_onto(
        base: &Config,
        env: impl IntoIterator<Item = (String, String)>,
        set: &[Override],
    ) -> Result<Config, ConfigErrors> {
        let base = Node::parse(&base.to_toml(), Path::new("built-in")).map(Node::into_defaults);
        Config::resolve(base, Path::new(""), (env, set))
    }

    fn resolve(
        root: Result<Node, Vec<ConfigError>>,
        folder: &Path,
        (env, set): (impl IntoIterator<Item = (String, String)>, &[Override]),
    ) -> Result<Config, ConfigErrors> {
        let mut root = root.map_err(ConfigErrors)?;
        let mut problems = Vec::new();
        let mut env: Vec<_> = env.into_iter().collect();
        env.sort();
        for (name, value) in env {
            if let Some(path) = tree::path_of_env(&name) {
                problems.extend(root.set(&path, &value, &Origin::Env(name)).err());
            }
        }
        for Override { path, value } in set {
            let origin = Origin::Flag(format!("{path}={value}"));
            problems.extend(root.set(path, value, &origin).err());
        }
        let (config, more) = read_all(&root, folder);
        problems.extend(more);
        if problems.is_empty() {
            return Ok(config);
        }
        problems.sort_by(|a, b| (&a.origin, &a.key).cmp(&(&b.origin, &b.key)));
        Err(ConfigErrors(problems))
    }

    /// Builds the scenes: ids by position in the list, region ids counted through all scenes. Reads
    /// the maps.
    ///
    /// # Errors
    /// The problems of a map, and the scene rules that are broken. A loaded configuration can only
    /// fail because of a map; a configuration built by a program may break any rule.
    pub fn build_scenes(&self) -> Result<Vec<Arc<Scene>>, ConfigErrors> {
        let (mut first, mut contents_before) = (RegionId(0), 0);
        let mut scenes = Vec::new();
        for (i, settings) in self.scenes.iter().enumerate() {
            let broken = |errors: Vec<SpecError>| {
                let tell = |e: SpecError| ConfigError {
                    key: format!("scene.{i}.{}", e.key),
                    found: Some(e.found),
                    rule: e.rule,
                    origin: Origin::Default,
                };
                ConfigErrors(errors.into_iter().map(tell).collect())
            };
            let scene = Scene::new(SceneId(i as u16), settings.spec.clone(), self.tick_ms, first);
            let mut scene = scene.map_err(broken)?;
            let (mut contents, mut portals) = (Vec::new(), Vec::new());
            if let Some(map) = &settings.map {
                let wrong = |e| ConfigErrors(vec![map::wrong(i, map, &e)]);
                let (terrain, objects) = maps::load(map, &settings.spec).map_err(wrong)?;
                let terrain = Arc::new(terrain);
                scene = scene.with_terrain(terrain.clone()).map_err(broken)?;
                contents = objects::contents(&settings.spec, &terrain, &objects)
                    .map_err(|problem| objects::wrong(map, problem))
                    .map_err(wrong)?;
                portals = portals::of_map(&objects)
                    .map_err(|problem| objects::wrong(map, problem))
                    .map_err(wrong)?;
            }
            scene = scene.with_portals(portals).map_err(broken)?;
            scene = scene.with_contents(contents_before, contents).map_err(broken)?;
            contents_before += scene.contents().len() as u32;
            first = RegionId(first.0 + scene.map.regions.len() as u32);
            scenes.push(Arc::new(scene));
        }
        let dead_end = |(scene, found, rule)| ConfigError {
            key: format!("scene.{scene}.portal"),
            found: Some(found),
            rule,
            origin: Origin::Default,
        };
        let dead_ends = portals::dead_ends(&scenes);
        if !dead_ends.is_empty() {
            return Err(ConfigErrors(dead_ends.into_iter().map(dead_end).collect()));
        }
        Ok(scenes)
    }

    /// The whole configuration as TOML, with a comment for each key. [`Config::parse`] reads it
    /// back to an equal configuration.
    pub fn to_toml(&self) -> String {
        let (mut value, mut default) = (self.clone(), Config::default());
        let mut io = Io::Print(Page::default());
        keys(&mut Keys { io: &mut io, value: &mut value, default: &mut default });
        match io {
            Io::Print(page) => page.finish(),
            Io::Read(..) | Io::Describe(_) => String::new(),
        }
    }

    /// The JSON Schema of all configurations: [`Config::parse`] refuses what it refuses, and more.
    pub fn json_schema() -> serde_json::Value {
        let (mut value, mut default) = (Config::default(), Config::default());
        let mut io = Io::Describe(Description::default());
        keys(&mut Keys { io: &mut io, value: &mut value, default: &mut default });
        let mut schema = match io {
            Io::Describe(description) => description.finish(),
            Io::Read(..) | Io::Print(_) => serde_json::Value::Null,
        };
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = format!("Configuration of Purview {}", env!("CARGO_PKG_VERSION")).into();
        schema
    }
}

impl Config {
    /// A scene that keeps its players, if there is one: they have persistent properties, or linger.
    pub fn scene_that_keeps_players(&self) -> Option<&SceneSettings> {
        let persists = |scene: &&SceneSettings| {
            let player = scene.spec.kinds.get(usize::from(Kind::PLAYER.0));
            let stores = |kind: &KindSpec| kind.properties.iter().any(|property| property.persist);
            scene.spec.linger_ms > 0 || player.is_some_and(stores)
        };
        self.scenes.iter().find(persists)
    }
}

fn keys(k: &mut Keys<'_, '_, Config>) {
    keys! { k; "tick" time(10, 10_000) tick_ms: "Time between two ticks of every scene."; }
    let tick_ms = k.value.tick_ms;
    let mut names: Vec<String> = Vec::new();
    let scene = |k: &mut Keys<'_, '_, SceneSettings>| {
        scene::keys(&mut k.within(|s| &mut s.spec), tick_ms);
        map::keys(k);
        k.check(|s, scene| {
            let name = &scene.spec.name;
            if names.contains(name) {
                s.unfit("name", name, "is used twice; scene names are unique".into());
            }
            names.push(name.clone());
        });
    };
    keys! { k;
        "server" section(ServerSettings::keys) server: "The process.";
        "gateway" section(GatewaySettings::keys) gateway: "Client connections.";
        "console" section(|k: &mut Keys<'_, '_, ConsoleSettings>| {
            ConsoleSettings::keys(k);
            k.check(|s, _| settings::check_console(s));
        }) console: "Console, metrics and health.";
        "play" section(PlaySettings::keys) play: "The page on which visitors play in the browser.";
        "logic" section(|k: &mut Keys<'_, '_, LogicSettings>| {
            LogicSettings::keys(k);
            k.check(|s, _| logic::check(s));
        }) logic: "Logic workers.";
        "cluster" section(|k: &mut Keys<'_, '_, ClusterSettings>| {
            ClusterSettings::keys(k);
            k.check(|s, c| cluster::check(s, c, tick_ms));
        }) cluster: "This process as a member of a cluster.";
        "token" section(|k: &mut Keys<'_, '_, TokenSettings>| {
            TokenSettings::keys(k);
            k.check(|s, t| settings::check_token(s, t));
        }) token: "How clients authenticate.";
        "log" section(settings::log) log: "Logs.";
        "scene" sections(SceneSettings::default(), scene) scenes: "A map and its rules.";
    }
    k.check(|s, config| {
        if config.scenes.is_empty() {
            config.scenes = Config::default().scenes;
        }
        grace(s, config);
        one_player_each(s, config);
    });
}

fn read_all(root: &Node, folder: &Path) -> (Config, Vec<ConfigError>) {
    let (mut value, mut default) = (Config::default(), Config::default());
    let mut io = Io::Read(Section::new("", Some(root)), folder);
    keys(&mut Keys { io: &mut io, value: &mut value, default: &mut default });
    let problems = match io {
        Io::Read(section, _) => section.finish(),
        Io::Print(_) | Io::Describe(_) => Vec::new(),
    };
    (value, problems)
}

/// The process must be able to end before the system kills it.
fn grace(s: &mut Section<'_>, config: &Config) {
    let (grace, total) = (config.server.grace, shutdown::total(config.ending()));
    if grace < total {
        let rule = format!(
            "must be at least {:?}, the longest time that a shutdown takes: {}; raise server.grace, or shorten cluster.drain or gateway.lame_duck",
            Quantity::Time.text(total.as_millis() as i64),
            shutdown::text(config.ending())
        );
        let found = Some(format!("{:?}", Quantity::Time.text(grace.as_millis() as i64)));
        let (key, origin) = ("server.grace".to_owned(), s.origin_of("server"));
        s.problems.push(ConfigError { key, found, rule, origin });
    }
}

/// Two players of one subject would begin with the same persistent values, and no login would find a player that lingers.
fn one_player_each(s: &mut Section<'_>, config: &Config) {
    let Some(scene) = config.scene_that_keeps_players() else { return };
    if config.token.duplicate != Some(Duplicate::Allow) {
        return;
    }
    let name = &scene.spec.name;
    let rule = format!(
        "must be \"replace\" or \"refuse\" where players have persistent properties or linger (scene {name:?}): \
         two players of one subject would have the same values, and a new login would not find its player"
    );
    let (key, origin) = ("token.duplicate".to_owned(), s.origin_of("token"));
    s.problems.push(ConfigError { key, found: Some("\"allow\"".into()), rule, origin });
}
