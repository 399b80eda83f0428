//! The keys that verify tokens: a secret in a file of its own, a JSON Web Key Set (RFC 7517), or
//! both. `Tokens` reads them at the start and again when a file changes. A key fixes its algorithm,
//! so that a public key can never serve as an HMAC secret. A secret must never appear in an error.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use serde::Deserialize;

use super::MIN_SECRET;
use crate::random::NoRandom;

/// Most keys of a set, because a token without a `kid` is verified against each.
pub const MAX_KEYS: usize = 16;

/// Largest key file, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// Shortest modulus of an RSA key, in bytes.
const MIN_MODULUS: usize = 256;

/// Why there are no usable keys. Never contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error(
        "{key} = {path:?}: cannot be read: {source}; `head -c 32 /dev/urandom | base64 > {path}` makes a secret"
    )]
    Unreadable { key: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{key} = {path:?}: has {bytes} bytes; at most {MAX_FILE} are allowed")]
    TooLong {
        key: &'static str,
        path: PathBuf,
        /// Its length in bytes.
        bytes: u64,
    },
    #[error("token.secret_file = {path:?}: has {bytes} bytes; a secret has at least {MIN_SECRET}")]
    TooShort {
        path: PathBuf,
        /// Its length in bytes, without white space at both ends.
        bytes: usize,
    },
    #[error("token.secret_file = {path:?}: holds the secret of `purview dev`, which is public")]
    Known { path: PathBuf },
    #[error(
        "token.keys_file = {path:?}: is not a JSON Web Key Set, an object such as {{\"keys\": [...]}}, at {place}"
    )]
    NoSet {
        path: PathBuf,
        /// Line and column.
        place: String,
    },
    #[error("token.keys_file = {path:?}: keys[{at}] {rule}")]
    Key {
        path: PathBuf,
        /// Its index in the set.
        at: usize,
        /// What is wrong and what would be right.
        rule: String,
    },
    #[error(
        "token.keys_file = {path:?}: holds no key for tokens; give 1 to {MAX_KEYS} keys of kind oct, RSA, EC (P-256) \
         or OKP (Ed25519), without \"use\" or with \"use\": \"sig\""
    )]
    NoKey { path: PathBuf },
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// A key; it fixes the algorithm of the tokens that it verifies.
#[derive(Clone)]
pub struct Key {
    pub kid: Option<String>,
    pub algorithm: Algorithm,
    /// Verifies.
    pub check: DecodingKey,
    /// Signs, if the key is a secret.
    pub sign: Option<EncodingKey>,
}

impl Key {
    pub fn secret(kid: Option<String>, secret: &[u8]) -> Key {
        super::crypto::install();
        Key {
            kid,
            algorithm: Algorithm::HS256,
            check: DecodingKey::from_secret(secret),
            sign: Some(EncodingKey::from_secret(secret)),
        }
    }

    /// Whether the key may verify a token with this header; a key without an id fits every token of
    /// its algorithm.
    pub fn fits(&self, algorithm: Algorithm, kid: Option<&str>) -> bool {
        let named = self.kid.as_deref().zip(kid).is_none_or(|(own, asked)| own == asked);
        self.algorithm == algorithm && named
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    pub secret: Option<PathBuf>,
    pub set: Option<PathBuf>,
}

/// The contents of the files, to detect changes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Contents {
    secret: Option<Vec<u8>>,
    set: Option<Vec<u8>>,
}

impl Files {
    pub fn read(&self) -> Result<Contents, KeysError> {
        let secret = self.secret.as_deref().map(|path| read("token.secret_file", path));
        let set = self.set.as_deref().map(|path| read("token.keys_file", path));
        Ok(Contents { secret: secret.transpose()?, set: set.transpose()? })
    }

