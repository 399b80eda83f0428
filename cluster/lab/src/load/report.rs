//! The report of a replay or of bots, as a table and as JSON.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use purview_server::process::figures::{ServerFigures, TickMs};

use crate::game::figures::GameFigures;
use crate::oracle::{Calm, DisplayedErrors, Example, Findings, Updates, Violations};
use crate::shown::Shown;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: u64,
    pub p99: u64,
}

impl Percentiles {
    fn max(self, other: Percentiles) -> Percentiles {
        Percentiles { p50: self.p50.max(other.p50), p99: self.p99.max(other.p99) }
    }
}

/// Displayed errors by the ring in which the client sees the entity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplayedErrorCm {
    /// In the client's own patch.
    pub near: Percentiles,
    pub middle: Percentiles,
    /// In the next ring and beyond.
    pub far: Percentiles,
}

impl From<&DisplayedErrors> for DisplayedErrorCm {
    fn from(errors: &DisplayedErrors) -> DisplayedErrorCm {
        let ring = |ring| Percentiles {
            p50: errors.quantile(ring, 0.50),
            p99: errors.quantile(ring, 0.99),
        };
        DisplayedErrorCm { near: ring(0), middle: ring(1), far: ring(2) }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub players: u64,
    pub ticks: u64,
    pub violations: Violations,
    pub updates: Updates,
    pub churn_per_player_s: f64,
    /// Of these, enters of an entity that had left the same view within the last 2 s.
    pub flicker_per_player_s: f64,
    pub handoffs: u64,
    /// The delay from the moment two players come into range to the frame that shows it, in whole ticks.
    pub visibility_latency_ms: Percentiles,
    /// How far from their true positions clients showed other players, right before the frame of each tick. Without
    /// the ticks in which one of the two teleports.
    pub displayed_error_cm: DisplayedErrorCm,
    /// The tick times of the server; `None` if unknown.
    pub tick_ms: Option<TickMs>,
    /// How the server kept up; `None` if unknown.
    pub server: Option<ServerFigures>,
    /// How the example game was judged; `None` if it was not.
    pub game: Option<GameFigures>,
    pub bytes_per_client_s: f64,
    /// CPU seconds of this process for the run; `None` where the system does not report them.
    pub cpu_s: Option<f64>,
    /// The peak memory of this process, bytes; `None` where the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    pub frames: u64,
    /// Ticks of clients without a frame of their own. A later frame contained their content.
    pub frames_missing: u64,
    pub refused: u64,
    pub not_joined: u64,
    pub resumed: u64,
    /// The same for each second of the run, up to the last one with any.
    pub resumed_each_s: Vec<u64>,
    /// Attempts to resume that failed before others succeeded.
    pub failed_attempts: u64,
    pub seconds: f64,
    /// The first violations of each kind, and the reasons of failed clients.
    pub examples: Vec<Example>,
}

impl Report {
    /// A report of the oracle's findings. `tick_ms` is the length of a tick.
    pub fn of(findings: Findings, tick_ms: u32) -> Report {
        let ms = |share| findings.latency.quantile(share) * u64::from(tick_ms);
        let Calm { enters, flickers, player_ticks } = findings.calm;
        let player_s = (player_ticks * u64::from(tick_ms)).max(1) as f64 / 1_000.0;
        Report {
            players: findings.players,
            ticks: findings.ticks,
            violations: findings.violations,
            updates: findings.updates,
            churn_per_player_s: enters as f64 / player_s,
            flicker_per_player_s: flickers as f64 / player_s,
            handoffs: findings.handoffs,
            visibility_latency_ms: Percentiles { p50: ms(0.50), p99: ms(0.99) },
            displayed_error_cm: (&findings.errors).into(),
            frames: findings.frames,
            frames_missing: findings.frames_missing,
            refused: findings.refused,
            examples: findings.examples,
            ..Report::default()
        }
    }

    /// One report of several machines' bots, from the files with their reports in JSON.
    ///
    /// # Errors
    /// A file cannot be read, or is no report.
    pub fn of_files(files: &[PathBuf]) -> anyhow::Result<Report> {
        let read = |file: &PathBuf| -> anyhow::Result<Report> {
            let name = file.display();
            let opened = File::open(file).with_context(|| format!("{name} cannot be read"))?;
            let report = serde_json::from_reader(BufReader::new(opened));
            report.with_context(|| format!("{name} has no report of `load walk --json`"))
        };
        let mut all = files.iter().map(read);
        let first = all.next().context("no file is given")??;
        all.try_fold(first, |sum, report| Ok(sum.and(report?)))
    }

