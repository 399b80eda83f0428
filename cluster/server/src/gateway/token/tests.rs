use std::path::Path;

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use serde_json::{Value, json};

use purview::actor::player::{Pass, Passes};
use purview::scene::EntityId;

use crate::gateway::token::*;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn tokens() -> Tokens {
    Tokens::new(SECRET).unwrap()
}

/// What a login server signs with.
enum Signer {
    Secret(Vec<u8>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Signer::Secret(secret) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().into()
            }
            Signer::P256(pair) => pair.sign(&random, message).unwrap().as_ref().into(),
            Signer::Ed25519(pair) => pair.sign(message).as_ref().into(),
            Signer::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }
}

/// A token as a login server may sign it.
fn signed(header: Value, claims: &Value, key: &Signer) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn hs256(claims: &Value) -> String {
    signed(json!({"alg": "HS256"}), claims, &Signer::Secret(SECRET.into()))
}

fn later() -> u64 {
    now_s() + 600
}

#[test]
fn a_minted_token_is_valid_and_names_its_subject_and_planes() {
    let tokens = tokens();
    let hour = Some(Duration::from_secs(3_600));
    let login = tokens.verify(&tokens.mint("ada", hour).unwrap()).unwrap();
    assert_eq!((login.subject.as_str(), login.planes), ("ada", Planes::default()));
    assert!(login.expires_s.is_some_and(|exp| exp > now_s() + 3_000));
    for planes in [Planes::Any, Planes::Listed(vec![("city".into(), Plane(-7))])] {
        let token = tokens.mint_for("ada", hour, &planes).unwrap();
        assert_eq!(tokens.verify(&token).unwrap().planes, planes);
    }
    assert_eq!(tokens.mint("", hour), Err(TokenError::Subject(0)));
}

#[test]
fn an_invalid_token_is_refused_with_the_reason() {
    let tokens = tokens();
    assert_eq!(tokens.verify(""), Err(TokenError::Missing));
    assert_eq!(tokens.verify("a.b.c"), Err(TokenError::Malformed));
    assert_eq!(tokens.verify("no token at all"), Err(TokenError::Malformed));
    let foreign = Tokens::dev().mint("ada", Some(Duration::from_secs(60))).unwrap();
    assert_eq!(tokens.verify(&foreign), Err(TokenError::Signature));
    let claims = |more: Value| {
        let mut claims = json!({"sub": "ada", "exp": later()});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    };
    let long = "s".repeat(129);
    let cases = [
        (claims(json!({"exp": 1_000})), TokenError::Expired),
        (claims(json!({"exp": "soon"})), TokenError::Claim("exp".into())),
        (json!({"sub": "ada"}), TokenError::Claim("exp".into())),
        (json!({"exp": later()}), TokenError::Claim("sub".into())),
        (claims(json!({"sub": 7})), TokenError::Claim("sub".into())),
        (claims(json!({"nbf": now_s() + 3_600})), TokenError::Early),
        (claims(json!({"sub": ""})), TokenError::Subject(0)),
        (claims(json!({"sub": long})), TokenError::Subject(129)),
        (claims(json!({"sub": "a\nb"})), TokenError::Subject(3)),
        (claims(json!({"aud": RESUME_AUDIENCE})), TokenError::Ticket),
        (claims(json!({"aud": ["game", RESUME_AUDIENCE]})), TokenError::Ticket),
        (claims(json!({"planes": "all"})), TokenError::Planes),
        (claims(json!({"planes": [{"scene": "city"}]})), TokenError::Planes),
        (
            claims(json!({"planes": vec![json!({"scene": "city", "plane": 1}); PLANES_MAX + 1]})),
            TokenError::Planes,
        ),
    ];
    for (claims, why) in cases {
        assert_eq!(tokens.verify(&hs256(&claims)), Err(why), "{claims}");
    }
    for fine in [
        claims(json!({"nbf": now_s() - 1, "iss": 7, "aud": "another"})),
        claims(json!({"sub": "s".repeat(128)})),
        claims(json!({"exp": later() as f64 + 0.5})),
        claims(json!({"planes": []})),
    ] {
        assert!(tokens.verify(&hs256(&fine)).is_ok(), "{fine}");
    }
}

