//! The cryptography of tokens, by the `ring` that rustls brings: verifies HS256, RS256, ES256 and EdDSA, signs HS256.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as Unsigned, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

/// Lets the process sign and verify tokens. Code that makes a key calls it first.
pub(super) fn install() {
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: signer,
        verifier_factory: verifier,
        key_utils: KeyUtils::new_unimplemented(),
    };
    static ONCE: Once = Once::new();
    // A program that embeds the server may have installed a provider of its own.
    ONCE.call_once(|| _ = PROVIDER.install_default());
}

/// HMAC-SHA-256.
pub(super) fn hmac(secret: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// A secret that signs HS256.
struct Secret(EncodingKey);

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(Secret(key.clone()))),
        _ => Err(ErrorKind::InvalidKeyFormat.into()),
    }
}

impl Signer<Vec<u8>> for Secret {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Unsigned> {
        Ok(hmac(self.0.as_bytes(), message).into())
    }
}

impl JwtSigner for Secret {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

/// A key that verifies the signatures of its algorithm.
struct Check {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let wanted = match algorithm {
        Algorithm::HS256 => AlgorithmFamily::Hmac,
        Algorithm::RS256 => AlgorithmFamily::Rsa,
        Algorithm::ES256 => AlgorithmFamily::Ec,
        Algorithm::EdDSA => AlgorithmFamily::Ed,
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    match key.family() == wanted {
        true => Ok(Box::new(Check { algorithm: *algorithm, key: key.clone() })),
        false => Err(ErrorKind::InvalidKeyFormat.into()),
    }
}

impl Verifier<Vec<u8>> for Check {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Unsigned> {
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(secret)) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::verify(&key, message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n: number(n), e: number(e) };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Unsigned::new()),
        };
        verified.map_err(|_| Unsigned::new())
    }
}

impl JwtVerifier for Check {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Some key sets write numbers with zeros before them.
fn number(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]
}
