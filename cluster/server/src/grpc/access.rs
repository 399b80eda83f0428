//! The token of the service. It must never appear in a log line or an error.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use subtle::ConstantTimeEq;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::admission::NotIn;
use crate::socket::Caller;
use crate::token_file::{self, TokenError, bearer};

/// A token. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

impl Token {
    /// Reads the token file that an option or a key names. White space at both ends is ignored.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn read(option: &'static str, path: &Path) -> Result<Token, TokenError> {
        token_file::read(option, path).map(|token| Token(token.into()))
    }

    fn is_in<T>(&self, request: &Request<T>) -> bool {
        let value = request.metadata().get("authorization").map(|value| value.as_bytes());
        value.and_then(bearer).is_some_and(|token| token.ct_eq(&self.0).into())
    }
}

/// Lets in only calls with the token, if there is one.
#[derive(Debug, Clone)]
pub struct Guard {
    token: Option<Token>,
    denied: Arc<AtomicU64>,
}

impl Guard {
    /// Without a token everything is let in. Counts calls that are not.
    pub fn new(token: Option<Token>, denied: Arc<AtomicU64>) -> Guard {
        Guard { token, denied }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if self.token.as_ref().is_none_or(|token| token.is_in(&request)) {
            let caller = request.extensions().get::<Caller<()>>();
            let logged_in = caller.map_or(Ok(()), Caller::log_in);
            let full = |why: NotIn| Status::resource_exhausted(why.to_string());
            return logged_in.map(|()| request).map_err(full);
        }
        self.denied.fetch_add(1, Relaxed);
        let text = "the metadata `authorization: Bearer TOKEN` is missing or wrong";
        Err(Status::unauthenticated(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Token, TokenError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, text).unwrap();
        Token::read("--token-file", &file)
    }

    #[test]
    fn only_calls_with_the_token_are_let_in() {
        let token = "0123456789abcdef0123456789abcdef";
        let denied = Arc::new(AtomicU64::new(0));
        let mut guard = Guard::new(Some(read(&format!(" {token}\n")).unwrap()), denied.clone());
        assert!(!format!("{guard:?}").contains("0123"));
        let mut enters = |value: Option<String>| {
            let mut request = Request::new(());
            if let Some(value) = value {
                request.metadata_mut().insert("authorization", value.parse().unwrap());
            }
            guard.call(request).is_ok()
        };
        for bad in
            ["", "Bearer", "Bearer 0123", &format!("Basic {token}"), &format!("Bearer {token}0")]
        {
            assert!(!enters(Some(bad.to_owned())), "{bad}");
        }
        assert!(!enters(None));
        assert!(
            enters(Some(format!("Bearer {token}"))) && enters(Some(format!("bearer  {token}")))
        );
        assert_eq!(denied.load(Relaxed), 6);
        assert!(Guard::new(None, denied).call(Request::new(())).is_ok());
    }
}
