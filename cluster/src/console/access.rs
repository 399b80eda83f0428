//! Who may ask the API: on this machine's loopback anybody, elsewhere who shows the token; and who may order
//! something: always who shows it.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::{HeaderMap, Method, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;
use tokio_rustls::rustls::crypto::ring;

/// Shortest token, bytes.
const TOKEN_MIN: usize = 32;

/// Longest file that is read for one, bytes.
const FILE_MAX: u64 = 4_096;

/// Why there is no token to ask for. The console does not start then.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file of the token cannot be read or made.
    #[error("console.token_file = {path:?}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file says too little, or too much, to be a token.
    #[error("console.token_file = {path:?}: has {bytes} bytes; want {TOKEN_MIN} to {FILE_MAX}")]
    Length {
        /// The file.
        path: PathBuf,
        /// What it holds, white space at its ends not counted.
        bytes: u64,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for the console's token")]
    Random,
}

/// Who may ask. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    /// None: nothing is asked for.
    token: Option<Arc<Token>>,
    /// Who only looks is asked for nothing.
    open: bool,
}

struct Token {
    bytes: Vec<u8>,
    /// The file in which it stands, if it was made for this run alone.
    run: Option<PathBuf>,
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(file) = &self.run
            && let Err(error) = std::fs::remove_file(file)
        {
            tracing::debug!(file = %file.display(), %error, "the console's token stays behind");
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.token, self.open) {
            (None, _) => "Access(anybody)",
            (Some(_), true) => "Access(anybody looks, token orders)",
            (Some(_), false) => "Access(token)",
        })
    }
}

impl Access {
    /// For a console that listens on `addr`. With a `file` the token in it is asked for; it is made if there
    /// is none. Without one a token is made for this run; on loopback only who orders something has to show it,
    /// and where nothing can be ordered (`orders`) there is none.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn new(addr: SocketAddr, file: Option<&Path>, orders: bool) -> Result<Access, AccessError> {
        let open = file.is_none() && addr.ip().is_loopback();
        match file {
            Some(file) => Ok(Access::to(read_or_make(file)?, None, open)),
            None if open && !orders => Ok(Access { token: None, open }),
            None => {
                let file = run_file(addr.port());
                match std::fs::remove_file(&file) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                        return Err(wrong(&file)(e));
                    }
                    _ => {}
                }
                let token = make(&file)?;
                tracing::info!(file = %file.display(), "the console's API asks for the token in this file");
                Ok(Access::to(token, Some(file), open))
            }
        }
    }

    fn to(bytes: Vec<u8>, run: Option<PathBuf>, open: bool) -> Access {
        Access { token: Some(Arc::new(Token { bytes, run })), open }
    }

    /// Whether a request with these headers may go on.
    pub fn allows(&self, method: &Method, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        if self.open && method.is_safe() {
            return true;
        }
        let shown = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let shown = shown.and_then(|value| value.split_at_checked(7));
        // Of what is shown only the length is told by the time that this takes.
        shown.is_some_and(|(scheme, shown)| {
            scheme.eq_ignore_ascii_case(b"Bearer ")
                && bool::from(shown.trim_ascii().ct_eq(&token.bytes))
        })
    }
}

/// The token of a configuration's file, for who asks; `None`: there is no such file, or none that can be read.
pub fn token_for(addr: Option<SocketAddr>, file: Option<&Path>) -> Option<String> {
    let made = addr.map(|addr| run_file(addr.port()));
    let file = file.map(Path::to_owned).or(made)?;
    let token = read(&file).ok()?;
    String::from_utf8(token).ok()
}

/// The token of the run of a console at `http://ADDRESS:PORT` of this machine's loopback.
pub fn token_at(url: &str) -> Option<String> {
    token_for(Some(on_loopback(url)?), None)
}

/// Where a console is that is called on this machine's loopback.
pub fn on_loopback(url: &str) -> Option<SocketAddr> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let host = rest.split('/').next()?.replace("localhost:", "127.0.0.1:");
    host.parse().ok().filter(|addr: &SocketAddr| addr.ip().is_loopback())
}

/// Where the token of a run is, for a console on `port` that has no file of its own.
fn run_file(port: u16) -> PathBuf {
    let folders = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"];
    let folder = folders.iter().find_map(std::env::var_os).map(PathBuf::from);
    folder.unwrap_or_else(std::env::temp_dir).join(format!("purview-console-{port}.token"))
}

fn wrong(path: &Path) -> impl FnOnce(std::io::Error) -> AccessError {
    let path = path.to_owned();
    move |source| AccessError::File { path, source }
}