#[test]
fn issuer_and_audience_are_checked_if_configured_and_exp_unless_waived() {
    let rules = |audience: Option<&str>, issuer: Option<&str>| Rules {
        audience: audience.map(Into::into),
        issuer: issuer.map(Into::into),
        ..Rules::default()
    };
    let both = tokens().with_rules(rules(Some("game"), Some("login")));
    let cases = [
        (json!({"aud": "game", "iss": "login"}), None),
        (json!({"aud": ["else", "game"], "iss": "login"}), None),
        (json!({"aud": "else", "iss": "login"}), Some(TokenError::Audience)),
        (json!({"aud": "game", "iss": "else"}), Some(TokenError::Issuer)),
        (json!({"iss": "login"}), Some(TokenError::Claim("aud".into()))),
        (json!({"aud": "game"}), Some(TokenError::Claim("iss".into()))),
    ];
    for (mut claims, why) in cases {
        claims["sub"] = "ada".into();
        claims["exp"] = later().into();
        assert_eq!(both.verify(&hs256(&claims)).err(), why, "{claims}");
    }
    let minted = both.mint("ada", Some(Duration::from_secs(60))).unwrap();
    assert!(both.verify(&minted).is_ok(), "minted tokens have both");
    let lasting = tokens().with_rules(Rules { may_last: true, ..Rules::default() });
    let login = lasting.verify(&hs256(&json!({"sub": "ada"}))).unwrap();
    assert_eq!(login.expires_s, None);
}

#[test]
fn unsupported_algorithms_are_named() {
    let claims = json!({"sub": "ada", "exp": later()});
    let unsigned = |algorithm: &str| {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.", part(&json!({"alg": algorithm})), part(&claims))
    };
    let named = |name: &str| Err(TokenError::Algorithm(name.into()));
    assert_eq!(tokens().verify(&unsigned("none")), named("none"));
    assert_eq!(tokens().verify(&unsigned("HS512")), named("HS512"));
    let said = TokenError::Algorithm("none".into()).to_string();
    assert_eq!(said, "the token's algorithm is \"none\"; use HS256, RS256, ES256 or EdDSA");
    assert_eq!(tokens().verify(&unsigned("RS256")), Err(TokenError::UnknownKey));
    let critical = json!({"alg": "HS256", "crit": ["b64"], "b64": false});
    let token = signed(critical, &claims, &Signer::Secret(SECRET.into()));
    assert_eq!(tokens().verify(&token), Err(TokenError::Malformed));
}

/// A P-256, an Ed25519 and an RSA key pair that sign, and their public halves as a set has them.
fn pairs() -> [(Signer, Algorithm, Value); 3] {
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let [p256, ed25519, rsa] = [
        include_str!("test_keys/p256.hex"),
        include_str!("test_keys/ed25519.hex"),
        include_str!("test_keys/rsa.hex"),
    ]
    .map(unhex);
    let random = SystemRandom::new();
    let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &p256, &random).unwrap();
    let ed25519 = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&ed25519).unwrap();
    let rsa = RsaKeyPair::from_der(&rsa).unwrap();
    let (x, y) = p256.public_key().as_ref()[1..].split_at(32);
    let ec = json!({"kty": "EC", "crv": "P-256", "kid": "ES256", "x": text(x), "y": text(y)});
    let x = text(ed25519.public_key().as_ref());
    let okp = json!({"kty": "OKP", "crv": "Ed25519", "kid": "EdDSA", "x": x});
    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa.public());
    // Some key sets write a zero before the number.
    let n = text(&[&[0], &public.n[..]].concat());
    let rsa_jwk = json!({"kty": "RSA", "kid": "RS256", "n": n, "e": text(&public.e)});
    [
        (Signer::P256(p256), Algorithm::ES256, ec),
        (Signer::Ed25519(ed25519), Algorithm::EdDSA, okp),
        (Signer::Rsa(rsa), Algorithm::RS256, rsa_jwk),
    ]
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn oct(kid: &str, secret: &[u8]) -> Value {
    json!({"kty": "oct", "kid": kid, "k": URL_SAFE_NO_PAD.encode(secret)})
}

fn set_in(folder: &Path, keys: &[Value]) -> Files {
    let path = folder.join("keys.json");
    std::fs::write(&path, json!({ "keys": keys }).to_string()).unwrap();
    Files { secret: None, set: Some(path) }
}

