//! Whose a player is, as game logic is told; and the lines of its party.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Plane, Scene};

/// Most bytes of a subject.
pub const SUBJECT_MAX: usize = 128;

/// Most bytes of the claims of an account, encoded.
pub const CLAIMS_MAX: usize = 1_024;

/// Most planes of an account.
pub const PLANES_MAX: usize = 64;

/// The subject of the token with which a player has joined, the claims of the token that the configuration names, and
/// the planes that the token lists.
/// It stays with the player wherever that goes, also when its client comes back with another token. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account(Option<Arc<Details>>);

/// An account as it is encoded.
type Encoded = Option<(String, Bytes, Vec<(String, Plane)>)>;

#[derive(Debug, PartialEq, Eq)]
struct Details {
    subject: Box<str>,
    claims: Bytes,
    planes: Box<[(String, Plane)]>,
}

/// An account is larger than one may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an account of {subject} bytes of subject, {claims} of claims and {planes} planes: at most {SUBJECT_MAX}, \
     {CLAIMS_MAX} and {PLANES_MAX}"
)]
pub struct AccountTooLarge {
    subject: usize,
    claims: usize,
    planes: usize,
}

impl Account {
    /// Of an entity without a client.
    pub const NONE: Account = Account(None);

    /// The account of a subject, at most [`SUBJECT_MAX`] bytes, and its claims: a MessagePack map of at most
    /// [`CLAIMS_MAX`] bytes, or nothing; and at most [`PLANES_MAX`] planes, each of the scene of this name. No account
    /// without a subject.
    ///
    /// # Errors
    /// One of the three is larger.
    pub fn new(
        subject: &str,
        claims: Bytes,
        planes: &[(String, Plane)],
    ) -> Result<Account, AccountTooLarge> {
        let [own, told, listed] = [subject.len(), claims.len(), planes.len()];
        if own > SUBJECT_MAX || told > CLAIMS_MAX || listed > PLANES_MAX {
            return Err(AccountTooLarge { subject: own, claims: told, planes: listed });
        }
        if subject.is_empty() {
            return Ok(Account::NONE);
        }
        Ok(Account(Some(Arc::new(Details {
            subject: subject.into(),
            claims,
            planes: planes.into(),
        }))))
    }

    /// The subject; empty: no player's.
    pub fn subject(&self) -> &str {
        self.0.as_ref().map_or("", |details| &details.subject)
    }

    /// The claims, a MessagePack map; nothing: none.
    pub fn claims(&self) -> Bytes {
        self.0.as_ref().map(|details| details.claims.clone()).unwrap_or_default()
    }

    /// The first line of a scene among the planes: where joins, teleports and portals lead that name no plane.
    pub fn line_of(&self, scene: &Scene) -> Option<Plane> {
        let planes = self.0.as_ref().map_or(&[][..], |details| &details.planes);
        let is_line =
            |(name, plane): &&(String, Plane)| *name == scene.spec.name && scene.is_line(*plane);
        planes.iter().find(is_line).map(|(_, plane)| *plane)
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let details =
            self.0.as_ref().map(|details| (&*details.subject, &details.claims, &details.planes));
        details.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Account {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Account, D::Error> {
        let details: Encoded = Deserialize::deserialize(deserializer)?;
        let Some((subject, claims, planes)) = details else { return Ok(Account::NONE) };
        Account::new(&subject, claims, &planes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_as_they_were_written_and_large_ones_refused() {
        let claims = Bytes::from_static(&[0x81, 0xa5, b'l', b'e', b'v', b'e', b'l', 7]);
        let ada = Account::new("ada", claims.clone(), &[("city".into(), Plane(3))]).unwrap();
        assert_eq!((ada.subject(), ada.claims()), ("ada", claims));
        for account in [ada, Account::NONE] {
            let bytes = rmp_serde::to_vec(&account).unwrap();
            assert_eq!(rmp_serde::from_slice::<Account>(&bytes).unwrap(), account);
        }
        assert_eq!(Account::new("", Bytes::from_static(b"x"), &[]).unwrap(), Account::NONE);
        let long = "a".repeat(SUBJECT_MAX + 1);
        let bytes =
            rmp_serde::to_vec(&Some((&long, serde_bytes::Bytes::new(&[]), [0; 0]))).unwrap();
        let refused = rmp_serde::from_slice::<Account>(&bytes).unwrap_err().to_string();
        assert!(refused.contains("129 bytes of subject"), "{refused}");
        assert!(Account::new("a", Bytes::from(vec![0; CLAIMS_MAX + 1]), &[]).is_err());
        let planes = vec![("city".to_owned(), Plane(0)); PLANES_MAX + 1];
        assert!(Account::new("a", Bytes::new(), &planes).is_err());
    }
}
