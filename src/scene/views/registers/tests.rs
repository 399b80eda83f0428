use super::*;

const ME: EntityId = EntityId(1);

/// A player and all that it sends, in order.
struct Table {
    rules: ViewRules,
    regs: Registers,
    said: Vec<(u64, ViewMsgBody)>,
}

impl Table {
    /// A player with cap `cap` that knows others at these distances (id, centimetres).
    fn new(cap: usize, others: &[(u64, u32)]) -> Table {
        let mut regs = Registers::new(ME);
        for (id, dist_cm) in others {
            let ix = regs.push(EntityId(*id), 0);
            regs.peers_mut()[ix].dist_cm = *dist_cm;
        }
        Table { rules: ViewRules::new(cap, 0), regs, said: Vec::new() }
    }

    fn at(&self, id: u64) -> usize {
        self.regs.find(EntityId(id)).expect("one of the peers")
    }

    fn ask(&mut self, id: u64) {
        let (ix, said) = (self.at(id), &mut self.said);
        self.regs.ask(ix, |p, say| said.push((p.id.0, say)));
    }

    fn refuse(&mut self, id: u64) {
        let (ix, said) = (self.at(id), &mut self.said);
        self.regs.refuse(ix, |p, say| said.push((p.id.0, say)));
    }

    fn handle_yes(&mut self, id: u64, number: u32) {
        self.handle(id, ViewMsgBody::Yes(number));
    }

    fn handle(&mut self, id: u64, yes: ViewMsgBody) {
        let (ix, said) = (self.at(id), &mut self.said);
        self.regs.handle_yes(&self.rules, ix, yes, |p, say| said.push((p.id.0, say)));
    }

    fn handle_no(&mut self, id: u64, echo: u32, at: u32) -> NoEffect {
        let ix = self.at(id);
        self.regs.handle_no(ix, echo, at)
    }

    fn said(&mut self) -> Vec<(u64, ViewMsgBody)> {
        std::mem::take(&mut self.said)
    }

    /// The registers mine, his, seen and owed of a peer.
    fn registers(&self, id: u64) -> (u32, u32, u32, bool) {
        let s = self.regs.state(self.at(id), Tick(0));
        (s.my_yes, s.their_yes, s.seen, s.their_turn)
    }

    fn links(&self) -> Vec<u64> {
        self.regs.entries().filter(|(_, p)| p.linked()).map(|(w, _)| w.id.0).collect()
    }
}

fn no(echo: u32, at: u32) -> ViewMsgBody {
    ViewMsgBody::No { echo, at }
}

#[test]
fn a_yes_is_answered_by_a_yes_while_there_is_room() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.handle_yes(2, 7);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(1))]);
    assert_eq!(t.registers(2), (1, 7, 7, false));
    assert_eq!(t.links(), [2]);
}

#[test]
fn a_yes_from_an_asked_peer_makes_a_link_without_a_message() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(1))]);
    t.handle_yes(2, 3);
    assert_eq!(t.said(), []);
    assert_eq!(t.links(), [2]);
}

#[test]
fn a_nearer_peer_replaces_the_worst_link_which_is_told_first() {
    let mut t = Table::new(2, &[(2, 300), (3, 200), (4, 100)]);
    t.handle_yes(2, 5);
    t.handle_yes(3, 1);
    t.said();
    t.handle_yes(4, 9);
    assert_eq!(t.said(), [(2, no(5, 2)), (4, ViewMsgBody::Yes(3))]);
    assert_eq!(t.links(), [3, 4]);
    assert_eq!(t.registers(2), (0, 0, 5, false));
}

#[test]
fn a_farther_peer_is_refused_with_the_number_of_its_yes() {
    let mut t = Table::new(1, &[(2, 100), (3, 200)]);
    t.handle_yes(2, 1);
    t.said();
    t.handle_yes(3, 6);
    assert_eq!(t.said(), [(3, no(6, 1))]);
    assert_eq!(t.links(), [2]);
    assert_eq!(t.registers(3), (0, 0, 6, false));
}

#[test]
fn at_equal_distance_the_smaller_ids_win() {
    let mut t = Table::new(1, &[(3, 100), (2, 100), (4, 100)]);
    t.handle_yes(3, 1);
    t.said();
    t.handle_yes(4, 1);
    t.handle_yes(2, 1);
    assert_eq!(t.said(), [(4, no(1, 1)), (3, no(1, 1)), (2, ViewMsgBody::Yes(2))]);
    assert_eq!(t.links(), [2]);
}

#[test]
fn a_request_reserves_its_place() {
    let mut t = Table::new(1, &[(2, 100), (3, 200)]);
    t.ask(2);
    t.said();
    t.handle_yes(3, 4);
    assert_eq!(t.said(), [(3, no(4, 1))]);
    assert_eq!(t.registers(2), (1, 0, 0, false));
}