    /// The keys in the contents: first the set, in its order.
    pub fn keys(&self, contents: &Contents) -> Result<Vec<Key>, KeysError> {
        let mut keys = Vec::new();
        if let (Some(path), Some(text)) = (&self.set, &contents.set) {
            keys = key_set(path, text)?;
        }
        if let (Some(path), Some(secret)) = (&self.secret, &contents.secret) {
            keys.push(one_secret(path, secret)?);
        }
        Ok(keys)
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, KeysError> {
    let unreadable = |source| KeysError::Unreadable { key, path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    match bytes {
        0..=MAX_FILE => std::fs::read(path).map_err(unreadable),
        bytes => Err(KeysError::TooLong { key, path: path.to_owned(), bytes }),
    }
}

fn one_secret(path: &Path, text: &[u8]) -> Result<Key, KeysError> {
    let path = path.to_owned();
    match text.trim_ascii() {
        super::DEV_SECRET => Err(KeysError::Known { path }),
        secret if secret.len() < MIN_SECRET => {
            Err(KeysError::TooShort { path, bytes: secret.len() })
        }
        secret => Ok(Key::secret(None, secret)),
    }
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

fn key_set(path: &Path, text: &[u8]) -> Result<Vec<Key>, KeysError> {
    let path = path.to_owned();
    let set: Set = match serde_json::from_slice(text) {
        Ok(set) => set,
        // The error text may quote a key, so only its place is reported.
        Err(e) => {
            let place = format!("line {}, column {}", e.line(), e.column());
            return Err(KeysError::NoSet { path, place });
        }
    };
    let mut keys: Vec<Key> = Vec::new();
    for (at, entry) in set.keys.into_iter().enumerate() {
        let wrong = |rule: String| KeysError::Key { path: path.clone(), at, rule };
        let Some(key) = key_of(entry).map_err(wrong)? else {
            tracing::debug!(at, path = %path.display(), "a key of the set does not verify tokens");
            continue;
        };
        if key.kid.is_some() && keys.iter().any(|other| other.kid == key.kid) {
            return Err(wrong(
                "repeats the \"kid\" of an earlier key; give each key its own".into(),
            ));
        }
        keys.push(key);
    }
    match keys.len() {
        1..=MAX_KEYS => Ok(keys),
        _ => Err(KeysError::NoKey { path }),
    }
}

/// A key of the set; `None`: a key for another purpose.
fn key_of(entry: serde_json::Value) -> Result<Option<Key>, String> {
    const WANT: &str = "is not a key: give \"kty\" and the members of its kind (RFC 7518)";
    let kind = entry.get("kty").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
    let jwk: Jwk = serde_json::from_value(entry).map_err(|_| WANT.to_owned())?;
    if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return Ok(None);
    }
    let kid = jwk.common.key_id.clone();
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| WANT.to_owned());
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::OctetKey(secret) => {
            let secret = decoded(&secret.value)?;
            if secret.len() < MIN_SECRET {
                return Err(format!(
                    "has {} bytes; a secret has at least {MIN_SECRET}",
                    secret.len()
                ));
            }
            if secret == super::DEV_SECRET {
                return Err("is the secret of `purview dev`, which is public".into());
            }
            return Ok(says(&jwk, Algorithm::HS256).then(|| Key::secret(kid, &secret)));
        }
        AlgorithmParameters::RSA(key) => {
            if decoded(&key.n)?.len() < MIN_MODULUS {
                return Err(format!("is shorter than {} bits", MIN_MODULUS * 8));
            }
            Algorithm::RS256
        }
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            if decoded(&key.x)?.len() != 32 || decoded(&key.y)?.len() != 32 {
                return Err(WANT.into());
            }
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            if decoded(&key.x)?.len() != 32 {
                return Err(WANT.into());
            }
            Algorithm::EdDSA
        }
        // The library reads a key without a required member as one of an unknown kind.
        AlgorithmParameters::Other(_) if ["oct", "RSA", "EC", "OKP", ""].contains(&&*kind) => {
            return Err(WANT.into());
        }
        _ => return Ok(None),
    };
    if !says(&jwk, algorithm) {
        return Ok(None);
    }
    super::crypto::install();
    let check = DecodingKey::from_jwk(&jwk).map_err(|_| WANT.to_owned())?;
    Ok(Some(Key { kid, algorithm, check, sign: None }))
}

/// Whether a key is for this algorithm, or names none.
fn says(jwk: &Jwk, algorithm: Algorithm) -> bool {
    jwk.common.key_algorithm.is_none_or(|said| Algorithm::try_from(said) == Ok(algorithm))
}

/// A key that is no configured one.
#[derive(Clone)]
pub(in crate::gateway::token) struct Secret(pub(in crate::gateway::token) Key);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
