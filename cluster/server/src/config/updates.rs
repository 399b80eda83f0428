//! The keys of a scene that say what clients are sent: by which error, within which budget, and the crowd.

use purview::scene::SceneSpec;
use purview::scene::spec::{CrowdSpec, UpdateError};

use super::form::{Form, Rule};
use super::keys::{Keys, keys};
use super::page::quoted;
use super::read::{quantity_within, text_of};
use super::tree::Node;
use super::units::Quantity::Flow;

/// The default is on, and then the default of each of the two figures.
pub(super) fn update_error(k: &mut Keys<'_, '_, SceneSpec>) {
    keys! { k;
        "update_error" optional("{ min, share }, or \"off\"", true, error) update_error:
            "How wrong a client may show an entity before it is told at once: the greater of two figures; \"off\" = clients \
             are told by the rates alone.";
    }
}

const SHARE: Form<'static> = Form::Matching(r"^(?:0?[0-9]{1,2}(?:\.[0-9])?|100(?:\.0)?)\s*%$");

fn error(k: &mut Keys<'_, '_, UpdateError>) {
    let rule = "a share from \"0%\" to \"100%\", in tenths of a percent";
    let share = |node: &Node| {
        let permille = text_of(node).and_then(permille_of);
        permille.ok_or_else(|| format!("must be {rule}, for example \"3%\""))
    };
    let text = |permille: &u32| quoted(&format!("{}.{}%", permille / 10, permille % 10));
    keys! { k;
        "min" length(1, 5_000) min_cm: "The tolerance for near entities.";
        "share" other((rule, SHARE), share, text) share_permille: "The tolerance as a share of the distance.";
    }
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

pub(super) const EGRESS: Rule<'static> = (
    "a flow of data, for example \"20kbps\", or \"off\"",
    Form::Or("off", &Form::Of(Flow, FLOW.0, FLOW.1)),
);
const FLOW: (i64, i64) = (4_000, 1_000_000_000);

/// The byte budget of a client, bits per second; 0: none.
pub(super) fn read_egress(node: &Node) -> Result<u32, String> {
    match text_of(node) {
        Some("off") => Ok(0),
        _ => quantity_within(node, Flow, FLOW).map(|bits| bits as u32),
    }
}

pub(super) fn egress_text(bits: &u32) -> String {
    quoted(&if *bits == 0 { "off".into() } else { Flow.text((*bits).into()) })
}

/// The crowd, off by default.
pub(super) fn crowd(k: &mut Keys<'_, '_, SceneSpec>, tick_ms: u32) {
    keys! { k;
        "crowd" optional("{ max, every }, or \"off\"", true, |k| whole_crowd(k, tick_ms)) crowd:
            "What clients that ask for it are told of the players beyond their view lists.";
    }
}

fn whole_crowd(k: &mut Keys<'_, '_, CrowdSpec>, tick_ms: u32) {
    k.default.interval = (1_000 / tick_ms).max(1);
    if k.reads() {
        k.value.interval = k.default.interval;
    }
    keys! { k;
        "max" count(1, 1_000) max: "Most players in a crowd, the nearest ones.";
        "every" ticks(tick_ms) interval: "Time between two tellings of a crowd; whole ticks.";
    }
}
