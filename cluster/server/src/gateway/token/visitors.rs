//! Tokens of visitors of the page `/play`, which this server signs itself. They are valid in one
//! cluster and only where `play.enabled` admits visitors.
//!
//! A visitor's token has a key, an audience and a kind of subject of its own: neither a login token
//! nor a resume ticket can stand for it, and it for none of them. It permits the lines of scenes and
//! nothing else.

use std::time::Duration;

use jsonwebtoken::{Algorithm, Validation};
use purview::actor::player::{Login, Planes};
use serde::{Deserialize, Serialize};

use super::claims::VISITOR;
use super::crypto::hmac;
use super::keys::{Key, Secret};
use super::{ClusterTokens, TokenError, decode, now_s, sign};
use crate::random::random_hex;

const AUDIENCE: &str = "purview-visitor";

/// What the key is derived for.
const VISITORS: &str = "purview:visitors:";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    sub: String,
    aud: String,
    exp: u64,
}

#[derive(Clone, PartialEq, Eq)]
pub struct VisitorToken {
    pub token: String,
    pub subject: String,
    /// When it expires, seconds since 1970.
    pub expires_s: u64,
}

impl std::fmt::Debug for VisitorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VisitorToken").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl ClusterTokens {
    pub fn with_visitors(self) -> Result<ClusterTokens, TokenError> {
        let context = format!("{VISITORS}{}", self.cluster);
        let secret = self.secret.0.sign.as_ref().ok_or(TokenError::NoSecret)?;
        let visitors =
            Some(Secret(Key::secret(None, &hmac(secret.as_bytes(), context.as_bytes()))));
        Ok(ClusterTokens { visitors, ..self })
    }

    /// A token for a new visitor, or for the visitor of a token that is still valid.
    pub fn visitor(
        &self,
        before: Option<&str>,
        holds: Duration,
    ) -> Result<VisitorToken, TokenError> {
        let key = &self.visitors.as_ref().ok_or(TokenError::NoSecret)?.0;
        let known = before.and_then(|token| self.check_visitor(token)?.ok());
        let subject = match known {
            Some(login) => login.subject,
            None => {
                let name = random_hex().map_err(|_| TokenError::NoRandom)?;
                format!("{VISITOR}{name}")
            }
        };
        let expires_s = now_s().saturating_add(holds.as_secs());
        let claims = Claims { sub: subject.clone(), aud: AUDIENCE.into(), exp: expires_s };
        Ok(VisitorToken { token: sign(key, &claims)?, subject, expires_s })
    }

    /// The login of a visitor; `None`: visitors are not admitted.
    pub(super) fn check_visitor(&self, token: &str) -> Option<Result<Login, TokenError>> {
        let key = &self.visitors.as_ref()?.0;
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_audience(&[AUDIENCE]);
        rules.set_required_spec_claims(&["sub", "exp", "aud"]);
        let claims = decode::<Claims>(std::slice::from_ref(key), token, &rules);
        Some(claims.map(|claims| Login {
            subject: claims.sub,
            expires_s: Some(claims.exp),
            planes: Planes::default(),
            ..Login::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tokens;
    use super::*;
    use crate::storage::ClusterId;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
    const HOLDS: Duration = Duration::from_secs(60);

    fn cluster(id: u8) -> ClusterTokens {
        Tokens::new(SECRET).unwrap().in_cluster(ClusterId::new([id; 16]), SECRET)
    }

    fn open(id: u8) -> ClusterTokens {
        cluster(id).with_visitors().unwrap()
    }

    #[test]
    fn a_visitor_is_admitted_by_every_process_of_the_cluster_that_admits_visitors() {
        let made = open(1).visitor(None, HOLDS).unwrap();
        let (login, _) = open(1).check(&made.token).unwrap();
        assert_eq!((&login.subject, &login.planes), (&made.subject, &Planes::default()));
        assert!(login.subject.starts_with(VISITOR));
        assert_eq!(open(2).check(&made.token), Err(TokenError::Signature));
        assert_eq!(cluster(1).check(&made.token), Err(TokenError::Signature));
        assert_eq!(cluster(1).visitor(None, HOLDS), Err(TokenError::NoSecret));
    }

    #[test]
    fn a_visitor_keeps_its_subject_while_its_token_is_valid_and_no_two_are_the_same() {
        let tokens = open(1);
        let first = tokens.visitor(None, HOLDS).unwrap();
        let again = tokens.visitor(Some(&first.token), HOLDS).unwrap();
        assert_eq!(again.subject, first.subject);
        let second = tokens.visitor(Some("not a token"), HOLDS).unwrap();
        assert_ne!(second.subject, first.subject);
        let key = &tokens.visitors.as_ref().unwrap().0;
        let sub = first.subject.clone();
        let old = sign(key, &Claims { sub, aud: AUDIENCE.into(), exp: 1_000 }).unwrap();
        assert_eq!(tokens.check(&old), Err(TokenError::Expired));
        assert_ne!(tokens.visitor(Some(&old), HOLDS).unwrap().subject, first.subject);
    }

    #[test]
    fn logins_and_tickets_do_not_stand_for_visitors() {
        let tokens = open(1);
        let minted = tokens.tokens().mint("visitor:ada", Some(HOLDS)).unwrap();
        assert_eq!(tokens.check(&minted), Err(TokenError::Reserved));
        assert!(cluster(1).check(&minted).is_ok(), "there are no visitors to take for");
        let ann = tokens.tokens().mint("ann", Some(HOLDS)).unwrap();
        assert!(tokens.visitor(Some(&ann), HOLDS).unwrap().subject.starts_with(VISITOR));
        // More claims than these are none of a visitor.
        let key = &tokens.visitors.as_ref().unwrap().0;
        let exp = now_s() + 60;
        let more =
            serde_json::json!({"sub": "visitor:x", "aud": AUDIENCE, "exp": exp, "planes": "any"});
        assert!(tokens.check(&sign(key, &more).unwrap()).is_err());
    }
}