    /// Both runs as one. Counts are added, figures per player and second are averaged, and of percentiles, ticks and
    /// peaks the greatest counts.
    fn and(self, other: Report) -> Report {
        let shares = [&self, &other].map(|run| run.players as f64);
        let all = (shares[0] + shares[1]).max(1.0);
        let mean = |a: f64, b: f64| (a * shares[0] + b * shares[1]) / all;
        let mut resumed_each_s = other.resumed_each_s;
        resumed_each_s.resize(resumed_each_s.len().max(self.resumed_each_s.len()), 0);
        resumed_each_s.iter_mut().zip(&self.resumed_each_s).for_each(|(sum, n)| *sum += n);
        let errors = (self.displayed_error_cm, other.displayed_error_cm);
        Report {
            players: self.players + other.players,
            ticks: self.ticks.max(other.ticks),
            violations: self.violations.and(&other.violations),
            updates: Updates {
                expected: self.updates.expected + other.updates.expected,
                delivered: self.updates.delivered + other.updates.delivered,
            },
            churn_per_player_s: mean(self.churn_per_player_s, other.churn_per_player_s),
            flicker_per_player_s: mean(self.flicker_per_player_s, other.flicker_per_player_s),
            handoffs: self.handoffs + other.handoffs,
            visibility_latency_ms: self.visibility_latency_ms.max(other.visibility_latency_ms),
            displayed_error_cm: DisplayedErrorCm {
                near: errors.0.near.max(errors.1.near),
                middle: errors.0.middle.max(errors.1.middle),
                far: errors.0.far.max(errors.1.far),
            },
            tick_ms: self.tick_ms.or(other.tick_ms),
            server: self.server.or(other.server),
            game: self.game.or(other.game),
            bytes_per_client_s: mean(self.bytes_per_client_s, other.bytes_per_client_s),
            cpu_s: self.cpu_s.zip(other.cpu_s).map(|(a, b)| a + b),
            peak_rss_bytes: self.peak_rss_bytes.max(other.peak_rss_bytes),
            frames: self.frames + other.frames,
            frames_missing: self.frames_missing + other.frames_missing,
            refused: self.refused + other.refused,
            not_joined: self.not_joined + other.not_joined,
            resumed: self.resumed + other.resumed,
            resumed_each_s,
            failed_attempts: self.failed_attempts + other.failed_attempts,
            seconds: self.seconds.max(other.seconds),
            examples: [self.examples, other.examples].concat(),
        }
    }

    /// Whether there is no violation, no fault of the game, and every client has joined.
    pub fn is_clean(&self) -> bool {
        let faults = self.game.map_or(0, |game| game.faults());
        self.violations.total() == 0 && self.not_joined == 0 && faults == 0
    }
}

impl Shown for Report {
    fn is_valid(&self) -> bool {
        self.is_clean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_is_one_line_with_every_key_of_the_contract() {
        let report = Report { tick_ms: Some(TickMs::default()), ..Report::default() };
        let json = report.json().unwrap();
        assert!(!json.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let pointers = "/players /ticks /violations/missing /violations/extra /violations/asymmetric \
            /violations/stale /violations/lost /violations/flicker_at_handoff \
            /updates/expected /updates/delivered /churn_per_player_s /flicker_per_player_s \
            /handoffs /visibility_latency_ms/p50 /visibility_latency_ms/p99 \
            /displayed_error_cm/near/p50 /displayed_error_cm/middle/p99 \
            /displayed_error_cm/far/p99 /tick_ms/mean /tick_ms/p50 /tick_ms/p99 /tick_ms/max \
            /resumed /resumed_each_s /failed_attempts /bytes_per_client_s /cpu_s /peak_rss_bytes";
        for pointer in pointers.split(' ') {
            assert!(value.pointer(pointer).is_some(), "no {pointer} in {json}");
        }
    }

    #[test]
    fn churn_and_flicker_are_per_player_and_second() {
        // 20 players for 30 s.
        let calm = Calm { enters: 1_200, flickers: 300, player_ticks: 20 * 300 };
        let report = Report::of(Findings { calm, ..Findings::default() }, 100);
        assert_eq!((report.churn_per_player_s, report.flicker_per_player_s), (2.0, 0.5));
        let nobody = Report::of(Findings::default(), 100);
        assert_eq!((nobody.churn_per_player_s, nobody.flicker_per_player_s), (0.0, 0.0));
    }

    #[test]
    fn reports_of_several_machines_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            |p99| DisplayedErrorCm { far: Percentiles { p50: 1, p99 }, ..Default::default() };
        let run = |players, bytes, p99, resumed_each_s: Vec<u64>| Report {
            players,
            bytes_per_client_s: bytes,
            displayed_error_cm: error(p99),
            updates: Updates { expected: 10, delivered: 9 },
            violations: Violations { lost: 1, ..Violations::default() },
            resumed_each_s,
            cpu_s: Some(2.0),
            examples: vec![Example { kind: "lost".into(), tick: 7, what: "an action".into() }],
            ..Report::default()
        };
        let runs = [run(300, 1_000.0, 40, vec![0, 2]), run(100, 2_000.0, 90, vec![1, 0, 3])];
        let file = |(n, run): (usize, &Report)| {
            let file = folder.path().join(format!("{n}.json"));
            std::fs::write(&file, run.json().unwrap()).unwrap();
            file
        };
        let files: Vec<PathBuf> = runs.iter().enumerate().map(file).collect();
        assert_eq!(Report::of_files(&files[..1]).unwrap(), runs[0], "as it was");
        let sum = Report::of_files(&files).unwrap();
        assert_eq!((sum.players, sum.bytes_per_client_s, sum.cpu_s), (400, 1_250.0, Some(4.0)));
        assert_eq!((sum.updates.expected, sum.updates.delivered), (20, 18));
        assert_eq!((sum.violations.lost, sum.displayed_error_cm.far.p99), (2, 90));
        assert_eq!((sum.resumed_each_s, sum.examples.len()), (vec![1, 2, 3], 2));
        std::fs::write(&files[1], "{}").unwrap();
        let error = format!("{:#}", Report::of_files(&files).unwrap_err());
        assert!(
            error.contains("1.json has no report") && error.contains("missing field"),
            "{error}"
        );
        assert!(Report::of_files(&[]).is_err());
    }

    #[test]
    fn a_report_with_any_violation_is_not_clean() {
        assert!(Report::default().is_clean());
        let violations = Violations { stale: 1, ..Violations::default() };
        assert!(!Report { violations, ..Report::default() }.is_clean());
        let game = Some(GameFigures { taken_twice: 1, ..GameFigures::default() });
        assert!(!Report { game, ..Report::default() }.is_clean());
        assert!(!Report { not_joined: 1, ..Report::default() }.is_clean());
    }
}
