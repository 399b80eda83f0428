//! Access to the API by tokens: one token for reading, one for commands. `guard` checks every
//! request here.
//!
//! On loopback reading needs no token, unless `console.token_file` names one. A command always
//! needs the command token, which also permits reading. A token must never appear in a log line.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::{HeaderMap, Method, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use super::run_folder::Places;
use crate::config::ConsoleSettings;
use crate::random::{NoRandom, random};
use crate::token_file::{self, TokenError, bearer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Read,
    Command,
}

impl Scope {
    /// The scope of an HTTP method: safe methods read.
    pub fn of(method: &Method) -> Scope {
        if method.is_safe() { Scope::Read } else { Scope::Command }
    }

    fn key(self) -> &'static str {
        match self {
            Scope::Read => "console.token_file",
            Scope::Command => "console.command_token_file",
        }
    }

    fn file(self, settings: &ConsoleSettings) -> Option<&Path> {
        match self {
            Scope::Read => settings.token_file.as_deref(),
            Scope::Command => settings.command_token_file.as_deref(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// No token, or an unknown one.
    Nothing,
    Read,
    Command,
}

impl Shown {
    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Shown::Nothing => "none",
            Shown::Read => "read",
            Shown::Command => "command",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("the request has no token, or an unknown one")]
    Unknown,
    #[error("the request is a command but has the token for reading")]
    ReadOnly,
}

/// Why there is no usable token; the console does not start.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(
        "console.token_file and console.command_token_file hold the same token, so readers could \
         send commands; write two different tokens"
    )]
    Same,
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// The tokens of a console. Clones share them.
#[derive(Clone)]
pub struct Access {
    /// `None`: reading needs no token.
    read: Option<Arc<Token>>,
    command: Arc<Token>,
}

struct Token {
    bytes: Vec<u8>,
    /// The file of a token that was created for this run.
    run: Option<PathBuf>,
}

impl Token {
    /// Compares in constant time; only the length can leak.
    fn is(&self, shown: &[u8]) -> bool {
        shown.ct_eq(&self.bytes).into()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(file) = &self.run
            && let Err(error) = std::fs::remove_file(file)
        {
            tracing::debug!(file = %file.display(), %error, "a token file of the console could not be removed");
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.read {
            None => "Access(read: everybody, command: token)",
            Some(_) => "Access(read: token, command: token)",
        })
    }
}

impl Access {
    /// The tokens of a console that listens on `addr`. A configured token file is created if it is
    /// missing. Without a file a token is created for this run, except for reading on loopback.
    pub fn new(addr: SocketAddr, settings: &ConsoleSettings) -> Result<Access, AccessError> {
        let token = |scope: Scope| match scope.file(settings) {
            Some(path) => {
                let bytes = File { key: scope.key(), path: path.into() }.read_or_make()?;
                Ok(Arc::new(Token { bytes, run: None }))
            }
            None => run_token(scope, addr.port()),
        };
        let open = settings.token_file.is_none() && addr.ip().is_loopback();
        let read = if open { None } else { Some(token(Scope::Read)?) };
        let command = token(Scope::Command)?;
        match read {
            Some(read) if read.is(&command.bytes) => Err(AccessError::Same),
            read => Ok(Access { read, command }),
        }
    }

    pub fn shown(&self, headers: &HeaderMap) -> Shown {
        let value = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let Some(token) = value.and_then(bearer) else { return Shown::Nothing };
        match &self.read {
            _ if self.command.is(token) => Shown::Command,
            Some(read) if read.is(token) => Shown::Read,
            _ => Shown::Nothing,
        }
    }

    /// Whether a request with this token may do this.
    pub fn check(&self, scope: Scope, shown: Shown) -> Result<(), Denied> {
        match (scope, shown) {
            (_, Shown::Command) | (Scope::Read, Shown::Read) => Ok(()),
            (Scope::Read, Shown::Nothing) if self.read.is_none() => Ok(()),
            (Scope::Command, Shown::Read) => Err(Denied::ReadOnly),
            (_, Shown::Nothing) => Err(Denied::Unknown),
        }
    }
}