#[test]
fn keys_of_a_set_are_chosen_by_their_name_and_fix_the_algorithm() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = pairs();
    let mut keys: Vec<Value> = pairs.iter().map(|(_, _, jwk)| jwk.clone()).collect();
    let (old, new) = ([b'o'; 32], [b'n'; 32]);
    keys.extend([oct("new", &new), oct("old", &old)]);
    keys.push(json!({"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"}));
    keys.push(json!({"kty": "quantum"}));
    let tokens = Tokens::of_files(set_in(folder.path(), &keys), Rules::default()).unwrap();
    let claims = json!({"sub": "ada", "exp": later()});
    for (key, algorithm, jwk) in &pairs {
        let name = format!("{algorithm:?}");
        let header = json!({"alg": name, "kid": jwk["kid"]});
        let token = signed(header, &claims, key);
        assert_eq!(tokens.verify(&token).map(|login| login.subject), Ok("ada".into()), "{name}");
        let nameless = signed(json!({"alg": name}), &claims, key);
        assert!(tokens.verify(&nameless).is_ok(), "{name} without a kid");
        // Somebody who knows the public key cannot use it as an HMAC secret.
        for public in [&jwk["n"], &jwk["x"]].into_iter().filter_map(Value::as_str) {
            let bytes = URL_SAFE_NO_PAD.decode(public).unwrap();
            for secret in [&bytes, public.as_bytes(), jwk.to_string().as_bytes()] {
                let secret = Signer::Secret(secret.into());
                let header = json!({"alg": "HS256", "kid": jwk["kid"]});
                let forged = signed(header, &claims, &secret);
                assert_eq!(tokens.verify(&forged), Err(TokenError::UnknownKey), "{name}");
            }
        }
    }
    for (kid, secret) in [("new", &new), ("old", &old)] {
        let key = Signer::Secret(secret.into());
        let by = |kid: &str| signed(json!({"alg": "HS256", "kid": kid}), &claims, &key);
        assert!(tokens.verify(&by(kid)).is_ok());
        let other = if kid == "new" { "old" } else { "new" };
        assert_eq!(tokens.verify(&by(other)), Err(TokenError::Signature));
        assert_eq!(tokens.verify(&by("gone")), Err(TokenError::UnknownKey));
    }
    // The first secret signs the tokens that this server issues.
    let minted = tokens.mint("ada", Some(Duration::from_secs(60))).unwrap();
    assert_eq!(jsonwebtoken::decode_header(&minted).unwrap().kid.as_deref(), Some("new"));
    assert!(tokens.verify(&minted).is_ok());
}

#[test]
fn an_unusable_set_names_the_key_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let said = |keys: &[Value]| {
        let made = Tokens::of_files(set_in(folder.path(), keys), Rules::default());
        made.err().unwrap().to_string()
    };
    let known = URL_SAFE_NO_PAD.encode(DEV_SECRET);
    let cases: [(Value, &str); 7] = [
        (json!({"kty": "RSA"}), "keys[1] is not a key: give \"kty\""),
        (json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}), "keys[1] is shorter than 2048 bits"),
        (json!({"kty": "OKP", "crv": "Ed25519", "x": "AQAB"}), "keys[1] is not a key"),
        (json!({"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"}), "keys[1] is not a key"),
        (json!({"kty": "oct", "k": "AQAB"}), "keys[1] has 3 bytes; a secret has at least 32"),
        (oct("first", &[1; 32]), "keys[1] repeats the \"kid\" of an earlier key"),
        (json!({"kty": "oct", "k": known}), "which is public"),
    ];
    for (key, want) in cases {
        let said = said(&[oct("first", SECRET), key]);
        assert!(said.starts_with("token.keys_file = ") && said.contains(want), "{said}");
    }
    assert!(said(&[]).contains("holds no key for tokens"));
    let files = set_in(folder.path(), &[]);
    std::fs::write(files.set.as_ref().unwrap(), "a secret, not JSON").unwrap();
    let said = Tokens::of_files(files, Rules::default()).err().unwrap().to_string();
    assert!(said.contains("is not a JSON Web Key Set") && !said.contains("secret"), "{said}");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, DEV_SECRET).unwrap();
    let files = Files { secret: Some(secret), set: None };
    let said = Tokens::of_files(files, Rules::default()).err().unwrap().to_string();
    assert!(said.contains("which is public"), "{said}");
}

