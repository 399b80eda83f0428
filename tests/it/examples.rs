//! The programs in `examples/` do what they say.

#[path = "../../examples/embed.rs"]
#[allow(dead_code)]
mod embed;
#[path = "../../examples/interest.rs"]
#[allow(dead_code)]
mod interest;

#[test]
fn two_players_of_an_embedded_scene_see_each_other() {
    let lines = embed::run().unwrap();
    let expected =
        ["ann sees bob", "bob sees ann", "ann did b\"wave\"", "ann lost bob", "bob lost ann"];
    assert_eq!(lines, expected);
}

#[test]
fn a_wolf_wakes_up_before_the_hunter_sees_it() {
    let lines = interest::run().unwrap();
    let expected = [
        "tick 1: 1 sees 900",
        "tick 2: refused: no entity has the id 77",
        "tick 2: 900 sees 2",
        "tick 3: 2 sees 900",
        "tick 4: 1 no longer sees 900",
        "tick 4: 2 no longer sees 900",
        "tick 4: 900 no longer sees 2",
    ];
    assert_eq!(lines, expected);
}
