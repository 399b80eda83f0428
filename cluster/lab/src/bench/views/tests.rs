use clap::Parser;

use crate::bench::views::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: BenchViewsArgs,
}

fn args(line: &str) -> BenchViewsArgs {
    let words = std::iter::once("views").chain(line.split_whitespace());
    Line::try_parse_from(words).unwrap().args
}

fn bench(line: &str) -> ViewsBench {
    bench_views(&args(line), &mut |_| {}).unwrap()
}

fn find(rows: &[Row], way: Way, regions: usize, margin_cm: i32) -> &Row {
    let is = |row: &&Row| {
        (row.way, row.regions) == (way, regions) && row.margin_cm.unwrap_or(0) == margin_cm
    };
    rows.iter().find(is).unwrap()
}

/// A row without its CPU time, which differs from run to run.
fn virtually(row: &Row) -> String {
    format!("{:?}", Row { us: 0.0, ..row.clone() })
}

#[test]
fn a_margin_cuts_flicker_to_a_third_or_less_and_leaves_no_pair_beyond_it() {
    let line = "--players 120 --sigma 8 --cap 20 --margins 2 --margin 2 --seconds 15 --warm-up 3";
    let rows = &bench(line).crowds[0].rows;
    let restless = find(rows, Way::TightCircle, 1, 0);
    let calm = find(rows, Way::Circle, 1, 200);
    assert!(restless.flicker > 0.5, "there is hardly any flicker to calm: {restless:?}");
    assert!(3.0 * calm.flicker <= restless.flicker, "{} of {}", calm.flicker, restless.flicker);
    assert!(calm.churn < restless.churn && calm.messages < restless.messages);
    for row in rows {
        let good = row.good.unwrap();
        assert!(row.way == Way::Classic || good.beyond_margin == 0.0, "{row:?}");
        assert_eq!(row.faults, 0, "{row:?}");
    }
    let classic = find(rows, Way::Classic, 1, 0).good.unwrap();
    let restless = restless.good.unwrap();
    assert_eq!(restless.blocking, 0.0);
    assert!(classic.blocking > 1.0 && classic.nearest_seen < restless.nearest_seen, "{classic:?}");
}

#[test]
fn the_cost_of_the_negotiation_is_measured_with_and_without_a_margin_for_one_region_and_four() {
    let cost =
        bench("--cost --players 40 --sigma 8 --many 50 --cap 10 --seconds 3 --warm-up 1").cost;
    let told: Vec<_> =
        cost.iter().map(|c| (c.players, c.row.regions, c.row.margin_cm.unwrap())).collect();
    let each = |players| [(1, 0), (1, 200), (4, 0), (4, 200)].map(|(r, cm)| (players, r, cm));
    assert_eq!(told, [each(40), each(50), each(50)].concat());
    for row in cost.iter().map(|c| &c.row) {
        assert!(row.messages > 0.0 && row.us > 0.0 && row.good.is_none(), "{row:?}");
        assert_eq!(row.between_regions > 0.0, row.regions == 4, "{row:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let run = |seed| {
        let line = "--players 60 --sigma 8 --cap 10 --margins 1 --seconds 2 --warm-up 1 --seed";
        let rows = bench(&format!("{line} {seed}")).crowds.remove(0).rows;
        rows.iter().map(virtually).collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn arguments_that_cannot_be_measured_are_errors() {
    let long = format!("--players {}", PLAYERS_MAX + 1);
    for line in ["--players 0", "--sigma 1001", "--cap 0", "--cap 1001", "--margin 1001", &long] {
        let few = if line.contains("--players") { "" } else { "--players 2" };
        let refused = bench_views(&args(&format!("{line} {few} --seconds 1")), &mut |_| {});
        assert!(refused.is_err(), "{line}");
    }
    for line in ["--seconds 0", "--sigma 0", "--margins -1", "--margins x"] {
        let words = std::iter::once("views").chain(line.split_whitespace());
        assert!(Line::try_parse_from(words).is_err(), "{line}");
    }
}

#[test]
fn a_fault_in_any_row_makes_the_result_invalid() {
    let mut good = bench("--players 3 --sigma 8 --margins 1 --seconds 1 --warm-up 0");
    assert!(good.is_sound());
    good.crowds[0].rows[1].faults = 1;
    assert!(!good.is_sound());
}

#[test]
fn results_are_written_into_the_page_and_drawn_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("views.md");
    let few = "--players 3 --many 3 --sigma 8 --margins 1 --seconds 1 --warm-up 0";
    let line = format!("{few} --write {}", page.display());
    let refused = bench_views(&args(&line), &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    std::fs::write(&page, "no markers").unwrap();
    let refused = bench_views(&args(&line), &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("lacks the markers"), "{refused}");
    std::fs::write(&page, "before\n<!-- results begin -->\n<!-- results end -->\nafter\n").unwrap();
    let bench = bench(&line);
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(written.starts_with("before\n") && written.ends_with("after\n"), "{written}");
    assert!(written.contains(bench.to_markdown().trim()), "{written}");
    assert!(written.contains("### 3 players, sigma 8 m") && written.contains("| 3 | 60 in range"));
    let picture = std::fs::read_to_string(folder.path().join("img/views.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
}
