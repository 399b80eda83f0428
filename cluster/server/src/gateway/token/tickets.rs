//! Resume tickets, and whose players are: what of a token counts in one cluster alone.
//!
//! A ticket names a player by a number, which means another player in another cluster. So the key that signs a
//! ticket follows from a configured secret *and* from the cluster's id: two clusters with one secret cannot read
//! each other's tickets. The ticket names the cluster, too.

use std::time::Duration;

use jsonwebtoken::{Algorithm, Validation};
use purview::actor::player::{Login, Pass, Passes};
use purview::scene::{EntityId, SubjectHash};

use super::claims::{Player, TicketClaims, VISITOR};
use super::crypto::hmac;
use super::keys::{Key, Secret};
use super::{RESUME_AUDIENCE, TokenError, Tokens, decode, now_s, sign};
use crate::storage::ClusterId;

/// What the keys of tickets are derived for. No part of a JWT has a colon.
const TICKETS: &str = "purview:tickets:";

/// What the hash of a subject is derived for.
const SUBJECT: &str = "purview:subject:";

/// The tokens of a process in its cluster. Clones share the keys.
#[derive(Debug, Clone)]
pub struct ClusterTokens {
    pub(super) tokens: Tokens,
    pub(super) cluster: ClusterId,
    pub(super) secret: Secret,
    /// Signs and checks the tokens of visitors, where these are admitted.
    pub(super) visitors: Option<Secret>,
}

impl ClusterTokens {
    pub(super) fn new(tokens: Tokens, cluster: ClusterId, secret: &[u8]) -> ClusterTokens {
        let secret = Secret(Key::secret(None, secret));
        ClusterTokens { tokens, cluster, secret, visitors: None }
    }

    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The subject and the rights of a login token, if it is valid, and whose the subject's players are.
    pub fn check(&self, token: &str) -> Result<(Login, SubjectHash), TokenError> {
        let checked = self.tokens.verify(token);
        // "This is a resume ticket" helps more than any other error about a ticket.
        if checked.is_err() && self.ticket(token).is_ok() {
            return Err(TokenError::Ticket);
        }
        let login = match (checked, self.check_visitor(token)) {
            (_, Some(Ok(visitor))) => visitor,
            (Err(_), Some(Err(TokenError::Expired))) => {
                return Err(TokenError::Expired);
            }
            (Ok(login), Some(_)) if login.subject.starts_with(VISITOR) => {
                return Err(TokenError::Reserved);
            }
            (checked, _) => checked?,
        };
        let hash = self.hash(&login.subject);
        Ok((login, hash))
    }

    fn hash(&self, subject: &str) -> SubjectHash {
        let hash = hmac(self.cluster.bytes(), format!("{SUBJECT}{subject}").as_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&hash[..16]);
        SubjectHash::new(short)
    }

    /// The keys that verify tickets; the first one signs.
    fn ticket_keys(&self) -> Vec<Key> {
        let context = format!("{TICKETS}{}", self.cluster);
        let (configured, own) = (self.tokens.keys(), &self.secret.0);
        let secrets = configured.iter().chain([own]);
        let derived = secrets.filter_map(|key| {
            let hash = hmac(key.sign.as_ref()?.as_bytes(), context.as_bytes());
            Some(Key::secret(key.kid.clone(), &hash))
        });
        derived.collect()
    }

    fn ticket(&self, token: &str) -> Result<TicketClaims, TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_audience(&[RESUME_AUDIENCE]);
        rules.set_required_spec_claims(&["sub", "exp", "aud"]);
        let claims: TicketClaims = decode(&self.ticket_keys(), token, &rules)?;
        match ClusterId::read(claims.resume.cluster.as_bytes()) == Some(self.cluster) {
            true => Ok(claims),
            false => Err(TokenError::OtherCluster),
        }
    }

    fn signed(&self, claims: &TicketClaims) -> Result<String, TokenError> {
        sign(self.ticket_keys().first().ok_or(TokenError::NoSecret)?, claims)
    }
}

impl Passes for ClusterTokens {
    fn write(&self, pass: &Pass, login: &Login, holds: Duration) -> Option<String> {
        let now = now_s();
        let exp = now.saturating_add(holds.as_secs()).min(login.expires_s.unwrap_or(u64::MAX));
        if exp <= now {
            return None;
        }
        let cluster = self.cluster.to_string();
        let resume = Player { cluster, entity: pass.entity.0, scene: pass.scene.clone() };
        let (sub, aud) = (pass.subject.clone(), RESUME_AUDIENCE.to_owned());
        match self.signed(&TicketClaims { sub, aud, exp, resume }) {
            Ok(token) => Some(token),
            Err(error) => {
                purview::log_limited!(error, %error, "a resume ticket cannot be signed");
                None
            }
        }
    }

    fn read(&self, token: &str) -> Result<Pass, String> {
        let claims = self.ticket(token).map_err(|error| match error {
            TokenError::Claims | TokenError::Claim(_) | TokenError::Audience => {
                "this is not a resume ticket".to_owned()
            }
            TokenError::Signature | TokenError::UnknownKey => TokenError::OtherCluster.to_string(),
            error => error.to_string(),
        })?;
        let Player { entity, scene, .. } = claims.resume;
        Ok(Pass { subject: claims.sub, entity: EntityId(entity), scene })
    }
}

#[cfg(test)]
mod tests {
    use purview::actor::player::Planes;
    use serde_json::json;

