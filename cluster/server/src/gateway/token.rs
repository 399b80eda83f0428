//! Tokens: who may come in. A login server signs a JWT, by which a client says who it is; this server signs resume
//! tickets, by which a client comes back for its player. Neither holds in the other's place: a ticket has an audience
//! of its own. `docs/guide/tokens.md` says what a login server must sign.

pub mod keys;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation};
use purview::actor::player::{Login, Pass, Passes, Planes};
use purview::scene::{EntityId, Plane};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_rustls::rustls::crypto::ring;

use keys::{Contents, Files, Key, KeysError};

/// Shortest secret, in bytes: as long as the hash, as RFC 7518 demands.
pub const MIN_SECRET: usize = 32;

/// Longest `sub`, in bytes.
pub const MAX_SUBJECT: usize = 128;

/// Most planes that a token may name.
pub const MAX_PLANES: usize = 64;

/// How far the issuer's clock may be off, in seconds.
const LEEWAY_S: u64 = 5;

/// The audience of resume tickets, which no login has.
pub const RESUME_AUDIENCE: &str = "purview-resume";

/// Time between two looks at the files of keys.
const RELOAD: Duration = Duration::from_secs(1);

/// What `dev` mode signs with. Everybody knows it.
const DEV_SECRET: &[u8] = b"purview dev mode: this is no secret";

/// What a token must say beside who it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Who must have issued it; `None`: whoever.
    pub issuer: Option<String>,
    /// For whom it must be; `None`: whomever.
    pub audience: Option<String>,
    /// Whether it may lack `exp`.
    pub may_last: bool,
}

/// What a token says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    sub: String,
    /// Seconds since 1970, possibly with a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<serde_json::Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iss: Option<serde_json::Value>,
    /// A text, or a list of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aud: Option<serde_json::Value>,
    /// As [`PlanesClaim`] has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    planes: Option<serde_json::Value>,
}

/// Which planes beside the lines a client may enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum PlanesClaim {
    /// `"any"`.
    Word(String),
    Listed(Vec<PlaneClaim>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlaneClaim {
    scene: String,
    plane: i32,
}

/// What a resume ticket says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TicketClaims {
    sub: String,
    aud: String,
    exp: u64,
    resume: Player,
}

/// A player in its scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Player {
    entity: u64,
    scene: String,
}

/// Why a token does not hold, or cannot be made. Never tells the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is none.
    #[error("no token was sent")]
    Missing,
    /// It is no JWT.
    #[error("the token is not a JWT: three parts in base64url, with dots between them")]
    Malformed,
    /// It is signed in a way that is not taken, or not at all.
    #[error("the token's algorithm is {0:?}; want HS256, RS256, ES256 or EdDSA")]
    Algorithm(String),
    /// There is no key for it.
    #[error("no key of this server checks the token's algorithm and `kid`")]
    UnknownKey,
    /// It was signed with another key.
    #[error("the token's signature does not match")]
    Signature,
    /// It ran out.
    #[error("the token has expired")]
    Expired,
    /// It does not hold yet.
    #[error("the token does not hold yet: its `nbf` lies ahead")]
    Early,
    /// It is for somebody else.
    #[error("the token's `aud` does not name this server")]
    Audience,
    /// It is somebody else's.
    #[error("the token's `iss` is not the issuer that this server believes")]
    Issuer,
    /// It lacks a claim.
    #[error("the token lacks the claim `{0}`, or it has the wrong form")]
    Claim(String),
    /// Its claims are of another form.
    #[error("the token's claims are not those that this server reads")]
    Claims,
    /// Its subject is none.
    #[error("the token's `sub` has {0} bytes; want 1 to {MAX_SUBJECT}, without control characters")]
    Subject(usize),
    /// Its planes are none.
    #[error(
        "the token's `planes` is neither \"any\" nor a list of at most {MAX_PLANES} such as \
         {{\"scene\": \"city\", \"plane\": 7}}"
    )]
    Planes,
    /// It is a resume ticket where a login is wanted.
    #[error("this is a resume ticket: it goes into Resume; Hello wants the token of the login")]
    Ticket,
    /// There is nothing to sign with.
    #[error(
        "this server has public keys alone and signs no logins: token.secret_file names a secret that does"
    )]
    NoSecret,
}