fn read_or_make(file: &Path) -> Result<Vec<u8>, AccessError> {
    match read(file) {
        Err(AccessError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            match make(file) {
                // Another process of this machine has just made it.
                Err(AccessError::File { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists =>
                {
                    read(file)
                }
                made => made,
            }
        }
        read => read,
    }
}

fn read(file: &Path) -> Result<Vec<u8>, AccessError> {
    let bytes = std::fs::metadata(file).map_err(wrong(file))?.len();
    let path = file.to_owned();
    if bytes > FILE_MAX {
        return Err(AccessError::Length { path, bytes });
    }
    let token = std::fs::read(file).map_err(wrong(file))?.trim_ascii().to_vec();
    match token.len() {
        len if len < TOKEN_MIN => Err(AccessError::Length { path, bytes: len as u64 }),
        _ => Ok(token),
    }
}

/// A token in a new file that only its owner may read.
fn make(file: &Path) -> Result<Vec<u8>, AccessError> {
    let mut random = [0; 32];
    let source = ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| AccessError::Random)?;
    let token = URL_SAFE_NO_PAD.encode(random);
    // Whoever finds the file finds all of it.
    let part = file.with_extension(format!("{}.part", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut opened =
        options.write(true).create_new(true).mode(0o600).open(&part).map_err(wrong(&part))?;
    let written = writeln!(opened, "{token}").and_then(|()| std::fs::hard_link(&part, file));
    let gone = std::fs::remove_file(&part);
    written.map_err(wrong(file))?;
    gone.map_err(wrong(&part))?;
    Ok(token.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_token_is_made_once_for_its_owner_and_nothing_else_is_let_in() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("console.token");
        let addr = SocketAddr::from(([127, 0, 0, 1], 7));
        let nothing = Access::new(addr, None, false).unwrap();
        assert!(nothing.allows(&Method::POST, &HeaderMap::new()));
        let access = Access::new(addr, Some(&file), true).unwrap();
        let allows = |access: &Access, headers: HeaderMap| {
            let [get, post] = [Method::GET, Method::POST].map(|how| access.allows(&how, &headers));
            assert_eq!(get, post);
            get
        };
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let token = token_for(Some(addr), Some(&file)).unwrap();
        assert!(token.len() >= TOKEN_MIN);
        assert!(allows(&access, headers(&format!("Bearer {token}"))));
        assert!(allows(&access, headers(&format!("bearer {token} "))));
        let (almost, more) = (&token[1..], format!("{token}x"));
        for wrong in ["", "Bearer", "Bearer ", &token, &format!("Basic  {token}")] {
            assert!(!allows(&access, headers(wrong)), "{wrong:?}");
        }
        assert!(!allows(&access, headers(&format!("Bearer {almost}"))));
        assert!(!allows(&access, headers(&format!("Bearer {more}"))));
        assert!(!allows(&access, HeaderMap::new()));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        // Another start finds the same.
        let again = Access::new(addr, Some(&file), false).unwrap();
        assert!(allows(&again, headers(&format!("Bearer {token}"))));
        assert!(!format!("{access:?}").contains(&token));
    }

    #[test]
    fn on_loopback_anybody_looks_and_only_who_finds_the_token_orders() {
        // Nobody listens there.
        let addr = SocketAddr::from(([127, 0, 0, 1], 9));
        let access = Access::new(addr, None, true).unwrap();
        assert!(access.allows(&Method::GET, &HeaderMap::new()));
        assert!(!access.allows(&Method::POST, &HeaderMap::new()));
        assert!(!access.allows(&Method::POST, &headers("Bearer of good news")));
        let file = run_file(9);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let token = token_for(Some(addr), None).unwrap();
        assert!(access.allows(&Method::POST, &headers(&format!("Bearer {token}"))));
        drop(access);
        assert!(!file.exists(), "it was for this run");
    }

    #[test]
    fn a_file_that_is_no_token_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("console.token");
        let addr = SocketAddr::from(([127, 0, 0, 1], 7));
        let refused = || Access::new(addr, Some(&file), true).unwrap_err();
        std::fs::write(&file, " short \n").unwrap();
        assert!(matches!(refused(), AccessError::Length { bytes: 5, .. }));
        std::fs::write(&file, [b'a'; 5_000]).unwrap();
        assert!(matches!(refused(), AccessError::Length { bytes: 5_000, .. }));
        let missing = place.path().join("no/such/folder");
        assert!(matches!(Access::new(addr, Some(&missing), true), Err(AccessError::File { .. })));
    }
}
