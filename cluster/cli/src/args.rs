//! Flags and value parsers that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
#[cfg(feature = "lab")]
use purview::scene::SceneSpec;
use purview_server::config::{Config, ConfigErrors, Override};

/// The flags of every command that reads a configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// The configuration file; without it every key has its default.
    #[arg(
        long = "config",
        visible_aliases = ["scene", "file"],
        value_name = "FILE",
        env = "PURVIEW_CONFIG"
    )]
    pub file: Option<PathBuf>,
    /// Override one key, for example `gateway.ws=127.0.0.1:0`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// The log level, for example `debug`; short for `--set log.level=LEVEL`.
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
}

impl CommonArgs {
    /// The configuration in force: file, then environment, then flags.
    ///
    /// # Errors
    /// All errors of the configuration.
    pub fn load(&self) -> Result<Config, ConfigErrors> {
        Config::load(self.file.as_deref(), environment(), &self.overrides())
    }

    /// As [`CommonArgs::load`], with the command's own scene if the file configures no scene.
    /// Environment and flags override keys of that scene, too. The argument of `scene` is the length
    /// of a tick, milliseconds.
    ///
    /// # Errors
    /// All errors of the configuration.
    #[cfg(feature = "lab")]
    pub fn load_with(&self, scene: impl FnOnce(u32) -> SceneSpec) -> Result<Config, ConfigErrors> {
        if self.file.is_some() {
            let mut config = self.load()?;
            if config.scenes == Config::default().scenes {
                config.scenes = vec![scene(config.tick_ms).into()];
            }
            return Ok(config);
        }
        let set = self.overrides();
        let tick: Vec<_> = set.iter().filter(|o| o.path == "tick").cloned().collect();
        let tick_ms = environment().filter(|(name, _)| name == "PURVIEW_TICK");
        let tick_ms = Config::load(None, tick_ms, &tick)?.tick_ms;
        let own = Config { tick_ms, scenes: vec![scene(tick_ms).into()], ..Config::default() };
        Config::load_onto(&own, environment(), &set)
    }

    /// As [`CommonArgs::load`], with `base` in place of the defaults if there is no file.
    ///
    /// # Errors
    /// All errors of the configuration.
    #[cfg(feature = "lab")]
    pub fn load_or(&self, base: &Config) -> Result<Config, ConfigErrors> {
        match self.file {
            Some(_) => self.load(),
            None => Config::load_onto(base, environment(), &self.overrides()),
        }
    }

    fn overrides(&self) -> Vec<Override> {
        let log = self.log.iter().map(|l| Override { path: "log.level".into(), value: l.clone() });
        self.set.iter().cloned().chain(log).collect()
    }
}

/// The environment variables that are valid UTF-8; others are no settings.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}

/// What a server runs on.
#[cfg(feature = "lab")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// One process that contains everything.
    #[default]
    Embedded,
    /// Several processes with an etcd and a PostgreSQL; the command starts all of them and ends them with itself.
    Etcd,
}

/// The error of a text that is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a number and ms, s, m or h, for example 30s")]
pub struct DurationError;

/// Parses a duration such as `30s`.
///
/// # Errors
/// The text is not a number with a unit.
pub fn duration(text: &str) -> Result<Duration, DurationError> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let n: f64 = text[..at].trim().parse().map_err(|_| DurationError)?;
    let unit_s = match &text[at..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(DurationError),
    };
    Duration::try_from_secs_f64(n * unit_s).map_err(|_| DurationError)
}
