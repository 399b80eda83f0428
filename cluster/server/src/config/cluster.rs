//! What the section `[cluster]` must fulfil beyond its keys one by one: names, times that depend on the tick, and that
//! passwords stand in files.

use std::time::Duration;

use purview::scene::names::is_name;
use purview::scene::region::ESCROW_TICKS;

use super::advertise::{ADVERTISE, Advertise};
use super::keys::NAME;
use super::read::Section;
use super::settings::{ClusterSettings, NODE};
use super::units::Quantity;
use crate::storage::password;

pub(super) fn check(s: &mut Section<'_>, settings: &ClusterSettings, tick_ms: u32) {
    s.forbid(
        "etcd_password",
        "a password must not be in the configuration; put it into a file and name that file in \
         cluster.etcd_password_file",
    );
    for (key, name, most, rule) in [
        ("name", &settings.name, 64, NAME.0),
        ("node", &settings.node, 255, NODE.0),
        ("zone", &settings.zone, 64, NAME.0),
    ] {
        if (key == "name" || !name.is_empty()) && !is_name(name, most) {
            s.unfit(key, name, format!("must be {rule}"));
        }
    }
    check_checkpoint(s, settings.checkpoint, tick_ms);
    if settings.listen.ip().is_unspecified() && settings.advertise == Advertise::Listen {
        let rule = format!(
            "is missing: {:?} in cluster.listen is every address of this machine, and no peer can call it; write \
             {}",
            settings.listen.to_string(),
            ADVERTISE.0
        );
        s.missing("advertise", &rule);
    }
    if !passwords(s, settings) {
        schemes(s, settings);
    }
}

/// Recovery keeps [`ESCROW_TICKS`] ticks; half of them cover the way of a checkpoint to its store.
fn check_checkpoint(s: &mut Section<'_>, every: Duration, tick_ms: u32) {
    let ticks = ESCROW_TICKS / 2;
    let max_ms = ticks as i64 * i64::from(tick_ms);
    if every > Duration::from_millis(max_ms as u64) {
        let (max, tick) = (Quantity::Time.text(max_ms), Quantity::Time.text(tick_ms.into()));
        let rule = format!(
            "must be at most {max:?}, {ticks} ticks of {tick:?}: recovery keeps twice as many"
        );
        let found = Quantity::Time.text(every.as_millis() as i64);
        s.unfit("checkpoint", &found, rule);
    }
}

/// Checks that passwords are in files. True if the address of etcd holds a user; such an address
/// must not be printed.
fn passwords(s: &mut Section<'_>, settings: &ClusterSettings) -> bool {
    let ClusterSettings { etcd, etcd_user, etcd_password_file, postgres, .. } = settings;
    let together = "is missing; set cluster.etcd_user and cluster.etcd_password_file together";
    match (etcd_user.is_empty(), etcd_password_file) {
        (false, None) => s.missing("etcd_password_file", together),
        (true, Some(_)) => s.missing("etcd_user", together),
        (true, None) | (false, Some(_)) => {}
    }
    if postgres != "off"
        && let Err(rule) = password::check_postgres(postgres)
    {
        s.refuse("postgres", rule);
    }
    let has_user = etcd.contains('@');
    if has_user {
        let rule = "an address must not hold a user or a password; set cluster.etcd_user and \
                    cluster.etcd_password_file";
        s.refuse("etcd", rule);
    }
    has_user
}

/// With certificates every etcd address must be https, without them http.
fn schemes(s: &mut Section<'_>, settings: &ClusterSettings) {
    let (want, when) = match settings.tls {
        Some(_) => ("https://", "with"),
        None => ("http://", "without"),
    };
    let fits = |address: &str| address.trim().starts_with(want);
    if (settings.tls.is_some() || s.says("etcd")) && !settings.etcd.split(',').all(fits) {
        let rule = format!("must begin with {want} {when} [cluster.tls]");
        s.unfit("etcd", &settings.etcd, rule);
    }
}
