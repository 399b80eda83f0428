//! `purview ctl context`: the consoles of servers by name, so that no command repeats an address and a token.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// The orders for contexts.
#[derive(Debug, Clone, Subcommand)]
pub enum ContextCommand {
    /// Keep a console under a name; the first one is in use at once.
    Add(AddArgs),
    /// Use a context in every command that names no other console.
    Use(NameArgs),
    /// List all contexts.
    List,
    /// Forget a context.
    Remove(NameArgs),
}

/// `purview ctl context add`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  \
    purview ctl context add live --console https://10.0.0.7:7780 --ca ca.pem --token-file console.token\n\n\
    The file of contexts is purview/contexts.toml in $XDG_CONFIG_HOME or in ~/.config. It has the paths of tokens, \
    and no token.")]
pub struct AddArgs {
    /// The name of the context.
    pub name: String,
    /// The URL of the console.
    #[arg(long, value_name = "URL")]
    pub console: String,
    /// The file with the console's token.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A PEM file with the trusted authorities for https:// [default: those of the machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// The name of a context.
#[derive(Debug, Clone, Args)]
pub struct NameArgs {
    /// The name of the context.
    pub name: String,
}

/// Why contexts cannot be read or changed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// The environment names no folder.
    #[error(
        "neither $XDG_CONFIG_HOME nor $HOME is set: there is no folder for contexts; use --console URL"
    )]
    NoFolder,
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not one of contexts.
    #[error("{path} is no file of contexts: {error}")]
    Form {
        /// The file.
        path: String,
        /// Why.
        error: toml::de::Error,
    },
    /// There is no such context.
    #[error("there is no context {name:?}; there is {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of all contexts.
        known: String,
    },
}

/// How a console is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Its URL.
    pub console: String,
    /// The file with its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The file with the trusted authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

/// The file of contexts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contexts {
    /// The context in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    context: BTreeMap<String, Context>,
}

impl Contexts {
    fn read(file: &Path) -> Result<Contexts, ContextError> {
        let path = || file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Contexts::default());
            }
            read => read.map_err(|error| ContextError::File { path: path(), error })?,
        };
        toml::from_str(&text).map_err(|error| ContextError::Form { path: path(), error })
    }

    /// Writes the file beside its place and then moves it there: a reader sees the old or the new one.
    fn write(&self, file: &Path) -> Result<(), ContextError> {
        let text = toml::to_string(self).unwrap_or_default();
        let temporary = file.with_extension(format!("{}.new", std::process::id()));
        let folder = file.parent().unwrap_or(file);
        let done = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&temporary, text))
            .and_then(|()| std::fs::rename(&temporary, file));
        done.map_err(|error| ContextError::File { path: file.display().to_string(), error })
    }

    fn named(&self, name: &str) -> Result<&Context, ContextError> {
        self.context.get(name).ok_or_else(|| {
            let names: Vec<_> = self.context.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            ContextError::Unknown { name: name.into(), known }
        })
    }
}

fn file() -> Result<PathBuf, ContextError> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    Ok(folder.ok_or(ContextError::NoFolder)?.join("purview").join("contexts.toml"))
}

/// The context of a name; without a name the one in use, if there is one.
///
/// # Errors
/// [`ContextError`]
pub fn find(name: Option<&str>) -> Result<Option<Context>, ContextError> {
    let file = match file() {
        Err(ContextError::NoFolder) if name.is_none() => return Ok(None),
        file => file?,
    };
    let contexts = Contexts::read(&file)?;
    match name.or(contexts.current.as_deref()) {
        Some(name) => contexts.named(name).cloned().map(Some),
        None => Ok(None),
    }
}

/// Runs `purview ctl context`.
///
/// # Errors
/// [`ContextError`], or standard output cannot be written.
pub fn run(command: &ContextCommand) -> anyhow::Result<u8> {
    let file = file()?;
    let mut contexts = Contexts::read(&file)?;
    match command {
        ContextCommand::Add(args) => {
            let absolute = |path: &PathBuf| std::path::absolute(path);
            let context = Context {
                console: args.console.clone(),
                token_file: args.token_file.as_ref().map(absolute).transpose()?,
                ca: args.ca.as_ref().map(absolute).transpose()?,
            };
            contexts.context.insert(args.name.clone(), context);
            contexts.current.get_or_insert_with(|| args.name.clone());
        }
        ContextCommand::Use(args) => {
            contexts.named(&args.name)?;
            contexts.current = Some(args.name.clone());
        }
        ContextCommand::Remove(args) => {
            contexts.named(&args.name)?;
            contexts.context.remove(&args.name);
            contexts.current.take_if(|current| *current == args.name);
        }
        ContextCommand::List => {
            let mut out = std::io::stdout().lock();
            for (name, context) in &contexts.context {
                let mark = if contexts.current.as_ref() == Some(name) { "*" } else { " " };
                writeln!(out, "{mark} {name:<16} {}", context.console)?;
            }
            return Ok(0);
        }
    }
    contexts.write(&file)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("purview").join("contexts.toml");
        let mut contexts = Contexts::read(&file).unwrap();
        assert!(contexts.context.is_empty());
        let live =
            Context { console: "http://h:1".into(), token_file: Some("/t".into()), ca: None };
        contexts.context.insert("live".into(), live.clone());
        contexts.current = Some("live".into());
        contexts.write(&file).unwrap();
        let read = Contexts::read(&file).unwrap();
        assert_eq!((read.named("live").unwrap(), read.current.as_deref()), (&live, Some("live")));
        let unknown = read.named("test").unwrap_err().to_string();
        assert_eq!(unknown, "there is no context \"test\"; there is live");
    }

    #[test]
    fn a_wrong_file_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexts.toml");
        std::fs::write(&file, "[context.a]\nconsole = 7\n").unwrap();
        let error = Contexts::read(&file).unwrap_err().to_string();
        assert!(error.contains("contexts.toml is no file of contexts"), "{error}");
    }
}