/// A secret that nobody knows yet, as text for a file.
///
/// # Errors
/// The system gives no random bytes.
pub fn random_secret() -> Result<String, KeysError> {
    let mut random = [0; 32];
    let source = ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| KeysError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

/// Checks and mints tokens. Clones share their keys.
#[derive(Clone)]
pub struct Tokens {
    rules: Arc<Rules>,
    files: Arc<Files>,
    keys: Arc<RwLock<Held>>,
}

/// The keys that count now.
struct Held {
    contents: Contents,
    keys: Arc<[Key]>,
    /// Signs and checks tickets where no other key signs.
    tickets: Option<Key>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens(..)")
    }
}

impl Tokens {
    /// With a secret of at least [`MIN_SECRET`] bytes, which is no file's; `None`: it is shorter.
    pub fn new(secret: &[u8]) -> Option<Tokens> {
        (secret.len() >= MIN_SECRET).then(|| Tokens::with(secret))
    }

    /// With the keys in files.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn of_files(files: Files, rules: Rules) -> Result<Tokens, KeysError> {
        let contents = files.read()?;
        let keys = files.keys(&contents)?.into();
        let keys = Arc::new(RwLock::new(Held { contents, keys, tickets: None }));
        Ok(Tokens { rules: Arc::new(rules), files: Arc::new(files), keys })
    }

    /// With a secret that everybody knows: for `dev` mode, where any process can mint a token.
    pub fn dev() -> Tokens {
        Tokens::with(DEV_SECRET)
    }

    /// With a secret that nobody knows but this value and its clones.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn random() -> Result<Tokens, KeysError> {
        Ok(Tokens::with(random_secret()?.as_bytes()))
    }

    fn with(secret: &[u8]) -> Tokens {
        let keys = Arc::new([Key::secret(None, secret)]);
        let held = Held { contents: Contents::default(), keys, tickets: None };
        let (rules, files) = Default::default();
        Tokens { rules, files, keys: Arc::new(RwLock::new(held)) }
    }

    /// The same under other rules.
    pub fn with_rules(self, rules: Rules) -> Tokens {
        Tokens { rules: Arc::new(rules), ..self }
    }

    /// Reads the files again; true when the keys are others now. Where they cannot be used the keys stay as they are.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn reload(&self) -> Result<bool, KeysError> {
        if *self.files == Files::default() {
            return Ok(false);
        }
        let contents = self.files.read()?;
        if self.keys.read().unwrap_or_else(PoisonError::into_inner).contents == contents {
            return Ok(false);
        }
        let keys = self.files.keys(&contents)?.into();
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        (held.contents, held.keys) = (contents, keys);
        Ok(true)
    }

    /// Whether one of the keys signs.
    pub fn signs(&self) -> bool {
        self.signing().is_some()
    }

    /// Signs tickets with this secret where none of the keys signs.
    pub fn sign_tickets_with(&self, secret: &[u8]) {
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        held.tickets = Some(Key::secret(None, secret));
    }

    fn keys(&self) -> Arc<[Key]> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }

    fn ticket_key(&self) -> Option<Key> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).tickets.clone()
    }

    fn signing(&self) -> Option<Key> {
        self.keys().iter().find(|key| key.sign.is_some()).cloned()
    }

    /// A token for `sub` that holds for `valid`, or for ever, and lets it into the lines alone.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn mint(&self, sub: &str, valid: Option<Duration>) -> Result<String, TokenError> {
        self.mint_for(sub, valid, &Planes::default())
    }

    /// The same with planes that it lets its client enter beside the lines.
    ///
    /// # Errors
    /// When it cannot be signed, or would not hold.
    pub fn mint_for(
        &self,
        sub: &str,
        valid: Option<Duration>,
        planes: &Planes,
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
        };
        login(&claims)?;
        sign(&self.signing().ok_or(TokenError::NoSecret)?, &claims)
    }

    /// Whom a token names and what it allows, if it holds.
    ///
    /// # Errors
    /// Why it does not hold.
    pub fn verify(&self, token: &str) -> Result<Login, TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        let Rules { issuer, audience, may_last } = &*self.rules;
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
        let checked = decode::<serde_json::Value>(&self.keys(), token, &rules);
        // Whatever else is wrong with a ticket, that it is one says more.
        if checked.is_err() && self.ticket(token).is_ok() {
            return Err(TokenError::Ticket);
        }
        login(&serde_json::from_value(checked?).map_err(|_| TokenError::Claims)?)
    }

    fn ticket(&self, token: &str) -> Result<TicketClaims, TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_audience(&[RESUME_AUDIENCE]);
        rules.set_required_spec_claims(&["sub", "exp", "aud"]);
        let keys: Vec<Key> = self.keys().iter().cloned().chain(self.ticket_key()).collect();
        let secrets: Vec<Key> = keys.into_iter().filter(|key| key.sign.is_some()).collect();
        decode(&secrets, token, &rules)
    }
}