/// Creates a token for this run in a file that only its owner can read.
fn run_token(scope: Scope, port: u16) -> Result<Arc<Token>, AccessError> {
    let key = scope.key();
    let wrong = |source| TokenError::File { key, path: std::env::temp_dir(), source };
    let folder = Places::of_process().to_write().map_err(wrong)?;
    let file = File { key, path: folder.join(run_name(scope, port)) };
    match std::fs::remove_file(&file.path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(file.wrong(e)),
        _ => {}
    }
    let bytes = file.make()?;
    let wants = match scope {
        Scope::Read => "the console's API requires the token in this file",
        Scope::Command => "commands to the console require the token in this file",
    };
    tracing::info!(file = %file.path.display(), "{wants}");
    Ok(Arc::new(Token { bytes, run: Some(file.path) }))
}

/// The token for requests to the console with these settings, or on `addr` of this machine; `None`:
/// there is no readable token file. Falls back to the command token if there is none for reading.
pub fn token_for(
    addr: Option<SocketAddr>,
    settings: &ConsoleSettings,
    scope: Scope,
) -> Option<String> {
    let read = |scope: Scope| {
        let made = || Places::of_process().find(&run_name(scope, addr?.port()));
        let path = scope.file(settings).map(Path::to_owned).or_else(made)?;
        String::from_utf8(File { key: scope.key(), path }.read().ok()?).ok()
    };
    match scope {
        Scope::Read => read(Scope::Read).or_else(|| read(Scope::Command)),
        Scope::Command => read(Scope::Command),
    }
}

/// The command token of the run of a console at `http://ADDRESS:PORT` on this machine's loopback.
pub fn token_at(url: &str) -> Option<String> {
    token_for(Some(on_loopback(url)?), &ConsoleSettings::default(), Scope::Command)
}

/// The address in a URL, if it is on this machine's loopback.
pub fn on_loopback(url: &str) -> Option<SocketAddr> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let host = rest.split('/').next()?.replace("localhost:", "127.0.0.1:");
    host.parse().ok().filter(|addr: &SocketAddr| addr.ip().is_loopback())
}

/// The name of the file of a run's token, for a console on `port`.
fn run_name(scope: Scope, port: u16) -> String {
    let ending = match scope {
        Scope::Read => "token",
        Scope::Command => "command.token",
    };
    format!("purview-console-{port}.{ending}")
}

struct File {
    key: &'static str,
    path: PathBuf,
}

impl File {
    fn wrong(&self, source: std::io::Error) -> AccessError {
        TokenError::File { key: self.key, path: self.path.clone(), source }.into()
    }

    /// The token of the file; a new one if there is no file.
    fn read_or_make(&self) -> Result<Vec<u8>, AccessError> {
        let is = |error: &AccessError, kind| matches!(error, AccessError::Token(TokenError::File { source, .. }) if source.kind() == kind);
        match self.read() {
            Err(error) if is(&error, std::io::ErrorKind::NotFound) => match self.make() {
                // Another process was first.
                Err(error) if is(&error, std::io::ErrorKind::AlreadyExists) => self.read(),
                made => made,
            },
            read => read,
        }
    }

    fn read(&self) -> Result<Vec<u8>, AccessError> {
        Ok(token_file::read(self.key, &self.path)?)
    }