#[test]
fn changed_key_files_are_reloaded_and_unusable_ones_leave_the_old_keys() {
    let folder = tempfile::tempdir().unwrap();
    let files = set_in(folder.path(), &[oct("1", &[1; 32])]);
    let path = files.set.clone().unwrap();
    let tokens = Tokens::of_files(files, Rules::default()).unwrap();
    let first = tokens.mint("ada", Some(Duration::from_secs(60))).unwrap();
    assert!(matches!(tokens.reload(), Ok(false)), "nothing has changed");
    set_in(folder.path(), &[oct("2", &[2; 32]), oct("1", &[1; 32])]);
    let clone = tokens.clone();
    assert!(matches!(tokens.reload(), Ok(true)));
    let second = clone.mint("ada", Some(Duration::from_secs(60))).unwrap();
    assert!(clone.verify(&first).is_ok() && tokens.verify(&second).is_ok());
    set_in(folder.path(), &[oct("2", &[2; 32])]);
    assert!(matches!(tokens.reload(), Ok(true)));
    assert_eq!(tokens.verify(&first), Err(TokenError::UnknownKey), "the key was removed");
    std::fs::write(&path, "{").unwrap();
    assert!(matches!(tokens.reload(), Err(KeysError::NoSet { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(tokens.reload(), Err(KeysError::Unreadable { .. })));
    assert!(tokens.verify(&second).is_ok(), "the old keys stay");
}

#[test]
fn with_public_keys_a_separate_secret_signs_tickets_and_no_logins() {
    let folder = tempfile::tempdir().unwrap();
    let [(_, _, public), ..] = pairs();
    let tokens = Tokens::of_files(set_in(folder.path(), &[public]), Rules::default()).unwrap();
    assert_eq!(tokens.mint("ada", None), Err(TokenError::NoSecret));
    let pass = Pass { subject: "ada".into(), entity: EntityId(5), scene: "meadow".into() };
    let holds = Duration::from_secs(60);
    let tokens = tokens.in_cluster(ClusterId::new([7; 16]), SECRET);
    let ticket = tokens.write(&pass, &Login::default(), holds).unwrap();
    assert_eq!(tokens.read(&ticket), Ok(pass));
    assert_eq!(tokens.check(&ticket), Err(TokenError::Ticket));
    let login = hs256(&json!({"sub": "ada", "exp": later()}));
    assert_eq!(
        tokens.check(&login),
        Err(TokenError::UnknownKey),
        "the ticket secret verifies no logins"
    );
}

/// The example in docs/guide/tokens.md.
#[test]
fn the_example_in_the_guide_is_accepted() {
    let page = include_str!("../../../../../docs/guide/tokens.md");
    let block = |name: &str| {
        let from = page.find(&format!("```{name}\n")).unwrap_or_else(|| panic!("no block {name}"));
        let text = &page[from + name.len() + 4..];
        text[..text.find("\n```").unwrap()].trim().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("purview.secret");
    std::fs::write(&secret, format!("{}\n", block("secret"))).unwrap();
    let files = Files { secret: Some(secret), set: None };
    let rules = Rules {
        issuer: Some("https://login.example".into()),
        audience: Some("my-game".into()),
        ..Rules::default()
    };
    let tokens = Tokens::of_files(files, rules).unwrap();
    let token: String = block("token").split_whitespace().collect();
    let said = |part: usize| -> Value {
        let part = token.split('.').nth(part).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(said(0), serde_json::from_str::<Value>(&block("header")).unwrap());
    assert_eq!(said(1), serde_json::from_str::<Value>(&block("claims")).unwrap());
    let login = tokens.verify(&token).unwrap();
    assert_eq!(login.subject, "ada");
    assert_eq!(login.planes, Planes::Listed(vec![("meadow".into(), Plane(7))]));
    // The key is the text of the file itself, not its base64-decoded bytes.
    let mut bytes = base64::engine::general_purpose::STANDARD.decode(block("secret")).unwrap();
    bytes.resize(MIN_SECRET, 0);
    let decoded = Tokens::new(&bytes).unwrap();
    assert_eq!(decoded.verify(&token), Err(TokenError::Signature));
}
