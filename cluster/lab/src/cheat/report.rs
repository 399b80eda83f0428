//! What came of a trial, for people and for machines.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::link::Weather;
use super::tricks::Class;

/// Most that a cheat may gain over a minute, per cent of an honest player's way.
pub const GAIN_MAX_PERCENT: f64 = 3.0;

/// Inputs refused, by code.
pub type Codes = BTreeMap<&'static str, u64>;

/// The network between a client and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Net {
    /// None but the machine's own.
    Direct,
    /// One with delay, jitter and loss.
    Bad,
}

impl Net {
    /// The network's name, as in reports.
    pub fn word(self) -> &'static str {
        match self {
            Net::Direct => "direct",
            Net::Bad => "bad",
        }
    }
}

/// Honest players: those who roam on the bad network, and those at top speed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Honest {
    /// How many.
    pub players: u64,
    /// How many of them on the bad network.
    pub on_bad: u64,
    /// Words that they said.
    pub said: u64,
    /// Words refused, by code.
    pub refused: Codes,
    /// How often they were overruled.
    pub overruled: u64,
}

/// How far honest players walked at top speed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// On which network.
    pub net: Net,
    /// How many.
    pub players: u64,
    /// How far on the average, centimetres.
    pub way_cm: f64,
}

/// How a cheat fared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its class.
    pub class: Class,
    /// What it did.
    pub cheat: String,
    /// On which network.
    pub net: Net,
    /// Inputs sent.
    pub said: u64,
    /// Inputs refused, by code.
    pub refused: Codes,
    /// The farthest that it was shown, centimetres from where it began.
    pub way_cm: i32,
    /// How far an honest player came: at top speed in the same time, or to the wall.
    pub honest_cm: f64,
    /// How much farther it came, per cent of that.
    pub gain_percent: f64,
    /// Whether that is more than a cheat may gain.
    pub gained_too_much: bool,
    /// Why the server closed its session, if it did.
    pub closed: Option<&'static str>,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Seconds from when everybody set out to the end.
    pub seconds: f64,
    /// A player's top speed, centimetres per second.
    pub speed_cm_s: u32,
    /// Most that a cheat may gain, centimetres: [`GAIN_MAX_PERCENT`] of a minute's way, or of a longer trial's.
    pub gain_max_cm: f64,
    /// The bad network's delay one way and its jitter, milliseconds.
    pub bad_ms: [u32; 2],
    /// Of a thousand of its segments so many are lost.
    pub bad_lost_per_mille: u32,
    /// Honest players.
    pub honest: Honest,
    /// Those to whom cheaters are compared.
    pub pace: Vec<Pace>,
    /// The cheats.
    pub cheats: Vec<Row>,
    /// Clients that did not play to the end, and why: what they were to show is not shown.
    pub failures: Vec<String>,
}

impl Trial {
    /// A trial without any client yet.
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
            failures: Vec::new(),
        }
    }

    /// Judges a cheat whose way and the honest player's are known.
    pub fn judge(&self, mut row: Row) -> Row {
        let gain_cm = f64::from(row.way_cm) - row.honest_cm;
        row.gain_percent = gain_cm / row.honest_cm.max(1.0) * 100.0;
        // A wall lets nobody through for any while.
        let most_cm = if row.class == Class::Wall { 0.0 } else { self.gain_max_cm };
        row.gained_too_much = gain_cm > most_cm;
        row
    }

    /// Whether no honest player was refused and no cheat gained too much, and everybody played to the end.
    pub fn is_passed(&self) -> bool {
        self.honest.refused.is_empty()
            && self.cheats.iter().all(|row| !row.gained_too_much)
            && self.failures.is_empty()
    }

    /// The exit code of a command that ends with this.
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.is_passed())
    }

    /// Prints it on standard output: a table, or with `json` one line of JSON.
    pub fn print(&self, json: bool) {
        match json {
            // Numbers, strings and lists only: this cannot fail.
            true => match serde_json::to_string(&Told { passed: self.is_passed(), trial: self }) {
                Ok(line) => println!("{line}"),
                Err(e) => eprintln!("error: the report cannot be written: {e}"),
            },
            false => print!("{self}"),
        }
    }
}

/// The trial as machines are told of it.
#[derive(Serialize)]
struct Told<'a> {
    passed: bool,
    #[serde(flatten)]
    trial: &'a Trial,
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
        let Honest { players, on_bad, said, refused, overruled } = &self.honest;
        let refused = codes(refused);
        writeln!(
            f,
            "{players} honest bots, {on_bad} on the bad network: {said} words, {refused} refused, {overruled} rulings"
        )?;
        for Pace { net, players, way_cm } in &self.pace {
            let (net, way) = (net.word(), metres(*way_cm));
            writeln!(f, "{players} honest bots at top speed, {net}: {way:.2} m")?;
        }
        writeln!(
            f,
            "\n{:<9} {:<32} {:<7} {:>5} {:>8} {:>8}  refused",
            "class", "cheat", "network", "said", "way m", "gain %"
        )?;
        for row in &self.cheats {
            let (class, net, refused) = (row.class.word(), row.net.word(), codes(&row.refused));
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
    fn three_per_cent_of_a_minute_are_the_most() {
        let minute = trial(60.0);
        assert!(!minute.judge(row(Class::Clock, 30_900, 30_000.0)).gained_too_much);
        let over = minute.judge(row(Class::Clock, 30_901, 30_000.0));
        assert!(over.gained_too_much && over.gain_percent > 3.0);
        // What is gained once is no less in a shorter trial, and no more in a longer one.
        assert!(!trial(10.0).judge(row(Class::Clock, 5_900, 5_000.0)).gained_too_much);
        assert!(trial(10.0).judge(row(Class::Clock, 5_901, 5_000.0)).gained_too_much);
        assert!(!trial(120.0).judge(row(Class::Clock, 61_800, 60_000.0)).gained_too_much);
        // A wall is a wall.
        assert!(!minute.judge(row(Class::Wall, 799, 799.0)).gained_too_much);
        assert!(minute.judge(row(Class::Wall, 800, 799.0)).gained_too_much);
    }

    #[test]
    fn whatever_is_wrong_makes_the_exit_code_one() {
        let good = trial(60.0);
        assert_eq!(good.exit_code(), 0);
        let mut refused = good.clone();
        refused.honest.refused.insert("clock_ahead", 1);
        assert_eq!(refused.exit_code(), 1);
        let mut failed = good.clone();
        failed.failures.push("a cheat: not let in".into());
        assert_eq!(failed.exit_code(), 1);
        let mut cheated = good.clone();
        cheated.cheats.push(good.judge(row(Class::Speed, 60_000, 30_000.0)));
        assert_eq!(cheated.exit_code(), 1);
        let text = cheated.to_string();
        assert!(text.contains("+100.00  3 too_fast  TOO FAR"), "{text}");
        assert!(text.ends_with("\nNOT PASSED\n"), "{text}");
    }
}
