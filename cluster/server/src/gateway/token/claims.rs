//! What tokens and resume tickets claim.

use std::collections::BTreeMap;

use bytes::Bytes;
use purview::actor::player::{Login, Planes};
use purview::scene::Plane;
use purview::scene::account::{CLAIMS_MAX, PLANES_MAX};
use purview::scene::names::is_name;
use serde::{Deserialize, Serialize};

use super::{MAX_SUBJECT, RESUME_AUDIENCE, TokenError};

/// How subjects of visitors begin.
pub const VISITOR: &str = "visitor:";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) sub: String,
    /// Seconds since 1970, possibly with a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<serde_json::Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) iss: Option<serde_json::Value>,
    /// A string, or a list of strings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) aud: Option<serde_json::Value>,
    /// See [`PlanesClaim`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) planes: Option<serde_json::Value>,
    #[serde(flatten)]
    pub(super) others: BTreeMap<String, serde_json::Value>,
}

/// The planes that a client may enter in addition to the lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum PlanesClaim {
    /// `"any"`.
    Word(String),
    Listed(Vec<PlaneClaim>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlaneClaim {
    pub(super) scene: String,
    pub(super) plane: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TicketClaims {
    pub(super) sub: String,
    pub(super) aud: String,
    pub(super) exp: u64,
    pub(super) resume: Player,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Player {
    pub(super) cluster: String,
    pub(super) entity: u64,
    pub(super) scene: String,
}

/// The login of verified claims. `told`: those that game logic is told.
pub(super) fn login(claims: &Claims, told: &[String]) -> Result<Login, TokenError> {
    let is_resume = |aud: &serde_json::Value| aud.as_str() == Some(RESUME_AUDIENCE);
    let many =
        |aud: &serde_json::Value| aud.as_array().is_some_and(|all| all.iter().any(is_resume));
    if claims.aud.as_ref().is_some_and(|aud| is_resume(aud) || many(aud)) {
        return Err(TokenError::Ticket);
    }
    let len = claims.sub.len();
    if !is_name(&claims.sub, MAX_SUBJECT) {
        return Err(TokenError::Subject(len));
    }
    let planes = claims.planes.clone().map(serde_json::from_value).transpose();
    let planes = match planes.map_err(|_| TokenError::Planes)? {
        None => Planes::default(),
        Some(PlanesClaim::Word(word)) if word == "any" => Planes::Any,
        Some(PlanesClaim::Listed(listed)) if listed.len() <= PLANES_MAX => {
            let of = |claim: &PlaneClaim| (claim.scene.clone(), Plane(claim.plane));
            Planes::Listed(listed.iter().map(of).collect())
        }
        Some(_) => return Err(TokenError::Planes),
    };
    let expires_s = claims.exp.as_ref().map(|exp| {
        exp.as_u64().unwrap_or_else(|| exp.as_f64().map_or(0, |exp| exp.max(0.0) as u64))
    });
    let claims_told = told_claims(claims, told)?;
    Ok(Login { subject: claims.sub.clone(), expires_s, planes, claims: claims_told })
}

/// The name, if it is of a claim that says something of a player, and not of the token.
pub fn told_claim(name: &str) -> Option<String> {
    let is_of_token = matches!(name, "sub" | "exp" | "iss" | "aud" | "nbf" | "planes");
    (!name.is_empty() && !is_of_token).then(|| name.to_owned())
}

/// These of the claims, as a MessagePack map; nothing if the token has none of them.
fn told_claims(claims: &Claims, told: &[String]) -> Result<Bytes, TokenError> {
    let of = told.iter().filter_map(|name| Some((name, claims.others.get(name)?)));
    let told: BTreeMap<_, _> = of.collect();
    if told.is_empty() {
        return Ok(Bytes::new());
    }
    let encoded = rmp_serde::to_vec(&told).map_err(|_| TokenError::Claims)?;
    match encoded.len() {
        0..=CLAIMS_MAX => Ok(encoded.into()),
        bytes => Err(TokenError::ClaimsTooLarge(bytes)),
    }
}
