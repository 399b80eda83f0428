//! The results as tables, for the terminal and for the documentation.

use std::fmt::Write;

use super::{CrowdRows, Row, ViewsBench, Way};

/// A number with its significant digits.
fn figure(v: f64) -> String {
    match v.abs() {
        a if a >= 99.95 => format!("{v:.0}"),
        a if a >= 9.995 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    }
}

fn thousands(n: usize) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", n / 1_000, n % 1_000) }
}

/// The flicker, and with a margin its share of the flicker without one.
fn flicker(row: &Row, crowd: &CrowdRows) -> String {
    let restless = crowd.rows.iter().find(|row| row.way == Way::TightCircle);
    let told = figure(row.flicker);
    match restless.filter(|r| row.margin_cm > Some(0) && r.flicker > 0.0) {
        Some(restless) => format!("{told} ({:.0} %)", row.flicker / restless.flicker * 100.0),
        None => told,
    }
}

fn comparison(crowd: &CrowdRows) -> String {
    let mut out = String::from(
        "| lists | seen | blocking pairs | beyond the margin | distance, m | of the 20 nearest \
         | enters | flicker | messages | us |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in &crowd.rows {
        let Some(good) = row.good else { continue };
        let _ = writeln!(
            out,
            "| {} | {:.1} | {} | {} | {} | {:.1} % | {} | {} | {} | {} |",
            row.lists,
            good.listed,
            figure(good.blocking),
            if row.way != Way::Classic { figure(good.beyond_margin) } else { "-".into() },
            figure(good.distance_m),
            good.nearest_seen * 100.0,
            figure(row.churn),
            flicker(row, crowd),
            figure(row.messages),
            figure(row.us),
        );
    }
    out
}

/// A sentence about the borders in the rows with four regions.
fn borders(crowd: &CrowdRows) -> String {
    let across = crowd.rows.iter().filter(|row| row.regions > 1);
    let told = across.map(|row: &Row| {
        format!(
            "- {}: {} messages per player and second go to another region,\n  {} batches per region \
             and tick, {} pairs one-sided at a tick's end",
            row.lists,
            figure(row.between_regions),
            figure(row.batches),
            figure(row.one_sided)
        )
    });
    told.collect::<Vec<_>>().join("\n")
}

/// All results as Markdown.
pub fn markdown(bench: &ViewsBench) -> String {
    let mut out = format!(
        "{} s measured after {} s to warm up, lists of at most {}, seed {}.\n\n",
        bench.seconds, bench.warm_up, bench.cap, bench.seed
    );
    for crowd in &bench.crowds {
        let _ = write!(
            out,
            "### {} players, sigma {} m\n\n{}\n{}\n\n",
            thousands(crowd.players),
            crowd.sigma_m,
            comparison(crowd),
            borders(crowd)
        );
    }
    if !bench.cost.is_empty() {
        out += "### What negotiation costs\n\n\
                | players | crowd | regions | margin | messages | of these to another region \
                | batches per region and tick | enters | flicker | us |\n\
                |---|---|---|---|---|---|---|---|---|---|\n";
    }
    for cost in &bench.cost {
        let row = &cost.row;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} m | {} | {} | {} | {} | {} | {} |",
            thousands(cost.players),
            cost.crowd,
            row.regions,
            f64::from(row.margin_cm.unwrap_or(0)) / 100.0,
            figure(row.messages),
            figure(row.between_regions),
            figure(row.batches),
            figure(row.churn),
            figure(row.flicker),
            figure(row.us),
        );
    }
    out.trim_end().to_owned() + "\n"
}
