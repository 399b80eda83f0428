//! Tokens: who may come in. JWT, HS256, one secret shared with whoever issues them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

/// Shortest secret, in bytes: as long as the hash, as RFC 7518 demands.
pub const MIN_SECRET: usize = 32;

/// How far the issuer's clock may be off, in seconds.
const LEEWAY_S: u64 = 5;

/// What `dev` mode signs with. Everybody knows it.
const DEV_SECRET: &[u8] = b"purview dev mode: this is no secret";

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Whom it names.
    pub sub: String,
    /// When it runs out, in seconds since 1970; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
}

/// Why a token does not hold. Never tells the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is none.
    #[error("no token was sent")]
    Missing,
    /// It is no HS256 JWT.
    #[error("the token is not a JWT signed with HS256")]
    Malformed,
    /// It was signed with another secret.
    #[error("the token's signature does not match")]
    Signature,
    /// It ran out.
    #[error("the token has expired")]
    Expired,
    /// It lacks a claim, or a claim has the wrong form.
    #[error("the token needs the claim `sub` (text) and may have `exp` (a number)")]
    Claims,
}

/// Why there is nothing to check tokens with.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The secret's file cannot be read.
    #[error("cannot read the token secret {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The secret is too short.
    #[error("the token secret has {len} bytes; at least {MIN_SECRET} are needed")]
    TooShort {
        /// Its length in bytes.
        len: usize,
    },
}

/// Checks and mints tokens.
#[derive(Clone)]
pub struct Tokens {
    check: DecodingKey,
    sign: EncodingKey,
    rules: Validation,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// With a secret of at least [`MIN_SECRET`] bytes.
    ///
    /// # Errors
    /// When it is shorter.
    pub fn new(secret: &[u8]) -> Result<Tokens, SecretError> {
        if secret.len() < MIN_SECRET {
            return Err(SecretError::TooShort { len: secret.len() });
        }
        Ok(Tokens::with(secret))
    }

    /// With the secret in a file; blanks and newlines around it do not count.
    ///
    /// # Errors
    /// When the file cannot be read or the secret is too short.
    pub fn from_file(path: &Path) -> Result<Tokens, SecretError> {
        let secret = fs::read(path)
            .map_err(|source| SecretError::Unreadable { path: path.to_owned(), source })?;
        Tokens::new(secret.trim_ascii())
    }

    /// With a secret that everybody knows: for `dev` mode, where any process can mint a token.
    pub fn dev() -> Tokens {
        Tokens::with(DEV_SECRET)
    }

    fn with(secret: &[u8]) -> Tokens {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_required_spec_claims(&["sub"]);
        rules.leeway = LEEWAY_S;
        rules.validate_aud = false;
        Tokens {
            check: DecodingKey::from_secret(secret),
            sign: EncodingKey::from_secret(secret),
            rules,
        }
    }

    /// A token for `sub` that holds for `valid`, or for ever.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn mint(&self, sub: &str, valid: Option<Duration>) -> Result<String, TokenError> {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let claims =
            Claims { sub: sub.into(), exp: valid.map(|v| now_s.saturating_add(v.as_secs())) };
        self.sign(&claims)
    }

    fn sign(&self, claims: &Claims) -> Result<String, TokenError> {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &self.sign)
            .map_err(|e| of(e.kind()))
    }

    /// What a token says, if it holds.
    ///
    /// # Errors
    /// Why it does not hold.
    pub fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        if token.is_empty() {
            return Err(TokenError::Missing);
        }
        jsonwebtoken::decode::<Claims>(token, &self.check, &self.rules)
            .map(|data| data.claims)
            .map_err(|e| of(e.kind()))
    }
}

fn of(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::ExpiredSignature => TokenError::Expired,
        ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_)
        | ErrorKind::Json(_) => TokenError::Claims,
        _ => TokenError::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_minted_token_holds_and_names_its_subject() {
        let tokens = Tokens::new(SECRET).unwrap();
        let token = tokens.mint("ada", None).unwrap();
        assert_eq!(tokens.verify(&token), Ok(Claims { sub: "ada".into(), exp: None }));
        let token = tokens.mint("ada", Some(Duration::from_secs(60))).unwrap();
        assert!(tokens.verify(&token).unwrap().exp.is_some());
    }

    #[test]
    fn a_token_that_does_not_hold_says_why() {
        let tokens = Tokens::new(SECRET).unwrap();
        assert_eq!(tokens.verify(""), Err(TokenError::Missing));
        assert_eq!(tokens.verify("a.b.c"), Err(TokenError::Malformed));
        assert_eq!(tokens.verify("no token at all"), Err(TokenError::Malformed));
        let foreign = Tokens::dev().mint("ada", None).unwrap();
        assert_eq!(tokens.verify(&foreign), Err(TokenError::Signature));
        let old = tokens.sign(&Claims { sub: "ada".into(), exp: Some(1_000) }).unwrap();
        assert_eq!(tokens.verify(&old), Err(TokenError::Expired));
    }

    #[test]
    fn other_algorithms_and_missing_claims_are_refused() {
        let tokens = Tokens::new(SECRET).unwrap();
        let claims = Claims { sub: "ada".into(), exp: None };
        let other = Header::new(Algorithm::HS512);
        let token = jsonwebtoken::encode(&other, &claims, &tokens.sign).unwrap();
        assert_eq!(tokens.verify(&token), Err(TokenError::Malformed));
        #[derive(Serialize)]
        struct Nobody {}
        let header = Header::new(Algorithm::HS256);
        let token = jsonwebtoken::encode(&header, &Nobody {}, &tokens.sign).unwrap();
        assert_eq!(tokens.verify(&token), Err(TokenError::Claims));
    }

    #[test]
    fn a_secret_comes_from_a_file_and_is_long_enough() {
        let path = std::env::temp_dir().join(format!("purview-secret-{}", std::process::id()));
        fs::write(&path, [SECRET, b"\n"].concat()).unwrap();
        let token = Tokens::new(SECRET).unwrap().mint("ada", None).unwrap();
        assert!(Tokens::from_file(&path).unwrap().verify(&token).is_ok());
        fs::write(&path, "short").unwrap();
        assert!(matches!(Tokens::from_file(&path), Err(SecretError::TooShort { len: 5 })));
        fs::remove_file(&path).unwrap();
        assert!(matches!(Tokens::from_file(&path), Err(SecretError::Unreadable { .. })));
    }
}
