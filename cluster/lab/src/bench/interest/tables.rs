//! The results as tables in Markdown.

use std::fmt::Write;

use super::{InterestBench, LocalRow, ServiceRow, ThreadRow};

/// A number with commas.
fn number(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn table<R>(out: &mut String, head: &str, rows: &[R], row: impl Fn(&R) -> String) {
    let columns = head.matches('|').count() - 1;
    let _ = writeln!(out, "{head}\n|{}", "---|".repeat(columns));
    for one in rows {
        out.push_str(&row(one));
        out.push('\n');
    }
    out.push('\n');
}

/// All tables.
pub fn markdown(bench: &InterestBench) -> String {
    let mut out = String::from("### In process, one thread\n\n");
    let head = "| mode | density | entities | ns per move | events per move | bytes per entity |";
    table(&mut out, head, &bench.local, |row: &LocalRow| {
        let LocalRow { mode, density, entities, ns, events, bytes, .. } = row;
        let entities = number(*entities);
        format!("| {mode} | {density} | {entities} | {ns:.1} | {events:.3} | {} |", number(*bytes))
    });
    out += "### In process, two threads\n\n";
    let head = "| mode | entities | moves, ms | tick, ms | on 2 threads, ms | faster | serial share \
                | on 8 | on 16 |";
    table(&mut out, head, &bench.threads, |row: &ThreadRow| {
        let ThreadRow { mode, entities, moves_ms, one_ms, two_ms } = row;
        let (faster, serial) = (row.speedup(), 100.0 * row.serial());
        let (eight, sixteen) = (row.projected(8.0), row.projected(16.0));
        let entities = number(*entities);
        format!(
            "| {mode} | {entities} | {moves_ms:.2} | {one_ms:.2} | {two_ms:.2} | {faster:.2} | \
             {serial:.0} % | {eight:.1} | {sixteen:.1} |"
        )
    });
    out += "### As a service\n\n";
    let head = "| moves per batch | client, M per CPU second | service, M per CPU second | M per \
                second | events per move |";
    table(&mut out, head, &bench.service, |row: &ServiceRow| {
        let ServiceRow { batch, client, server, wall, events } = row;
        let [client, server, wall] = [client, server, wall].map(|n| n / 1e6);
        let batch = number(*batch);
        format!("| {batch} | {client:.2} | {server:.2} | {wall:.2} | {events:.3} |")
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_commas() {
        assert_eq!([7, 999, 1_000, 1_234_567].map(number), ["7", "999", "1,000", "1,234,567"]);
    }
}
