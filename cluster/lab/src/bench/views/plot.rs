//! A plot of flicker and enters against the margin: a line per crowd, with the classic heuristic dashed.

use std::fmt::Write;

use super::{CrowdRows, Row, Way};

const COLOURS: [&str; 6] = ["#2563eb", "#0891b2", "#dc2626", "#d97706", "#7c3aed", "#475569"];

/// The rectangle of a panel, pixels.
struct Panel {
    left: f64,
    title: &'static str,
    of: fn(&Row) -> f64,
    x_most: f64,
    y_most: f64,
}

const WIDTH: f64 = 330.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 300.0;

fn margin_m(row: &Row) -> f64 {
    f64::from(row.margin_cm.unwrap_or(0)) / 100.0
}

/// The rows of one region and the usual circle, by ascending margin.
fn curve(crowd: &CrowdRows) -> Vec<&Row> {
    let mut rows: Vec<_> =
        crowd.rows.iter().filter(|row| row.way == Way::Circle && row.regions == 1).collect();
    rows.sort_by_key(|row| row.margin_cm);
    rows
}

fn classic(crowd: &CrowdRows) -> Option<&Row> {
    crowd.rows.iter().find(|row| row.way == Way::Classic)
}

/// The next round number from `v` on, for the top of an axis.
fn round_up(v: f64) -> f64 {
    let unit = 10_f64.powf(v.max(1e-3).log10().floor());
    [1.0, 2.0, 4.0, 6.0, 8.0]
        .map(|n| n * unit)
        .into_iter()
        .find(|top| *top >= v)
        .unwrap_or(10.0 * unit)
}

impl Panel {
    fn new(crowds: &[CrowdRows], left: f64, title: &'static str, of: fn(&Row) -> f64) -> Panel {
        let rows = || crowds.iter().flat_map(|c| curve(c).into_iter().chain(classic(c)));
        let most = |f: fn(&Row) -> f64| rows().map(f).fold(0.0, f64::max);
        Panel { left, title, of, x_most: most(margin_m).max(1.0), y_most: round_up(most(of)) }
    }

    fn x(&self, margin_m: f64) -> f64 {
        self.left + margin_m / self.x_most * WIDTH
    }

    fn y(&self, v: f64) -> f64 {
        BOTTOM - v / self.y_most * (BOTTOM - TOP)
    }

    fn axes(&self, crowds: &[CrowdRows]) -> String {
        let mut out = String::new();
        for i in 0..=4 {
            let v = self.y_most * f64::from(i) / 4.0;
            let y = self.y(v);
            let _ =
                writeln!(out, "  <path d=\"M{} {y:.1}h{WIDTH}\" stroke=\"#e2e8f0\"/>", self.left);
            let _ = writeln!(
                out,
                "  <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#334155\">{v}</text>",
                self.left - 8.0,
                y + 4.0
            );
        }
        let ticks = crowds.first().map(curve).unwrap_or_default();
        for row in ticks {
            let _ = writeln!(
                out,
                "  <text x=\"{:.1}\" y=\"320\" text-anchor=\"middle\" fill=\"#334155\">{}</text>",
                self.x(margin_m(row)),
                margin_m(row)
            );
        }
        let _ = writeln!(
            out,
            "  <text x=\"{}\" y=\"30\" fill=\"#0f172a\">{}</text>\n  <text x=\"{}\" y=\"342\" \
             text-anchor=\"middle\" fill=\"#0f172a\">margin, metres</text>",
            self.left,
            self.title,
            self.left + WIDTH / 2.0
        );
        out
    }

    fn line(&self, crowd: &CrowdRows, colour: &str) -> String {
        let mut out = String::new();
        let mut path = String::new();
        for row in curve(crowd) {
            let (x, y) = (self.x(margin_m(row)), self.y((self.of)(row)));
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
            let _ = writeln!(
                out,
                "  <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"
            );
        }
        let _ = writeln!(
            out,
            "  <path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        if let Some(row) = classic(crowd) {
            let (left, y) = (self.left, self.y((self.of)(row)));
            let _ = writeln!(
                out,
                "  <path d=\"M{left} {y:.1}h{WIDTH}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/>"
            );
        }
        out
    }
}

/// The picture, as SVG.
pub(super) fn draw(crowds: &[CrowdRows]) -> String {
    let panels = [
        Panel::new(crowds, 60.0, "flicker, per player and second", |row| row.flicker),
        Panel::new(crowds, 460.0, "enters, per player and second", |row| row.churn),
    ];
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 820 400\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n  <title>Flicker and enters against \
         the margin</title>\n  <rect width=\"820\" height=\"400\" fill=\"#ffffff\"/>\n",
    );
    for panel in &panels {
        out += &panel.axes(crowds);
        for (crowd, colour) in crowds.iter().zip(COLOURS.iter().cycle()) {
            out += &panel.line(crowd, colour);
        }
    }
    for (i, (crowd, colour)) in crowds.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let x = 60.0 + 190.0 * (i % 4) as f64;
        let y = 366 + 20 * (i / 4);
        let _ = writeln!(
            out,
            "  <path d=\"M{x} {}h20\" stroke=\"{colour}\" stroke-width=\"3\"/>\n  <text x=\"{}\" \
             y=\"{y}\" fill=\"#0f172a\">{} players, sigma {} m</text>",
            y - 4,
            x + 26.0,
            crowd.players,
            crowd.sigma_m
        );
    }
    out += "  <text x=\"60\" y=\"390\" fill=\"#334155\">dashed: the classic heuristic on the same \
            crowd</text>\n</svg>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number_above_all_values() {
        let tops = [0.03, 0.9, 1.0, 1.1, 7.9, 8.1, 39.0].map(round_up);
        for (top, want) in tops.iter().zip([0.04, 1.0, 1.0, 2.0, 8.0, 10.0, 40.0]) {
            assert!((top - want).abs() < 1e-9, "{tops:?}");
        }
    }
}