#[test]
fn a_better_link_withdraws_requests_that_it_makes_hopeless() {
    let mut t = Table::new(2, &[(2, 300), (3, 200), (4, 100)]);
    t.ask(2);
    t.ask(3);
    t.said();
    t.handle_yes(4, 1);
    assert_eq!(t.said(), [(4, ViewMsgBody::Yes(3)), (2, no(0, 3))]);
    assert_eq!(t.registers(3), (2, 0, 0, false));
    assert_eq!(t.registers(2), (0, 0, 0, false));
}

#[test]
fn the_worst_request_is_still_wanted_when_its_yes_comes() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    t.said();
    assert_eq!(t.regs.threshold(&t.rules), t.regs.key(&t.rules, 0));
    t.handle_yes(2, 1);
    assert_eq!((t.said(), t.links()), (vec![], vec![2]));
}

#[test]
fn a_no_cancels_the_yes_that_it_names_and_its_sender_owes_the_next() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    assert_eq!(t.handle_no(2, 1, 0), NoEffect::Lost);
    assert_eq!(t.registers(2), (0, 0, 0, true));
}

#[test]
fn a_no_to_an_older_yes_leaves_the_newer_standing() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    t.refuse(2);
    t.ask(2);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(1)), (2, no(0, 1)), (2, ViewMsgBody::Yes(2))]);
    assert_eq!(t.handle_no(2, 1, 0), NoEffect::NothingLost);
    assert_eq!(t.registers(2), (2, 0, 0, false));
}

#[test]
fn a_no_ends_a_link_even_when_it_names_an_older_yes() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    t.handle_yes(2, 1);
    assert_eq!(t.handle_no(2, 0, 1), NoEffect::Lost);
    assert_eq!(t.registers(2), (1, 0, 1, false));
    assert!(t.links().is_empty());
}

#[test]
fn a_no_overtaken_by_a_newer_yes_does_not_cancel_that_yes() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    t.said();
    t.handle_yes(2, 5);
    assert_eq!(t.handle_no(2, 0, 4), NoEffect::NothingLost);
    assert_eq!(t.registers(2), (1, 5, 5, false));
    assert_eq!(t.handle_no(2, 1, 4), NoEffect::Overtaken);
    assert_eq!(t.registers(2), (0, 5, 5, false));
    let (rules, said) = (t.rules, &mut t.said);
    t.regs.answer(&rules, 0, 5, |p, say| said.push((p.id.0, say)));
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(2))]);
    assert_eq!(t.links(), [2]);
}

#[test]
fn a_yes_withdrawn_before_it_arrives_is_ignored() {
    let mut t = Table::new(1, &[(2, 100)]);
    assert_eq!(t.handle_no(2, 0, 3), NoEffect::NothingLost);
    t.handle_yes(2, 3);
    assert_eq!((t.said(), t.links()), (vec![], vec![]));
    t.handle_yes(2, 4);
    assert_eq!((t.said(), t.links()), (vec![(2, ViewMsgBody::Yes(1))], vec![2]));
}

#[test]
fn the_side_that_said_no_asks_again_and_owes_nothing_then() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.handle_yes(2, 1);
    t.refuse(2);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(1)), (2, no(1, 1))]);
    t.ask(2);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(2))]);
    assert_eq!(t.registers(2), (2, 0, 1, false));
}

#[test]
fn a_yes_clears_the_debt_of_the_side_that_said_no() {
    let mut t = Table::new(1, &[(2, 100)]);
    t.ask(2);
    t.handle_no(2, 1, 0);
    t.said();
    t.handle_yes(2, 1);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(2))]);
    assert_eq!(t.registers(2), (2, 1, 1, false));
}

#[test]
fn a_link_from_the_ticks_start_counts_as_nearer_by_the_margin() {
    let mut t = Table::new(1, &[(2, 200), (3, 101), (4, 99)]);
    t.rules.margin_cm = 100;
    t.handle_yes(2, 1);
    t.regs.keep_links();
    t.said();
    t.handle_yes(3, 1);
    assert_eq!(t.said(), [(3, no(1, 1))]);
    t.handle_yes(4, 1);
    assert_eq!(t.said(), [(2, no(1, 1)), (4, ViewMsgBody::Yes(2))]);
}

#[test]
fn a_new_link_has_no_margin_yet_and_a_lost_one_still_has_it() {
    let mut t = Table::new(1, &[(2, 200), (3, 150), (4, 110)]);
    t.rules.margin_cm = 100;
    t.handle_yes(2, 1);
    t.regs.keep_links();
    t.handle_no(2, 1, 1);
    t.handle_yes(3, 1);
    t.said();
    t.handle_yes(4, 1);
    assert_eq!(t.said(), [(3, no(1, 2)), (4, ViewMsgBody::Yes(3))], "3 is new and has no margin");
    t.handle_yes(2, 2);
    assert_eq!(
        t.said(),
        [(4, no(1, 3)), (2, ViewMsgBody::Yes(4))],
        "2 comes back as if it had never left"
    );
    t.regs.keep_links();
    t.handle_yes(4, 2);
    assert_eq!(t.said(), [(4, no(2, 4))], "now only 2 has the margin");
}

