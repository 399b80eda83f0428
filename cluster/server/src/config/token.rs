//! The section of tokens: which keys verify them, what they must say, and what a subject may have.

use std::path::Path;

use super::keys;
use super::read::Section;
use super::settings::{SUBJECT_SESSIONS, TokenSettings};
use crate::gateway::token::RESUME_AUDIENCE;
use crate::logins::Duplicate;

/// The token section; a path in the configuration file is relative to the folder of that file.
pub(super) fn read(root: &mut Section<'_>, folder: &Path) -> TokenSettings {
    let mut s = root.section("token");
    s.forbid(
        "secret",
        "a secret must not be in the configuration; put it into a file and name that file in \
         token.secret_file",
    );
    let secret_file = s.path(&keys::SECRET_FILE, folder);
    let keys_file = s.path(&keys::KEYS_FILE, folder);
    let [issuer, audience] = [&keys::ISSUER, &keys::AUDIENCE].map(|key| {
        let text = s.text(key, "");
        (!text.is_empty()).then_some(text)
    });
    if audience.as_deref() == Some(RESUME_AUDIENCE) {
        s.unfit(&keys::AUDIENCE, RESUME_AUDIENCE, "is reserved for resume tickets".into());
    }
    let may_last = s.choice(&keys::EXPIRY, 0) == 1;
    let says = s.says(&keys::DUPLICATE);
    let duplicate = match s.choice(&keys::DUPLICATE, 0) {
        0 => Duplicate::Replace,
        1 => Duplicate::Refuse,
        _ => Duplicate::Allow,
    };
    let counts = s.says(&keys::SUBJECT_SESSIONS);
    let max_sessions = s.count(&keys::SUBJECT_SESSIONS, SUBJECT_SESSIONS.into()) as u32;
    root.close(s);
    let duplicate = says.then_some(duplicate);
    let max_sessions = counts.then_some(max_sessions);
    TokenSettings { secret_file, keys_file, issuer, audience, may_last, duplicate, max_sessions }
}
