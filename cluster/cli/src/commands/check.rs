//! `purview check`: validates a configuration, and prints it.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use purview_demo::flags::ConfigFlags;
use purview_server::config::{Config, ConfigErrors, Override};
use purview_server::shutdown;
use serde_json::json;

use crate::commands::schema::{Language, schema};
use crate::error::CliError;
use crate::output::say;

/// `purview check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview check deploy/scenes/station.toml\n  \
    purview check purview.toml --json\n  \
    purview check --print > purview.toml\n  \
    purview check purview.toml --schema ts > schema.ts\n  \
    purview check --schema config > purview.schema.json\n  \
    PURVIEW_GATEWAY__WS=0.0.0.0:7711 purview check purview.toml --print --set scene.0.view_cap=20\n\n\
    Checks the file alone. With --print the configuration in force: file, environment variables and --set.\n\n\
    Exit codes: 0 valid (prints a summary), 1 errors (prints all of them), 2 invalid command line.")]
pub struct CheckArgs {
    /// The configuration file; - is standard input. With --print or --schema it may be left out: every key has its default.
    #[arg(required_unless_present_any = ["print", "schema"])]
    pub file: Option<PathBuf>,
    /// Print the configuration in force as TOML, with an explanation of each key.
    #[arg(long)]
    pub print: bool,
    /// With --print: override one key, for example `gateway.ws=127.0.0.1:0`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", requires = "print")]
    pub set: Vec<Override>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Print a schema: names, numbers and types of kinds and properties, for clients; or, for editors, the keys of
    /// configuration files.
    #[arg(long, value_name = "OF", conflicts_with_all = ["print", "json"])]
    pub schema: Option<Language>,
}

/// Runs `purview check`: prints a summary of the file, or all of its errors.
///
/// # Errors
/// The file has errors, or cannot be read.
pub fn check(args: &CheckArgs) -> Result<(), CliError> {
    if args.print {
        return print(args);
    }
    let Some(file) = &args.file else {
        let of = args.schema.map(|of| schema(&Config::default(), of));
        return of.transpose()?.map_or(Ok(()), |text| say(&text));
    };
    let loaded = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| anyhow::Error::new(e).context("standard input cannot be read"))?;
        Config::parse(&text)
    } else {
        Config::load(Some(file), [], &[])
    };
    match (loaded, args.schema) {
        (Ok(config), Some(language)) => say(&schema(&config, language)?),
        (loaded, _) => result(args, file, loaded),
    }
}

fn result(
    args: &CheckArgs,
    file: &Path,
    loaded: Result<Config, ConfigErrors>,
) -> Result<(), CliError> {
    match loaded {
        Ok(config) if args.json => say(&format!("{}\n", summary_json(&config)?)),
        Ok(config) => say(&summary(file, &config)?),
        Err(errors) if args.json => {
            say(&format!("{}\n", errors_json(&errors)))?;
            Err(CliError::Told(1))
        }
        Err(errors) => Err(errors.into()),
    }
}

/// Prints the configuration in force.
fn print(args: &CheckArgs) -> Result<(), CliError> {
    let flags = ConfigFlags { file: args.file.clone(), set: args.set.clone(), log: None };
    let text = flags.load()?.to_toml();
    if !args.json {
        return say(&text);
    }
    let table: toml::Table = text.parse().map_err(anyhow::Error::from)?;
    let json = serde_json::to_string(&table).map_err(anyhow::Error::from)?;
    say(&format!("{json}\n"))
}