#[test]
fn a_bond_beats_every_distance() {
    let mut t = Table::new(1, &[(2, 1), (3, 90_000)]);
    t.regs.peers_mut()[1].class = 3;
    t.handle_yes(2, 1);
    t.said();
    t.handle_yes(3, 1);
    assert_eq!(t.said(), [(2, no(1, 1)), (3, ViewMsgBody::Yes(2))]);
}

#[test]
fn the_threshold_is_the_key_of_the_last_place_even_with_too_many_requests() {
    let mut t = Table::new(2, &[(2, 300), (3, 200), (4, 100)]);
    assert_eq!(t.regs.threshold(&t.rules), Key::WORST);
    [2, 3, 4].into_iter().for_each(|id| t.ask(id));
    let second = t.regs.key(&t.rules, 1);
    assert_eq!(t.regs.threshold(&t.rules), second);
}

#[test]
fn four_peers_share_a_cache_line() {
    assert_eq!((size_of::<Peer>(), size_of::<YesIds>()), (16, 16));
}

/// Found by simulation: a region had lost track of a neighbour's players for a while and asked them
/// again. They took the repetition as answered by what they had said before.
#[test]
fn a_linked_peer_that_asks_again_receives_only_the_yes_again() {
    let mut t = Table::new(4, &[(2, 100)]);
    t.ask(2);
    t.handle_yes(2, 7);
    assert_eq!(t.said(), [(2, ViewMsgBody::Yes(1))]);
    t.handle_yes(2, 9);
    assert_eq!(t.said(), [(2, ViewMsgBody::Again(1))]);
    assert_eq!(t.registers(2), (1, 9, 9, false));
    t.handle_yes(2, 9);
    assert_eq!(t.said(), []);
    // Its own side, even if it has forgotten that, and the answer to a YES that it has refused
    // since.
    t.handle(2, ViewMsgBody::Again(9));
    assert_eq!((t.said(), t.links()), (vec![], vec![2]));
    t.refuse(2);
    assert_eq!(t.said(), [(2, no(9, 1))]);
    t.handle(2, ViewMsgBody::Again(8));
    assert_eq!((t.said(), t.links()), (vec![], vec![]));
    t.handle(2, ViewMsgBody::Again(9));
    assert_eq!((t.said(), t.links()), (vec![(2, ViewMsgBody::Yes(2))], vec![2]));
    let mut other = Table::new(4, &[(2, 100)]);
    other.ask(2);
    other.handle_yes(2, 1);
    assert_eq!((other.links(), other.said()), (vec![2], vec![(2, ViewMsgBody::Yes(1))]));
}

/// A slot that was reassigned too early: no message may be sent in the name of its former entity.
#[test]
fn a_new_entity_in_a_slot_is_not_taken_for_the_old_one() {
    let mut t = Table::new(2, &[(2, 100), (3, 200)]);
    t.regs.peers_mut().iter_mut().zip([7, 8]).for_each(|(p, slot)| p.slot = slot);
    assert_eq!(t.regs.find_at(7, EntityId(2), false, u32::MAX), Some(0));
    assert_eq!(t.regs.find_at(7, EntityId(3), false, u32::MAX), Some(1));
    assert_eq!(t.regs.find_at(7, EntityId(9), false, u32::MAX), None);
}

#[test]
fn request_numbers_wrap_past_zero() {
    let mut t = Table::new(2, &[(2, 100)]);
    t.regs.counter = u32::MAX;
    let mut said = Vec::new();
    t.regs.ask(0, |_, say| said.push(say));
    assert_eq!(said, [ViewMsgBody::Yes(1)], "0 stands for no request");
}

proptest::proptest! {
    #[test]
    fn the_threshold_is_the_last_key_within_the_cap(
        others in proptest::collection::vec((0..50_u32, proptest::prelude::any::<bool>()), 0..12),
        cap in 0..14_usize,
    ) {
        let known: Vec<_> = (2..).zip(&others).map(|(id, (dist_cm, _))| (id, *dist_cm)).collect();
        let mut table = Table::new(cap, &known);
        (2..).zip(&others).filter(|(_, (_, asks))| *asks).for_each(|(id, _)| table.ask(id));
        let (rules, regs) = (table.rules, &table.regs);
        let said = (0..regs.peers().len()).filter(|ix| regs.peers()[*ix].said());
        let mut keys: Vec<_> = said.map(|ix| regs.key(&rules, ix)).collect();
        keys.sort();
        let threshold = regs.threshold(&rules);
        match cap.checked_sub(1) {
            Some(last) => assert_eq!(threshold, *keys.get(last).unwrap_or(&Key::WORST)),
            // Nobody is better.
            None => assert!(keys.iter().all(|key| *key >= threshold)),
        }
    }
}
