//! The keys of a scene that say what clients are sent: by which error, within which budget, and the crowd; and how much
//! clients may make it tell.

use purview::scene::spec::{CrowdSpec, PaceSpec, UpdateError};

use super::keys::{self, Key};
use super::read::{Section, cm, rate, text_of};

/// The default is on, and then the default of each of the two figures.
pub(super) fn update_error(
    s: &mut Section<'_>,
    default: Option<UpdateError>,
) -> Option<UpdateError> {
    if !s.says(&keys::UPDATE_ERROR) {
        return default;
    }
    if s.get(&keys::UPDATE_ERROR).and_then(text_of) == Some("off") {
        return None;
    }
    let d = default.unwrap_or_default();
    let mut section = s.section("update_error");
    let min_cm = cm(&mut section, &keys::UPDATE_MIN, d.min_cm);
    let share_permille = share(&mut section, &keys::UPDATE_SHARE, d.share_permille);
    s.close(section);
    Some(UpdateError { min_cm, share_permille })
}

/// A share in tenths of a percent.
fn share(s: &mut Section<'_>, key: &Key, default: u32) -> u32 {
    let Some(node) = s.get(key) else { return default };
    text_of(node).and_then(permille_of).unwrap_or_else(|| {
        s.wrong(key.name, node, format!("must be {}, for example \"3%\"", key.form.rule()));
        default
    })
}

/// `"2.5%"` in thousandths.
fn permille_of(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let fits = digits(whole) && digits(tenths) && whole.len() <= 3 && tenths.len() == 1;
    let permille = fits.then(|| format!("{whole}{tenths}"))?.parse().ok()?;
    (permille <= 1_000).then_some(permille)
}

/// The byte budget of a client, bits per second; 0: none.
pub(super) fn egress(s: &mut Section<'_>, default: u32) -> u32 {
    if s.get(&keys::EGRESS).and_then(text_of) == Some("off") {
        return 0;
    }
    s.quantity(&keys::EGRESS, default.into()) as u32
}

/// What one client may make others be told.
pub(super) fn pace(s: &mut Section<'_>, d: PaceSpec) -> PaceSpec {
    let mut section = s.section("pace");
    let acts_per_s = section.count(&keys::PACE_ACTS, d.acts_per_s.into()) as u32;
    let bytes_per_s = section.quantity(&keys::PACE_BYTES, d.bytes_per_s.into()) as u32;
    s.close(section);
    PaceSpec { acts_per_s, bytes_per_s }
}

/// The crowd, off by default.
pub(super) fn crowd(
    s: &mut Section<'_>,
    default: Option<CrowdSpec>,
    tick_ms: u32,
) -> Option<CrowdSpec> {
    if !s.says(&keys::CROWD) {
        return default;
    }
    if s.get(&keys::CROWD).and_then(text_of) == Some("off") {
        return None;
    }
    let d = default.unwrap_or_default();
    let mut section = s.section("crowd");
    let max = section.count(&keys::CROWD_MAX, d.max.into()) as u32;
    let interval = rate(&mut section, &keys::CROWD_EVERY, tick_ms, (1_000 / tick_ms).max(1));
    s.close(section);
    Some(CrowdSpec { max, interval })
}
