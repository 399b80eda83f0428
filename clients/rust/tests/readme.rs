//! The code in `README.md` is the code of the functions of this file, word for word. So it compiles with every version
//! of the library, or this file does not.

use std::error::Error;

/// Needs a server that keeps it busy for ever: it is compiled, and not run.
#[allow(dead_code)]
async fn client() -> Result<(), Box<dyn Error>> {
    use purview_client::{Client, Clock, Event, View, Walker, join};

    let mut client = Client::connect("ws://127.0.0.1:7711/", "token").await?;
    let joined = client.join(join("meadow")).await?;
    let (mut sender, mut receiver) = client.split();
    let (clock, mut view) = (Clock::new(), View::of(&joined));
    // For scenes with moves = "judged"; with "trusted" call `sender.send_move(pos)`.
    let mut walker = Walker::new(clock.now(), &joined).expect("moves are judged");
    walker.walk(1, 0, walker.speed());
    loop {
        // In every frame of the game: send, receive, draw.
        sender.walk(clock.now(), &mut walker).await?;
        if let Event::Frame(frame) = receiver.next().await? {
            view.apply(&frame)?;
            walker.frame(clock.now(), &frame);
        }
        println!("I am at {:?}", walker.shown(clock.now()));
    }
}

/// Checks itself when it runs.
#[test]
fn server() {
    use purview::interest::{RangeEvent, RangeEvents};
    use purview::scene::{Pos, RangeSet, Rect, Visibility};

    let ground = Rect { x0: 0, z0: 0, x1: 102_400, z1: 102_400 }; // centimetres
    let mut ranges = RangeEvents::new(ground, 3_200, Visibility::Patches);
    let guard = ranges.add(Pos::ground(1_000, 1_000), RangeSet::FULL);
    let thief = ranges.add(Pos::ground(90_000, 1_000), RangeSet::FULL);
    ranges.end_tick(|event| panic!("they are far apart: {event:?}"));

    ranges.move_to(thief, Pos::ground(7_000, 1_000));
    let mut told = Vec::new();
    ranges.end_tick(|event| told.push(event));
    assert_eq!(told, [RangeEvent::Entered { a: guard, b: thief }]);
}

/// The code blocks of a page that are in Rust, each with the heading above it.
fn code_blocks(page: &str) -> Vec<(String, String)> {
    let (mut heading, mut block, mut found) = (String::new(), None, Vec::new());
    for line in page.lines() {
        match (&mut block, line) {
            (None, "```rust") => block = Some(String::new()),
            (None, _) => heading = line.strip_prefix("## ").map_or(heading, str::to_owned),
            (Some(code), "```") => {
                found.push((heading.clone(), std::mem::take(code)));
                block = None;
            }
            (Some(code), _) => *code += &format!("{line}\n"),
        }
    }
    found
}

/// The body of a function of this file, as far to the left as it goes.
fn body_of(signature: &str) -> String {
    let source = include_str!("readme.rs");
    let begin = source.find(signature).expect("a function of this file") + signature.len();
    let body = source[begin..].split("\n}\n").next().unwrap_or_default();
    let lines = body.lines().skip(1).map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_code_of_the_readme_is_the_code_that_is_compiled_here() {
    let compiled = [
        ("A client", body_of("async fn client() -> Result<(), Box<dyn Error>> {")),
        ("A server of your own", body_of("#[test]\nfn server() {")),
    ];
    let compiled = compiled.map(|(heading, code)| (heading.to_owned(), code));
    assert_eq!(code_blocks(include_str!("../../../README.md")), compiled);
}
