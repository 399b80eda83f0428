//! How fast a client is read.

use super::*;

#[test]
fn a_burst_is_read_slowly_and_a_flood_closes_the_session() {
    let limits = PlayerConfig { rate_limit: 10, rate_burst: 3, flood_ms: 2_000, ..config() };
    let mut b = Bench::with(limits);
    b.say(hello());
    b.say(ClientRequest::Ping(1));
    assert_eq!(b.player.pause_ms(b.now_ms), 0);
    b.say(ClientRequest::Ping(2));
    assert_eq!(b.player.pause_ms(b.now_ms), 100);
    for _ in 0..19 {
        b.after(100);
        assert_eq!(b.player.pause_ms(b.now_ms), 0);
        assert_eq!(b.say(ClientRequest::Ping(3)), ["pong 3 tick 0"]);
        assert_eq!(b.player.pause_ms(b.now_ms), 100);
    }
    // Who pauses once is no flood.
    b.after(400);
    for _ in 0..3 {
        assert_eq!(b.say(ClientRequest::Ping(4)), ["pong 4 tick 0"]);
    }
    for _ in 0..19 {
        b.after(100);
        assert_eq!(b.say(ClientRequest::Ping(5)), ["pong 5 tick 0"]);
    }
    b.after(100);
    assert_eq!(b.say(arrival(1)), ["give back 1", "close Rate", "done"]);
}

#[test]
fn a_client_whose_inputs_wait_is_not_read_and_not_closed() {
    let mut b = Bench::in_world();
    for seq in 1..=5 {
        b.say(step(seq));
        assert_eq!(b.player.pause_ms(b.now_ms), 0);
    }
    b.say(step(6));
    assert_eq!(b.player.pause_ms(b.now_ms), FULL_PAUSE_MS);
    // What came all the same waits, too.
    assert_eq!(b.say(step(7)), ["3: move 7"]);
}