/// The summary of a valid file, as text.
fn summary(file: &Path, config: &Config) -> Result<String, ConfigErrors> {
    let mut out = format!("{}: valid, a tick every {} ms\n", file.display(), config.tick_ms);
    for scene in config.build_scenes()? {
        let s = &scene.spec;
        let metres = |cm: i32| f64::from(cm) / 100.0;
        let (regions, lands) = (scene.map.regions.len(), s.land_cm);
        let height = s.height_cm.map(|cm| format!(", height {} m", metres(cm)));
        let height = height.unwrap_or_default();
        out += &format!(
            "scene {:?}: {} m x {} m; {regions} region(s) of {} x {} lands of {} m; {:?}, range {} m{height}; \
             band {} m; moves {}; {} line(s) of {} players\n",
            s.name,
            metres(s.width_cm),
            metres(s.depth_cm),
            s.region_lands_x,
            s.region_lands_z,
            metres(lands),
            s.visibility,
            metres(scene.reach_cm),
            metres(scene.band_cm),
            if scene.judged.is_some() { "judged" } else { "trusted" },
            s.lines,
            s.line_capacity,
        );
        if let Some(t) = &scene.terrain {
            out += &format!(
                "  map of {} x {} tiles of {} m, {} of them blocked; {}; {} door(s)\n",
                t.width(),
                t.depth(),
                metres(t.tile_cm()),
                t.blocked_tiles(),
                if t.has_heights() { "with heights" } else { "flat" },
                t.doors().len(),
            );
        }
    }
    let (total, grace) = (shutdown::total(config.ending()), config.server.grace);
    out += &format!(
        "a process shuts down within {} s ({}) and is killed after {} s (server.grace)\n",
        total.as_secs_f64(),
        shutdown::text(config.ending()),
        grace.as_secs_f64()
    );
    let files = config.token.files();
    if let Err(e) = files.read().and_then(|contents| files.keys(&contents)) {
        out += &format!("note: {e}\n");
    }
    let logins = [config.cluster.etcd_login().err(), config.cluster.postgres_login().err()];
    out.extend(logins.iter().flatten().map(|e| format!("note: {e}\n")));
    Ok(out)
}

/// The summary of a valid file, as JSON.
fn summary_json(config: &Config) -> Result<serde_json::Value, ConfigErrors> {
    let scenes: Vec<_> = config
        .build_scenes()?
        .iter()
        .map(|scene| {
            json!({
                "name": scene.spec.name,
                "width_cm": scene.spec.width_cm,
                "depth_cm": scene.spec.depth_cm,
                "regions": scene.map.regions.len(),
                "range_cm": scene.reach_cm,
                "height_cm": scene.spec.height_cm,
                "band_cm": scene.band_cm,
                "lines": scene.spec.lines,
                "line_capacity": scene.spec.line_capacity,
                "map": scene.terrain.as_ref().map(|t| json!({
                    "tile_cm": t.tile_cm(),
                    "width": t.width(),
                    "depth": t.depth(),
                    "blocked": t.blocked_tiles(),
                    "heights": t.has_heights(),
                    "doors": t.doors().iter().map(|d| &d.name).collect::<Vec<_>>(),
                })),
            })
        })
        .collect();
    let ms = |time: std::time::Duration| time.as_millis() as u64;
    let (end_ms, grace_ms) = (ms(shutdown::total(config.ending())), ms(config.server.grace));
    Ok(json!({
        "ok": true,
        "tick_ms": config.tick_ms,
        "end_ms": end_ms,
        "grace_ms": grace_ms,
        "scenes": scenes,
    }))
}

fn errors_json(errors: &ConfigErrors) -> serde_json::Value {
    let tell = |e: &purview_server::config::ConfigError| {
        json!({
            "at": e.origin.to_string(),
            "key": e.key,
            "found": e.found,
            "rule": e.rule,
            "message": e.to_string(),
        })
    };
    json!({ "ok": false, "errors": errors.0.iter().map(tell).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_contains_regions_band_and_range() {
        let config = Config::default();
        assert_eq!(
            summary(Path::new("a.toml"), &config).unwrap(),
            "a.toml: valid, a tick every 100 ms\n\
             scene \"meadow\": 2048 m x 2048 m; 4 region(s) of 2 x 2 lands of 512 m; Patches, range \
             100 m; band 143 m; moves judged; 4 line(s) of 2000 players\n\
             a process shuts down within 56 s (order 4 s + drain 30 s + gateway 5 s + flush \
             5 s + console 2 s + leave 10 s) and is killed after 60 s (server.grace)\n"
        );
        assert_eq!(summary_json(&config).unwrap()["scenes"][0]["regions"], 4);
    }

    #[test]
    fn json_errors_contain_key_and_line() {
        let errors = Config::parse("[[scene]]\nland = 3").unwrap_err();
        let told = errors_json(&errors);
        assert_eq!(told["errors"][0]["key"], "scene.0.land");
        assert_eq!(told["errors"][0]["at"], "config:2");
    }
}
