//! The report of a cheat trial, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use super::gang::Gang;
use super::link::Weather;
use super::session::Played;
use super::tricks::Class;
use crate::args::name;
use crate::shown::Shown;

/// The greatest gain of a cheat over a minute, per cent of an honest player's distance.
const GAIN_MAX_PERCENT: f64 = 3.0;

/// Inputs refused, by code.
type Codes = BTreeMap<&'static str, u64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Net {
    Direct,
    Bad,
}

/// The honest players: those on the bad network, and those at top speed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Honest {
    pub players: u64,
    pub on_bad: u64,
    /// The number of move commands that they sent.
    pub said: u64,
    pub refused: Codes,
    pub corrected: u64,
}

impl Honest {
    pub fn add(&mut self, net: Net, played: Played) {
        self.players += 1;
        self.on_bad += u64::from(net == Net::Bad);
        self.said += played.said;
        self.corrected += u64::from(played.corrections);
        for (code, n) in played.refused {
            *self.refused.entry(code).or_default() += n;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    pub net: Net,
    pub players: u64,
    pub way_cm: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub class: Class,
    pub cheat: String,
    pub net: Net,
    pub sessions: u64,
    pub said: u64,
    pub refused: Codes,
    /// The greatest distance at which viewers were shown the cheater, centimetres from its start.
    pub way_cm: i32,
    /// The distance of an honest player in the same time, or up to the wall.
    pub honest_cm: f64,
    pub gain_percent: f64,
    pub gained_too_much: bool,
    /// Why the server closed the session, if it did.
    pub closed: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// The time from the start to the end, seconds.
    pub seconds: f64,
    pub speed_cm_s: u32,
    /// The greatest gain of a cheat, centimetres: `GAIN_MAX_PERCENT` of the distance in a minute, or in a longer
    /// trial.
    pub gain_max_cm: f64,
    /// The one-way delay and the jitter of the bad network, milliseconds.
    pub bad_ms: [u32; 2],
    /// The loss on the bad network, segments per thousand.
    pub bad_lost_per_mille: u32,
    pub honest: Honest,
    pub pace: Vec<Pace>,
    pub cheats: Vec<Row>,
    /// What gangs have got of a view list.
    pub gangs: Vec<Gang>,
    /// Clients that did not play to the end, with the cause. Their results are missing.
    pub failures: Vec<String>,
}

impl Trial {
    pub fn new(seconds: f64, speed_cm_s: u32, bad: Weather) -> Trial {
        let minute_cm = f64::from(speed_cm_s) * seconds.max(60.0);
        Trial {
            seconds,
            speed_cm_s,
            gain_max_cm: minute_cm * GAIN_MAX_PERCENT / 100.0,
            bad_ms: [bad.delay_ms, bad.jitter_ms],
            bad_lost_per_mille: bad.lost_per_mille,
            honest: Honest::default(),
            pace: Vec::new(),
            cheats: Vec::new(),
            gangs: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// The distance of an honest player at top speed on a network, centimetres.
    pub fn paced_cm(&self, net: Net) -> f64 {
        let pace = self.pace.iter().find(|pace| pace.net == net);
        pace.map(|pace| pace.way_cm).unwrap_or_default()
    }

    /// Judges a cheat by its distance and that of an honest player.
    pub fn judge(&self, mut row: Row) -> Row {
        let gain_cm = f64::from(row.way_cm) - row.honest_cm;
        row.gain_percent = gain_cm / row.honest_cm.max(1.0) * 100.0;
        // A wall lets no client through, however long the trial.
        let most_cm = if row.class == Class::Wall { 0.0 } else { self.gain_max_cm };
        row.gained_too_much = gain_cm > most_cm;
        row
    }

    /// Whether no honest player was refused, no cheat or gang gained too much, and every client played to the end.
    pub fn is_passed(&self) -> bool {
        self.honest.refused.is_empty()
            && self.cheats.iter().all(|row| !row.gained_too_much)
            && self.gangs.iter().all(Gang::is_bounded)
            && self.failures.is_empty()
    }
}

impl Shown for Trial {
    fn is_valid(&self) -> bool {
        self.is_passed()
    }

    fn json(&self) -> serde_json::Result<String> {
        let mut json = serde_json::to_value(self)?;
        json["passed"] = self.is_passed().into();
        Ok(json.to_string())
    }

    fn text(&self) -> serde_json::Result<String> {
        Ok(self.to_string())
    }
}

fn codes(refused: &Codes) -> String {
    let told: Vec<String> = refused.iter().map(|(code, n)| format!("{n} {code}")).collect();
    if told.is_empty() { "0".into() } else { told.join(", ") }
}

fn metres(cm: f64) -> f64 {
    cm / 100.0
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [delay_ms, jitter_ms] = self.bad_ms;
        let lost = f64::from(self.bad_lost_per_mille) / 10.0;
        let speed = metres(self.speed_cm_s.into());
        writeln!(
            f,
            "{:.0} s at {speed} m/s; bad network: {delay_ms} ms delay, {jitter_ms} ms jitter, {lost} % loss",
            self.seconds
        )?;
        let Honest { players, on_bad, said, refused, corrected } = &self.honest;
        let refused = codes(refused);
        writeln!(
            f,
            "{players} honest bots, {on_bad} on the bad network: {said} move commands, {refused} refused, {corrected} corrections"
        )?;
        for Pace { net, players, way_cm } in &self.pace {
            let (net, way) = (name(net), metres(*way_cm));
            writeln!(f, "{players} honest bots at top speed, {net}: {way:.2} m")?;
        }
        writeln!(
            f,
            "\n{:<9} {:<32} {:<7} {:>5} {:>8} {:>8}  refused",
            "class", "cheat", "network", "sent", "way m", "gain %"
        )?;
        for row in &self.cheats {
            let (class, net, refused) = (name(&row.class), name(&row.net), codes(&row.refused));
            let (way, gain) = (metres(row.way_cm.into()), row.gain_percent);
            write!(
                f,
                "{class:<9} {:<32} {net:<7} {:>5} {way:>8.2} {gain:>+8.2}  {refused}",
                row.cheat, row.said
            )?;
            if let Some(code) = row.closed {
                write!(f, "; closed: {code}")?;
            }
            writeln!(f, "{}", if row.gained_too_much { "  TOO FAR" } else { "" })?;
        }
        for Gang { fights, accounts, places, taken, bound } in &self.gangs {
            writeln!(
                f,
                "a gang of {accounts}, where fights are begun by {fights}: {taken} of {places} places of a view list, \
                 at most {bound}"
            )?;
        }
        for failure in &self.failures {
            writeln!(f, "not played: {failure}")?;
        }
        writeln!(f, "\n{}", if self.is_passed() { "passed" } else { "NOT PASSED" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: Class, way_cm: i32, honest_cm: f64) -> Row {
        Row {
            class,
            cheat: "a cheat".into(),
            net: Net::Bad,
            sessions: 0,
            said: 120,
            refused: Codes::from([("too_fast", 3)]),
            way_cm,
            honest_cm,
            gain_percent: 0.0,
            gained_too_much: false,
            closed: None,
        }
    }

    fn trial(seconds: f64) -> Trial {
        Trial::new(seconds, 500, Weather::BAD)
    }

    #[test]
    fn the_greatest_gain_is_three_per_cent_of_a_minute() {
        let minute = trial(60.0);
        assert!(!minute.judge(row(Class::Clock, 30_900, 30_000.0)).gained_too_much);
        let over = minute.judge(row(Class::Clock, 30_901, 30_000.0));
        assert!(over.gained_too_much && over.gain_percent > 3.0);
        // A single gain is no smaller in a shorter trial and no larger in a longer one.
        assert!(!trial(10.0).judge(row(Class::Clock, 5_900, 5_000.0)).gained_too_much);
        assert!(trial(10.0).judge(row(Class::Clock, 5_901, 5_000.0)).gained_too_much);
        assert!(!trial(120.0).judge(row(Class::Clock, 61_800, 60_000.0)).gained_too_much);
        // Any distance beyond a wall is too much.
        assert!(!minute.judge(row(Class::Wall, 799, 799.0)).gained_too_much);
        assert!(minute.judge(row(Class::Wall, 800, 799.0)).gained_too_much);
    }

    #[test]
    fn a_trial_with_any_failure_is_not_passed() {
        let good = trial(60.0);
        assert!(good.is_passed());
        let mut refused = good.clone();
        refused.honest.refused.insert("clock_ahead", 1);
        assert!(!refused.is_passed());
        let mut failed = good.clone();
        failed.failures.push("a cheat: not admitted".into());
        assert!(!failed.is_passed());
        let taken = Gang { fights: "logic", accounts: 20, places: 20, taken: 1, bound: 0 };
        assert!(!Trial { gangs: vec![taken], ..good.clone() }.is_passed());
        let mut cheated = good.clone();
        cheated.cheats.push(good.judge(row(Class::Speed, 60_000, 30_000.0)));
        assert!(!cheated.is_passed());
        let text = cheated.to_string();
        assert!(text.contains("+100.00  3 too_fast  TOO FAR"), "{text}");
        assert!(text.ends_with("\nNOT PASSED\n"), "{text}");
    }
}
