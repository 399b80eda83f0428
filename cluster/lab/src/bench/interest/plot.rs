//! A plot of the cost per move against density and against the number of entities.

use std::fmt::Write;

use super::LocalRow;

const COLOURS: [(&str, &str); 2] = [("patches", "#2563eb"), ("circle", "#dc2626")];

const WIDTH: f64 = 330.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 300.0;

/// A panel: what its axis shows, and the points of a mode.
struct Panel<'a> {
    left: f64,
    title: &'static str,
    x: fn(&LocalRow) -> f64,
    rows: Vec<&'a LocalRow>,
    most: f64,
}

impl Panel<'_> {
    /// Along a logarithmic axis.
    fn along(&self, value: f64) -> f64 {
        let all = || self.rows.iter().map(|row| (self.x)(row).ln());
        let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
        self.left + (value.ln() - least) / (most - least).max(1e-9) * WIDTH
    }

    fn height(&self, ns: f64) -> f64 {
        BOTTOM - ns / self.most * (BOTTOM - TOP)
    }

    fn axes(&self, out: &mut String) {
        let left = self.left;
        let _ = writeln!(out, "  <text x=\"{left}\" y=\"30\">{}</text>", self.title);
        for i in 0..=4 {
            let (ns, x) = (self.most * f64::from(i) / 4.0, left - 8.0);
            let y = self.height(ns);
            let _ = writeln!(out, "  <path d=\"M{left} {y:.1}h{WIDTH}\" stroke=\"#e2e8f0\"/>");
            let _ = writeln!(
                out,
                "  <text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\">{ns:.0}</text>",
                y + 4.0
            );
        }
        let mut values: Vec<f64> = self.rows.iter().map(|row| (self.x)(row)).collect();
        values.dedup();
        for value in values.iter().take(values.len().div_ceil(COLOURS.len()).max(1)) {
            let x = self.along(*value);
            let _ = writeln!(
                out,
                "  <text x=\"{x:.1}\" y=\"320\" text-anchor=\"middle\">{value}</text>"
            );
        }
    }

    fn lines(&self, out: &mut String) {
        for (mode, colour) in COLOURS {
            let mut path = String::new();
            for row in self.rows.iter().filter(|row| row.mode == mode) {
                let (x, y) = (self.along((self.x)(row)), self.height(row.ns));
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
                let dot = format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"");
                let _ = writeln!(out, "  <circle {dot}/>");
            }
            let stroke = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"");
            let _ = writeln!(out, "  <path d=\"{path}\" {stroke}/>");
        }
    }
}

/// The picture, as SVG.
pub fn draw(rows: &[LocalRow]) -> String {
    let of = |is: fn(&LocalRow) -> bool, x: fn(&LocalRow) -> f64| {
        let mut rows: Vec<_> = rows.iter().filter(|row| is(row)).collect();
        rows.sort_by(|a, b| {
            (a.mode, x(a)).partial_cmp(&(b.mode, x(b))).unwrap_or(std::cmp::Ordering::Equal)
        });
        rows
    };
    let others = |row: &LocalRow| f64::from(row.others.unwrap_or(0));
    let most = |rows: &[&LocalRow]| {
        let most = rows.iter().map(|row| row.ns).fold(1.0, f64::max);
        (most / 20.0).ceil() * 20.0
    };
    let dense = of(|row| row.entities == 10_000 && row.others.is_some(), others);
    let many = of(|row| row.others == Some(60), |row| row.entities as f64);
    let top = most(&dense).max(most(&many));
    let panels = [
        Panel {
            left: 60.0,
            title: "ns per move, by others within 80 m (10,000 entities)",
            x: others,
            rows: dense,
            most: top,
        },
        Panel {
            left: 470.0,
            title: "ns per move, by entities (60 within 80 m)",
            x: |row| row.entities as f64,
            rows: many,
            most: top,
        },
    ];
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 370\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#334155\">\n  <title>Cost of \
         interest management against density and number of entities</title>\n  <rect width=\"840\" \
         height=\"370\" fill=\"#ffffff\"/>\n",
    );
    for panel in panels.iter().filter(|panel| !panel.rows.is_empty()) {
        panel.axes(&mut out);
        panel.lines(&mut out);
    }
    for (i, (mode, colour)) in COLOURS.iter().enumerate() {
        let x = 60 + 120 * i;
        let _ = writeln!(
            out,
            "  <path d=\"M{x} 348h20\" stroke=\"{colour}\" stroke-width=\"3\"/>\n  <text x=\"{}\" \
             y=\"352\">{mode}</text>",
            x + 26
        );
    }
    out + "</svg>\n"
}
