//! The flags of every command that reads a configuration, and the times in flags.

use std::path::PathBuf;
use std::time::Duration;

use purview::scene::SceneSpec;

use purview_server::config::units::{Quantity, UnitError};
use purview_server::config::{Config, ConfigErrors, Override};

/// The flags of every command that reads a configuration.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConfigFlags {
    /// The configuration file; without it every key has its default.
    #[arg(long = "config", value_name = "FILE", env = "PURVIEW_CONFIG")]
    pub file: Option<PathBuf>,
    /// Override one key, for example `gateway.ws=127.0.0.1:0`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// The log level, for example `debug`; short for `--set log.level=LEVEL`.
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
}

impl ConfigFlags {
    /// The configuration in force: file, then environment, then flags.
    ///
    /// # Errors
    /// All errors of the configuration.
    pub fn load(&self) -> Result<Config, ConfigErrors> {
        Config::load(self.file.as_deref(), environment(), &self.overrides())
    }

    /// As [`ConfigFlags::load`], with the command's own scene if the file configures no scene.
    /// Environment and flags override keys of that scene, too. The argument of `scene` is the length
    /// of a tick, milliseconds.
    ///
    /// # Errors
    /// All errors of the configuration.
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

    /// As [`ConfigFlags::load`], with `base` in place of the defaults if there is no file.
    ///
    /// # Errors
    /// All errors of the configuration.
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

/// A time in a flag, as in the configuration: `500ms`, `30s`, `1.5h`.
///
/// # Errors
/// The text is not a number with a unit of time.
pub fn time(text: &str) -> Result<Duration, UnitError> {
    Quantity::Time.parse(text).map(|ms| Duration::from_millis(ms.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_flags_are_those_of_the_configuration() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5h"), Ok(Duration::from_secs(5_400)));
        assert!(time("30").unwrap_err().to_string().contains("needs a unit"));
    }

    #[test]
    fn the_log_flag_overrides_the_level() {
        let flags = ConfigFlags { log: Some("debug".into()), ..ConfigFlags::default() };
        assert_eq!(flags.load().unwrap().log.level, "debug");
    }
}
