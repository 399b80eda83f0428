//! Tokens: who may come in. JWT, HS256, one secret shared with whoever issues them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use purview::actor::player::{Pass, Passes};
use purview::scene::EntityId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::crypto::ring;

/// Shortest secret, in bytes: as long as the hash, as RFC 7518 demands.
pub const MIN_SECRET: usize = 32;

/// How far the issuer's clock may be off, in seconds.
const LEEWAY_S: u64 = 5;

/// For how long a resume token holds, in seconds: a day. Each join, jump and resume brings a new one.
const RESUME_S: u64 = 24 * 60 * 60;

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

/// What a resume token says beside: it is a token like any other, which names a player, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ResumeClaims {
    sub: String,
    exp: u64,
    resume: Player,
}

/// A player in its scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Player {
    entity: u64,
    scene: String,
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
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for a token secret")]
    Random,
    /// The secret is too short.
    #[error("the token secret has {len} bytes; at least {MIN_SECRET} are needed")]
    TooShort {
        /// Its length in bytes.
        len: usize,
    },
}

/// A secret that nobody knows yet, as text for a file.
///
/// # Errors
/// The system gives no random bytes.
pub fn random_secret() -> Result<String, SecretError> {
    let mut random = [0; 32];
    let source = ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| SecretError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
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
        let exp = valid.map(|v| now_s().saturating_add(v.as_secs()));
        self.sign(&Claims { sub: sub.into(), exp })
    }

    fn sign(&self, claims: &impl Serialize) -> Result<String, TokenError> {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &self.sign)
            .map_err(|e| of(e.kind()))
    }

    /// What a token says, if it holds.
    ///
    /// # Errors
    /// Why it does not hold.
    pub fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        self.decode(token)
    }

    fn decode<T: DeserializeOwned + Clone>(&self, token: &str) -> Result<T, TokenError> {
        if token.is_empty() {
            return Err(TokenError::Missing);
        }
        jsonwebtoken::decode::<T>(token, &self.check, &self.rules)
            .map(|data| data.claims)
            .map_err(|e| of(e.kind()))
    }
}

impl Passes for Tokens {
    fn write(&self, pass: &Pass) -> Option<String> {
        let resume = Player { entity: pass.entity.0, scene: pass.scene.clone() };
        let exp = now_s().saturating_add(RESUME_S);
        match self.sign(&ResumeClaims { sub: pass.subject.clone(), exp, resume }) {
            Ok(token) => Some(token),
            Err(error) => {
                purview::log_limited!(error, %error, "a resume token cannot be made");
                None
            }
        }
    }

    fn read(&self, token: &str) -> Result<Pass, String> {
        let claims: ResumeClaims = self.decode(token).map_err(|error| match error {
            TokenError::Claims => "it is no resume token".to_owned(),
            error => error.to_string(),
        })?;
        let Player { entity, scene } = claims.resume;
        Ok(Pass { subject: claims.sub, entity: EntityId(entity), scene })
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs())
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
    fn a_resume_token_names_a_player_and_lets_its_client_in() {
        let tokens = Tokens::new(SECRET).unwrap();
        let (subject, scene) = ("ada".to_owned(), "meadow".to_owned());
        let pass = Pass { subject, entity: EntityId(7 << 32 | 5), scene };
        let token = tokens.write(&pass).unwrap();
        assert_eq!(tokens.read(&token), Ok(pass.clone()));
        assert_eq!(tokens.verify(&token).unwrap().sub, "ada");
        let login = tokens.mint("ada", Some(Duration::from_secs(60))).unwrap();
        assert_eq!(tokens.read(&login), Err("it is no resume token".into()));
        let foreign = Tokens::dev().write(&pass).unwrap();
        assert_eq!(tokens.read(&foreign), Err(TokenError::Signature.to_string()));
        let resume = Player { entity: 5, scene: "meadow".into() };
        let old = tokens.sign(&ResumeClaims { sub: "ada".into(), exp: 1_000, resume }).unwrap();
        assert_eq!(tokens.read(&old), Err(TokenError::Expired.to_string()));
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