    use super::*;
    use crate::gateway::token::Rules;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
    const HOLDS: Duration = Duration::from_secs(70);

    /// The tokens of a cluster; all these clusters have one secret.
    fn cluster(id: u8) -> ClusterTokens {
        Tokens::new(SECRET).unwrap().in_cluster(ClusterId::new([id; 16]), SECRET)
    }

    fn pass() -> Pass {
        Pass { subject: "ada".into(), entity: EntityId(7 << 32 | 5), scene: "meadow".into() }
    }

    fn login(expires_s: Option<u64>) -> Login {
        Login { subject: "ada".into(), expires_s, planes: Planes::Any, ..Login::default() }
    }

    #[test]
    fn a_resume_ticket_names_a_player_and_tickets_and_logins_are_not_interchangeable() {
        let (tokens, pass) = (cluster(1), pass());
        let ticket = tokens.write(&pass, &login(None), HOLDS).unwrap();
        assert_eq!(tokens.read(&ticket), Ok(pass.clone()));
        assert_eq!(tokens.check(&ticket), Err(TokenError::Ticket));
        let audience = Rules { audience: Some("game".into()), ..Rules::default() };
        let strict = tokens.tokens().clone().with_rules(audience);
        let strict = strict.in_cluster(ClusterId::new([1; 16]), SECRET);
        assert_eq!(strict.check(&ticket), Err(TokenError::Ticket));
        let minted = tokens.tokens().mint("ada", Some(HOLDS)).unwrap();
        let foreign = Err("this cluster has not signed the ticket".to_owned());
        assert_eq!(tokens.read(&minted), foreign);
        let exp = |ticket: &str| tokens.ticket(ticket).unwrap().exp;
        assert!((now_s() + 60..=now_s() + 70).contains(&exp(&ticket)));
        let end = now_s() + 30;
        let short = tokens.write(&pass, &login(Some(end)), HOLDS).unwrap();
        assert_eq!(exp(&short), end, "a ticket never outlives its login");
        assert_eq!(tokens.write(&pass, &login(Some(now_s() - 1)), HOLDS), None);
        let dev = Tokens::dev().in_cluster(ClusterId::new([1; 16]), &[7; 32]);
        assert_eq!(tokens.read(&dev.write(&pass, &login(None), HOLDS).unwrap()), foreign);
        let cluster = tokens.cluster.to_string();
        let resume = Player { cluster, entity: 5, scene: "meadow".into() };
        let (sub, aud) = ("ada".to_owned(), RESUME_AUDIENCE.to_owned());
        let old = tokens.signed(&TicketClaims { sub, aud, exp: 1_000, resume }).unwrap();
        assert_eq!(tokens.read(&old), Err(TokenError::Expired.to_string()));
    }

    #[test]
    fn a_ticket_of_another_cluster_with_the_same_secret_is_refused_by_its_signature() {
        let (first, second) = (cluster(1), cluster(2));
        let ticket = first.write(&pass(), &login(None), HOLDS).unwrap();
        assert_eq!(second.ticket(&ticket), Err(TokenError::Signature));
        assert_eq!(second.read(&ticket), Err("this cluster has not signed the ticket".to_owned()));
        assert_eq!(second.check(&ticket), Err(TokenError::Signature));
        assert_eq!(cluster(1).read(&ticket), Ok(pass()), "another process of the first cluster");
    }

    #[test]
    fn the_secret_of_logins_alone_signs_no_ticket() {
        let tokens = cluster(1);
        let cluster = tokens.cluster.to_string();
        let resume = json!({"cluster": cluster, "entity": 5, "scene": "meadow"});
        let claims =
            json!({"sub": "ada", "aud": RESUME_AUDIENCE, "exp": now_s() + 60, "resume": resume});
        let by_login_key = sign(&Key::secret(None, SECRET), &claims).unwrap();
        assert_eq!(tokens.ticket(&by_login_key), Err(TokenError::Signature));
        let derived = sign(&tokens.ticket_keys()[0], &claims).unwrap();
        assert!(tokens.ticket(&derived).is_ok());
    }

    #[test]
    fn a_ticket_that_names_another_cluster_is_refused_whoever_signed_it() {
        let tokens = cluster(1);
        for cluster in [ClusterId::new([2; 16]).to_string(), String::new()] {
            let resume = Player { cluster, entity: 5, scene: "meadow".into() };
            let (sub, aud, exp) = ("ada".into(), RESUME_AUDIENCE.into(), now_s() + 60);
            let ticket = tokens.signed(&TicketClaims { sub, aud, exp, resume }).unwrap();
            assert_eq!(tokens.ticket(&ticket), Err(TokenError::OtherCluster));
        }
    }

    #[test]
    fn all_processes_of_one_cluster_and_no_other_hash_a_subject_alike() {
        let hash = |id, subject| cluster(id).hash(subject);
        assert_eq!(hash(1, "ada"), hash(1, "ada"));
        assert_ne!(hash(1, "ada"), hash(2, "ada"));
        assert_ne!(hash(1, "ada"), hash(1, "bob"));
        assert_ne!(hash(1, "ada"), SubjectHash::NONE);
        let token = cluster(1).tokens().mint("ada", Some(HOLDS)).unwrap();
        assert_eq!(cluster(1).check(&token).unwrap().1, hash(1, "ada"));
    }
}