/// Reads the files of keys again when they change, until the gateway stops.
pub(super) async fn follow(tokens: Tokens, mut stop: watch::Receiver<bool>) {
    let mut said = String::new();
    loop {
        tokio::select! {
            biased;
            // An error says that the gateway itself is gone: the same.
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(RELOAD) => {}
        }
        let asked = tokens.clone();
        let read = tokio::task::spawn_blocking(move || asked.reload()).await;
        match read {
            Ok(Ok(changed)) => {
                if changed {
                    tracing::info!("the keys of tokens have changed");
                }
                said.clear();
            }
            Ok(Err(error)) if said == error.to_string() => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "the keys of tokens stay as they were");
                said = error.to_string();
            }
            Err(error) => tracing::error!(%error, "the keys of tokens cannot be read"),
        }
    }
}

/// What claims mean that are signed.
fn login(claims: &Claims) -> Result<Login, TokenError> {
    let is_resume = |aud: &serde_json::Value| aud.as_str() == Some(RESUME_AUDIENCE);
    let many =
        |aud: &serde_json::Value| aud.as_array().is_some_and(|all| all.iter().any(is_resume));
    if claims.aud.as_ref().is_some_and(|aud| is_resume(aud) || many(aud)) {
        return Err(TokenError::Ticket);
    }
    let len = claims.sub.len();
    if !(1..=MAX_SUBJECT).contains(&len) || claims.sub.chars().any(char::is_control) {
        return Err(TokenError::Subject(len));
    }
    let planes = claims.planes.clone().map(serde_json::from_value).transpose();
    let planes = match planes.map_err(|_| TokenError::Planes)? {
        None => Planes::default(),
        Some(PlanesClaim::Word(word)) if word == "any" => Planes::Any,
        Some(PlanesClaim::Listed(listed)) if listed.len() <= MAX_PLANES => {
            let of = |claim: &PlaneClaim| (claim.scene.clone(), Plane(claim.plane));
            Planes::Listed(listed.iter().map(of).collect())
        }
        Some(_) => return Err(TokenError::Planes),
    };
    let expires_s = claims.exp.as_ref().map(|exp| {
        exp.as_u64().unwrap_or_else(|| exp.as_f64().map_or(0, |exp| exp.max(0.0) as u64))
    });
    Ok(Login { subject: claims.sub.clone(), expires_s, planes })
}

fn sign(key: &Key, claims: &impl Serialize) -> Result<String, TokenError> {
    let secret = key.sign.as_ref().ok_or(TokenError::NoSecret)?;
    let header = Header { kid: key.kid.clone(), ..Header::new(key.algorithm) };
    jsonwebtoken::encode(&header, claims, secret).map_err(|e| of(e.kind()))
}

/// What a token says that one of the keys has signed.
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

/// The algorithm and the name of the key, as a token says them itself.
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
    // What must be understood (RFC 7515, `crit`) is not.
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

impl Passes for Tokens {
    fn write(&self, pass: &Pass, login: &Login, holds: Duration) -> Option<String> {
        let now = now_s();
        let exp = now.saturating_add(holds.as_secs()).min(login.expires_s.unwrap_or(u64::MAX));
        let key = self.signing().or_else(|| self.ticket_key())?;
        if exp <= now {
            return None;
        }
        let resume = Player { entity: pass.entity.0, scene: pass.scene.clone() };
        let (sub, aud) = (pass.subject.clone(), RESUME_AUDIENCE.to_owned());
        match sign(&key, &TicketClaims { sub, aud, exp, resume }) {
            Ok(token) => Some(token),
            Err(error) => {
                purview::log_limited!(error, %error, "a resume ticket cannot be made");
                None
            }
        }
    }

    fn read(&self, token: &str) -> Result<Pass, String> {
        let claims = self.ticket(token).map_err(|error| match error {
            TokenError::Claims | TokenError::Claim(_) | TokenError::Audience => {
                "it is no resume ticket".to_owned()
            }
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
