//! Tokens. A login server signs a JWT that names a client's subject; this server signs resume
//! tickets (`tickets`), with which a client returns to its player. Sessions verify both. Neither is
//! valid in place of the other: a ticket has an audience and a key of its own. `docs/guide/tokens.md`
//! describes what a login server must sign. A token must never appear in a log line or an error.

mod claims;
mod crypto;
pub mod keys;
#[cfg(test)]
mod tests;
mod tickets;
mod visitors;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation};
use parking_lot::RwLock;
use purview::actor::player::{Login, Planes};
use purview::scene::Plane;
use purview::scene::account::PLANES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::claims::{Claims, PlaneClaim, PlanesClaim, login};
pub use self::claims::{VISITOR, told_claim};
use self::keys::{Contents, Files, Key, KeysError};
pub use self::tickets::ClusterTokens;
pub use self::visitors::VisitorToken;
use crate::random::random;
use crate::storage::ClusterId;

/// Shortest secret, in bytes: the length of the hash, as RFC 7518 requires.
pub const MIN_SECRET: usize = 32;

pub const MAX_SUBJECT: usize = 128;

/// How far the issuer's clock may be off, in seconds.
const LEEWAY_S: u64 = 5;

/// The audience of resume tickets; a login token with it is refused.
pub const RESUME_AUDIENCE: &str = "purview-resume";

/// Time between two checks of the key files.
const RELOAD: Duration = Duration::from_secs(1);

/// The secret of `dev` mode. It is public.
const DEV_SECRET: &[u8] = b"purview dev mode: this is no secret";

/// Required claims, in addition to `sub`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The required issuer; `None`: any.
    pub issuer: Option<String>,
    /// The required audience; `None`: any.
    pub audience: Option<String>,
    /// Whether `exp` may be missing.
    pub may_last: bool,
    pub claims: Vec<String>,
}

/// Why a token is invalid, or cannot be signed. Never contains the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("no token was sent")]
    Missing,
    #[error("the token is not a JWT: three parts in base64url, with dots between them")]
    Malformed,
    #[error("the token's algorithm is {0:?}; use HS256, RS256, ES256 or EdDSA")]
    Algorithm(String),
    #[error("this server has no key for the token's algorithm and `kid`")]
    UnknownKey,
    #[error("the token's signature does not match")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet: its `nbf` is in the future")]
    Early,
    #[error("the token's `aud` does not name this server")]
    Audience,
    #[error("the token's `iss` is not the configured issuer")]
    Issuer,
    #[error("the token lacks the claim `{0}`, or it has the wrong form")]
    Claim(String),
    #[error("the claims of token.claims have {0} bytes; at most 1,024")]
    ClaimsTooLarge(usize),
    #[error("the token's claims are not an object of the expected form")]
    Claims,
    #[error("the token's `sub` has {0} bytes; use 1 to {MAX_SUBJECT} bytes of printable text")]
    Subject(usize),
    #[error(
        "the token's `planes` is neither \"any\" nor a list of at most {PLANES_MAX} such as \
         {{\"scene\": \"city\", \"plane\": 7}}"
    )]
    Planes,
    #[error("this cluster has not signed the ticket")]
    OtherCluster,
    #[error(
        "this is a resume ticket: send it in Resume; Hello needs the token of the login server"
    )]
    Ticket,
    #[error("the token's `sub` begins with {VISITOR:?}, as only those of visitors do")]
    Reserved,
    #[error("the operating system provides no random bytes")]
    NoRandom,
    #[error(
        "this server has only public keys and cannot sign logins: set token.secret_file to a secret"
    )]
    NoSecret,
}

/// A new random secret, as text for a file.
pub fn random_secret() -> Result<String, KeysError> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

pub fn random_cluster() -> Result<ClusterId, KeysError> {
    Ok(ClusterId::new(random()?))
}

/// Verifies and signs tokens. Clones share the keys.
#[derive(Clone)]
pub struct Tokens {
    rules: Arc<Rules>,
    files: Arc<Files>,
    keys: Arc<RwLock<LoadedKeys>>,
}

struct LoadedKeys {
    contents: Contents,
    keys: Arc<[Key]>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// Tokens with a secret in memory, of at least [`MIN_SECRET`] bytes; `None`: the secret is
    /// shorter.
    pub fn new(secret: &[u8]) -> Option<Tokens> {
        (secret.len() >= MIN_SECRET).then(|| Tokens::with(secret))
    }

