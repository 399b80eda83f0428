//! The token of the service. It must never appear in a log line or an error.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use subtle::ConstantTimeEq;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::admission::NotIn;
use crate::socket::Caller;
use crate::token_file::bearer;

/// Lets in only calls with the token, if there is one. `Debug` does not show it.
#[derive(Clone)]
pub struct Guard {
    token: Option<Arc<[u8]>>,
    denied: Arc<AtomicU64>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Guard {
    /// Without a token everything is let in. Counts calls that are not.
    pub fn new(token: Option<Vec<u8>>, denied: Arc<AtomicU64>) -> Guard {
        Guard { token: token.map(Arc::from), denied }
    }

    fn lets_in(&self, request: &Request<()>) -> bool {
        let Some(token) = &self.token else { return true };
        let value = request.metadata().get("authorization").map(|value| value.as_bytes());
        value.and_then(bearer).is_some_and(|shown| shown.ct_eq(token).into())
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if self.lets_in(&request) {
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
    use crate::token_file;

    #[test]
    fn only_calls_with_the_token_are_let_in() {
        let token = "0123456789abcdef0123456789abcdef";
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, format!(" {token}\n")).unwrap();
        let read = token_file::read("--token-file", file.path()).unwrap();
        let denied = Arc::new(AtomicU64::new(0));
        let mut guard = Guard::new(Some(read), denied.clone());
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
