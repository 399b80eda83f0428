//! `purview-lab load replay --interest`: plays a recording into the interest service and judges every event.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use purview_lab::interest::replay::{Options, replay};
use purview_lab::load::trace::Trace;
use purview_server::interest::client::Address;

use super::clients::{runtime, trust};

/// The service to play into.
pub struct Target<'a> {
    /// Its URL.
    pub url: &'a str,
    /// A file with its token.
    pub token_file: Option<&'a Path>,
    /// The trusted authorities.
    pub ca: Option<&'a Path>,
}

/// Plays a recording; the exit code is 1 when the service told anything but the truth.
///
/// # Errors
/// The service cannot be reached, or ends the stream.
pub fn run_interest_replay(
    target: &Target<'_>,
    trace: &Trace,
    options: &Options,
    json: bool,
) -> anyhow::Result<u8> {
    if options.step_s <= 0.0 {
        bail!("--step 0: the time between two ticks must be greater than 0");
    }
    let token = target.token_file.map(std::fs::read_to_string).transpose();
    let token = token.context("--token-file cannot be read")?.map(|token| token.trim().to_owned());
    let address = Address { url: target.url.to_owned(), token, trust: trust(target.ca)? };
    let report = runtime()?.block_on(replay(&address, trace, options))?;
    let mut out = std::io::stdout().lock();
    match json {
        true => writeln!(out, "{}", serde_json::to_string(&report)?)?,
        false => report.print(&mut out)?,
    }
    Ok(u8::from(!report.is_exact()))
}
