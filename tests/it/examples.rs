//! The programs in `examples/` do what they say.

#[path = "../../examples/embed.rs"]
#[allow(dead_code)]
mod embed;
#[path = "../../examples/range_events.rs"]
#[allow(dead_code)]
mod range_events;

#[test]
fn two_players_of_an_embedded_scene_see_each_other() {
    let lines = embed::run().unwrap();
    let expected =
        ["ann sees bob", "bob sees ann", "ann did b\"wave\"", "ann lost bob", "bob lost ann"];
    assert_eq!(lines, expected);
}

#[test]
fn a_guard_post_reports_a_thief_once() {
    assert_eq!(range_events::run(), ["alarm at x = 50000", "quiet at x = 60000"]);
}