    pub fn of_files(files: Files, rules: Rules) -> Result<Tokens, KeysError> {
        let contents = files.read()?;
        let keys = files.keys(&contents)?.into();
        let keys = Arc::new(RwLock::new(LoadedKeys { contents, keys }));
        Ok(Tokens { rules: Arc::new(rules), files: Arc::new(files), keys })
    }

    /// Tokens with the public secret of `dev` mode, with which every process can sign.
    pub fn dev() -> Tokens {
        Tokens::with(DEV_SECRET)
    }

    /// Tokens with a new random secret that only this value and its clones know.
    pub fn random() -> Result<Tokens, KeysError> {
        Ok(Tokens::with(random_secret()?.as_bytes()))
    }

    fn with(secret: &[u8]) -> Tokens {
        let keys = Arc::new([Key::secret(None, secret)]);
        let held = LoadedKeys { contents: Contents::default(), keys };
        let (rules, files) = Default::default();
        Tokens { rules, files, keys: Arc::new(RwLock::new(held)) }
    }

    pub fn with_rules(self, rules: Rules) -> Tokens {
        Tokens { rules: Arc::new(rules), ..self }
    }

    /// Reads the key files again; true when the keys changed. If the files are unusable, the old
    /// keys stay in use.
    pub fn reload(&self) -> Result<bool, KeysError> {
        if *self.files == Files::default() {
            return Ok(false);
        }
        let contents = self.files.read()?;
        if self.keys.read().contents == contents {
            return Ok(false);
        }
        let keys = self.files.keys(&contents)?.into();
        let mut held = self.keys.write();
        (held.contents, held.keys) = (contents, keys);
        Ok(true)
    }

    /// The tokens of the cluster with this id. The secret, which all its processes share, signs tickets where no
    /// key can sign.
    pub fn in_cluster(self, cluster: ClusterId, secret: &[u8]) -> ClusterTokens {
        ClusterTokens::new(self, cluster, secret)
    }

    fn keys(&self) -> Arc<[Key]> {
        self.keys.read().keys.clone()
    }

    fn signing(&self) -> Option<Key> {
        self.keys().iter().find(|key| key.sign.is_some()).cloned()
    }

    /// Signs a token for `sub`, valid for `valid` or without expiry. It permits the lines only.
    pub fn mint(&self, sub: &str, valid: Option<Duration>) -> Result<String, TokenError> {
        self.mint_for(sub, valid, &Planes::default())
    }

    /// Like [`Tokens::mint`], with planes that the client may enter in addition to the lines.
    pub fn mint_for(
        &self,
        sub: &str,
        valid: Option<Duration>,
        planes: &Planes,
    ) -> Result<String, TokenError> {
        self.mint_with(sub, valid, planes, BTreeMap::new())
    }

    /// Like [`Tokens::mint_for`], with further claims.
    pub fn mint_with(
        &self,
        sub: &str,
        valid: Option<Duration>,
        planes: &Planes,
        others: BTreeMap<String, serde_json::Value>,
    ) -> Result<String, TokenError> {
        let planes = match planes {
            Planes::Any => Some(PlanesClaim::Word("any".into())),
            Planes::Listed(listed) if listed.is_empty() => None,
            Planes::Listed(listed) => {
                let claim = |(scene, plane): &(String, Plane)| PlaneClaim {
                    scene: scene.clone(),
                    plane: plane.0,
                };
                Some(PlanesClaim::Listed(listed.iter().map(claim).collect()))
            }
        };
        let planes = planes.map(|planes| serde_json::to_value(planes).unwrap_or_default());
        let exp = valid.map(|valid| now_s().saturating_add(valid.as_secs()).into());
        let claims = Claims {
            sub: sub.into(),
            exp,
            iss: self.rules.issuer.clone().map(Into::into),
            aud: self.rules.audience.clone().map(Into::into),
            planes,
            others,
        };
        login(&claims, &self.rules.claims)?;
        sign(&self.signing().ok_or(TokenError::NoSecret)?, &claims)
    }