    /// Creates a file with a new token that only its owner can read. Readers see the whole token or nothing.
    fn make(&self) -> Result<Vec<u8>, AccessError> {
        let token = URL_SAFE_NO_PAD.encode(random::<32>()?);
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let made = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
        let written = made.and_then(|mut file| {
            writeln!(file, "{token}")?;
            file.persist_noclobber(&self.path).map_err(|refused| refused.error)
        });
        written.map_err(|e| self.wrong(e))?;
        Ok(token.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::token_file::TOKEN_MIN;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    }

    fn settings(read: Option<&Path>, command: Option<&Path>) -> ConsoleSettings {
        let [token_file, command_token_file] = [read, command].map(|path| path.map(Path::to_owned));
        ConsoleSettings { token_file, command_token_file, ..ConsoleSettings::default() }
    }

    fn mode(file: &Path) -> u32 {
        file.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn tokens_are_created_once_for_their_owner_and_other_tokens_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let files = ["read.token", "command.token"].map(|name| place.path().join(name));
        let settings = settings(Some(&files[0]), Some(&files[1]));
        let addr = SocketAddr::from(([127, 0, 0, 1], 7));
        let access = Access::new(addr, &settings).unwrap();
        assert!(files.iter().all(|file| mode(file) == 0o600));
        let token = |scope| token_for(Some(addr), &settings, scope).unwrap();
        let (read, command) = (token(Scope::Read), token(Scope::Command));
        assert!(read.len() >= TOKEN_MIN && command.len() >= TOKEN_MIN && read != command);
        let shown = |value: &str| access.shown(&headers(value));
        assert_eq!(shown(&format!("Bearer {read}")), Shown::Read);
        assert_eq!(shown(&format!("bearer {command} ")), Shown::Command);
        let (almost, more) = (&command[1..], format!("{read}x"));
        for wrong in ["", "Bearer", "Bearer ", &read, &format!("Basic  {command}")] {
            assert_eq!(shown(wrong), Shown::Nothing, "{wrong:?}");
        }
        for wrong in [almost, &more] {
            assert_eq!(shown(&format!("Bearer {wrong}")), Shown::Nothing);
        }
        assert_eq!(access.shown(&HeaderMap::new()), Shown::Nothing);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
        // The next start uses the same tokens.
        let again = Access::new(addr, &settings).unwrap();
        assert_eq!(again.shown(&headers(&format!("Bearer {command}"))), Shown::Command);
        let told = format!("{access:?}");
        assert!(!told.contains(&read) && !told.contains(&command));
        let check = |scope, shown| access.check(scope, shown);
        assert_eq!(check(Scope::Read, Shown::Nothing), Err(Denied::Unknown));
        assert_eq!(check(Scope::Read, Shown::Read), Ok(()));
        assert_eq!(check(Scope::Read, Shown::Command), Ok(()));
        assert_eq!(check(Scope::Command, Shown::Nothing), Err(Denied::Unknown));
        assert_eq!(check(Scope::Command, Shown::Read), Err(Denied::ReadOnly));
        assert_eq!(check(Scope::Command, Shown::Command), Ok(()));
    }

    #[test]
    fn on_loopback_reading_is_free_and_commands_need_the_token_of_the_run() {
        // A port without a listener.
        let (addr, none) = (SocketAddr::from(([127, 0, 0, 1], 9)), ConsoleSettings::default());
        let access = Access::new(addr, &none).unwrap();
        assert_eq!(access.check(Scope::Read, Shown::Nothing), Ok(()));
        assert_eq!(access.check(Scope::Command, Shown::Nothing), Err(Denied::Unknown));
        assert_eq!(access.shown(&headers("Bearer of good news")), Shown::Nothing);
        let find = |scope| Places::of_process().find(&run_name(scope, 9));
        let command = find(Scope::Command).unwrap();
        assert_eq!((mode(&command), find(Scope::Read)), (0o600, None));
        let token = token_for(Some(addr), &none, Scope::Command).unwrap();
        assert_eq!(access.shown(&headers(&format!("Bearer {token}"))), Shown::Command);
        assert_eq!(token_for(Some(addr), &none, Scope::Read), Some(token));
        drop(access);
        assert!(!command.exists(), "the file belongs to this run");
    }

    #[test]
    fn beyond_loopback_both_tokens_are_created_for_the_run() {
        let addr = SocketAddr::from(([0, 0, 0, 0], 11));
        let access = Access::new(addr, &ConsoleSettings::default()).unwrap();
        assert_eq!(access.check(Scope::Read, Shown::Nothing), Err(Denied::Unknown));
        let token = |scope| token_for(Some(addr), &ConsoleSettings::default(), scope).unwrap();
        let shown = |token: String| access.shown(&headers(&format!("Bearer {token}")));
        assert_eq!(shown(token(Scope::Read)), Shown::Read);
        assert_eq!(shown(token(Scope::Command)), Shown::Command);
    }

    #[test]
    fn a_file_without_a_token_is_refused_and_so_is_one_token_for_both() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("console.token");
        let addr = SocketAddr::from(([127, 0, 0, 1], 7));
        let refused = |read, command| Access::new(addr, &settings(read, command)).unwrap_err();
        std::fs::write(&file, " short \n").unwrap();
        let error = refused(None, Some(&file));
        assert!(error.to_string().starts_with("console.command_token_file = "), "{error}");
        assert!(matches!(error, AccessError::Token(TokenError::Length { bytes: 5, .. })));
        std::fs::write(&file, [b'a'; 5_000]).unwrap();
        let long = refused(Some(&file), None);
        assert!(matches!(long, AccessError::Token(TokenError::Length { bytes: 5_000, .. })));
        std::fs::write(&file, [b'a'; 40]).unwrap();
        assert!(matches!(refused(Some(&file), Some(&file)), AccessError::Same));
        let missing = place.path().join("no/such/folder");
        let missing = refused(Some(&missing), None);
        assert!(matches!(missing, AccessError::Token(TokenError::File { .. })));
    }
}
