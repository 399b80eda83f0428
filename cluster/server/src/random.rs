//! Random bytes of the operating system.

use tokio_rustls::rustls::crypto::ring;

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the operating system provides no random bytes")]
pub struct NoRandom;

pub fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut random = [0; N];
    let source = ring::default_provider().secure_random;
    source.fill(&mut random).map_err(|_| NoRandom)?;
    Ok(random)
}

/// 16 random bytes as hexadecimal digits.
pub fn random_hex() -> Result<String, NoRandom> {
    Ok(format!("{:032x}", u128::from_be_bytes(random()?)))
}