    /// The subject and the rights of a token, if it is valid.
    pub fn verify(&self, token: &str) -> Result<Login, TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        let Rules { issuer, audience, may_last, claims: told } = &*self.rules;
        let mut wanted = vec!["sub"];
        wanted.extend((!may_last).then_some("exp"));
        rules.validate_nbf = true;
        rules.validate_aud = audience.is_some();
        if let Some(audience) = audience {
            rules.set_audience(&[audience]);
            wanted.push("aud");
        }
        if let Some(issuer) = issuer {
            rules.set_issuer(&[issuer]);
            wanted.push("iss");
        }
        rules.set_required_spec_claims(&wanted);
        let claims = decode::<serde_json::Value>(&self.keys(), token, &rules)?;
        login(&serde_json::from_value(claims).map_err(|_| TokenError::Claims)?, told)
    }
}

/// Reloads the key files when they change, until the gateway stops.
pub(super) async fn follow(tokens: Tokens, stopped: impl Future<Output = ()>) {
    let (mut said, mut stopped) = (String::new(), pin!(stopped));
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => return,
            () = tokio::time::sleep(RELOAD) => {}
        }
        let asked = tokens.clone();
        let read = tokio::task::spawn_blocking(move || asked.reload()).await;
        match read {
            Ok(Ok(changed)) => {
                if changed {
                    tracing::info!("the token keys were reloaded");
                }
                said.clear();
            }
            Ok(Err(error)) if said == error.to_string() => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "the changed token keys are unusable; the old keys stay in use");
                said = error.to_string();
            }
            Err(error) => tracing::error!(%error, "the task that reloads token keys failed"),
        }
    }
}

fn sign(key: &Key, claims: &impl Serialize) -> Result<String, TokenError> {
    let secret = key.sign.as_ref().ok_or(TokenError::NoSecret)?;
    let header = Header { kid: key.kid.clone(), ..Header::new(key.algorithm) };
    jsonwebtoken::encode(&header, claims, secret).map_err(|e| of(e.kind()))
}

/// The claims of a token whose signature one of the keys verifies.
fn decode<T: DeserializeOwned + Clone>(
    keys: &[Key],
    token: &str,
    rules: &Validation,
) -> Result<T, TokenError> {
    let (algorithm, kid) = head(token)?;
    let mut why = TokenError::UnknownKey;
    for key in keys.iter().filter(|key| key.fits(algorithm, kid.as_deref())) {
        let rules =
            Validation { algorithms: vec![key.algorithm], leeway: LEEWAY_S, ..rules.clone() };
        match jsonwebtoken::decode::<T>(token, &key.check, &rules) {
            Ok(data) => return Ok(data.claims),
            Err(e) => why = of(e.kind()),
        }
        if why != TokenError::Signature {
            break;
        }
    }
    Err(why)
}

fn head(token: &str) -> Result<(Algorithm, Option<String>), TokenError> {
    if token.is_empty() {
        return Err(TokenError::Missing);
    }
    let mut parts = token.split('.');
    let (Some(head), Some(_), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    let head = URL_SAFE_NO_PAD.decode(head).map_err(|_| TokenError::Malformed)?;
    let head: serde_json::Value =
        serde_json::from_slice(&head).map_err(|_| TokenError::Malformed)?;
    let text = |name: &str| head.get(name).and_then(serde_json::Value::as_str);
    let algorithm = text("alg").ok_or(TokenError::Malformed)?;
    // No critical extension (RFC 7515, `crit`) is supported.
    if head.get("crit").is_some() {
        return Err(TokenError::Malformed);
    }
    let known = match algorithm {
        "HS256" => Algorithm::HS256,
        "RS256" => Algorithm::RS256,
        "ES256" => Algorithm::ES256,
        "EdDSA" => Algorithm::EdDSA,
        other => return Err(TokenError::Algorithm(other.chars().take(16).collect())),
    };
    Ok((known, text("kid").map(str::to_owned)))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs())
}

fn of(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::ExpiredSignature => TokenError::Expired,
        ErrorKind::ImmatureSignature => TokenError::Early,
        ErrorKind::InvalidAudience => TokenError::Audience,
        ErrorKind::InvalidIssuer => TokenError::Issuer,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            TokenError::Claim(claim.clone())
        }
        ErrorKind::Json(_) => TokenError::Claims,
        _ => TokenError::Malformed,
    }
}
