//! Players that negotiate by messages, in any order, come to the lists of the matcher.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::scene::views::{NoEffect, Registers, ViewMsgBody};
use crate::scene::{Tick, TickStamp};

/// A crowd whose players have registers, and the messages between each two, which arrive in order.
struct Talk {
    crowd: Crowd,
    registers: Vec<Registers>,
    lines: BTreeMap<(usize, usize), VecDeque<ViewMsgBody>>,
    /// Players that must look for better links.
    dirty: BTreeSet<usize>,
    /// Whether blank entries are dropped, as regions do.
    forgetful: bool,
}

impl Talk {
    fn new(crowd: Crowd, forgetful: bool) -> Talk {
        let registers =
            crowd.figures.iter().map(|f| Registers::new(EntityId(f.id)).capped(f.cap)).collect();
        Talk { crowd, registers, lines: BTreeMap::new(), dirty: BTreeSet::new(), forgetful }
    }

    fn number(&self, id: EntityId) -> usize {
        self.crowd.figures.iter().position(|f| EntityId(f.id) == id).unwrap()
    }

    /// The index of `other` among the peers of `me`, with its present distance. False: out of range.
    fn know(&mut self, me: usize, other: usize) -> (usize, bool) {
        let id = EntityId(self.crowd.figures[other].id);
        let registers = &mut self.registers[me];
        let at = registers.find(id).unwrap_or_else(|| registers.push(id, other as u32));
        let peer = &mut registers.peers_mut()[at];
        peer.dist_cm = dist_cm(self.crowd.d2(me, other));
        peer.class = self.crowd.class(me, other);
        let kept = peer.kept();
        (at, self.crowd.rank_of(me, other, kept).is_some())
    }

    fn post(&mut self, me: usize, said: Vec<(EntityId, ViewMsgBody)>) {
        for (to, say) in said {
            let to = self.number(to);
            self.lines.entry((me, to)).or_default().push_back(say);
        }
    }

    /// All players learn of the new positions: who is out of range gets a NO.
    fn begin_tick(&mut self, tick: u64) {
        for me in 0..self.registers.len() {
            self.registers[me].begin_tick(TickStamp::of(Tick(tick)));
            for other in (0..self.registers.len()).filter(|other| *other != me) {
                let (at, in_range) = self.know(me, other);
                if !in_range && self.registers[me].peers()[at].stands() {
                    let mut said = Vec::new();
                    self.registers[me].refuse(at, |to, say| said.push((to.id, say)));
                    self.post(me, said);
                }
            }
            self.dirty.insert(me);
        }
    }

    /// A player asks the best candidate that it would rather see than its worst link.
    fn appearance(&mut self, me: usize) {
        let mut best: Option<(Key, usize)> = None;
        for other in (0..self.registers.len()).filter(|other| *other != me) {
            let (at, in_range) = self.know(me, other);
            let (registers, rules) = (&self.registers[me], &self.crowd.rules);
            let (key, peer) = (registers.key(rules, at), &registers.peers()[at]);
            let open =
                in_range && !peer.said() && !peer.their_turn() && key < registers.threshold(rules);
            if open && best.is_none_or(|(least, _)| key < least) {
                best = Some((key, at));
            }
        }
        if let Some((_, at)) = best {
            let mut said = Vec::new();
            self.registers[me].ask(at, |to, say| said.push((to.id, say)));
            self.post(me, said);
            self.dirty.insert(me);
        }
        if self.forgetful {
            self.registers[me].retain(|peer| !peer.is_blank());
        }
    }

    fn receive(&mut self, from: usize, me: usize, say: ViewMsgBody) {
        let (at, in_range) = self.know(me, from);
        let rules = self.crowd.rules;
        let (registers, mut said) = (&mut self.registers[me], Vec::new());
        match say {
            ViewMsgBody::No { echo, at: sent } => {
                let my_yes = registers.yes_ids()[at].my_yes;
                let received = registers.handle_no(at, echo, sent);
                let left = if my_yes == echo { 0 } else { my_yes };
                assert_eq!(registers.yes_ids()[at].my_yes, left, "V3: NO({echo}) to YES({my_yes})");
                if received == NoEffect::Overtaken {
                    let standing = registers.yes_ids()[at].seen;
                    registers.answer(&rules, at, standing, |to, say| said.push((to.id, say)));
                }
                if received != NoEffect::NothingLost {
                    self.dirty.insert(me);
                }
            }
            ViewMsgBody::Yes(number) if !in_range => {
                registers.refuse_yes(at, number, |to, say| said.push((to.id, say)));
            }
            yes => registers.handle_yes(&rules, at, yes, |to, say| said.push((to.id, say))),
        }
        // A link that gave way leaves a place for nobody, a request that was withdrawn may.
        self.dirty.insert(me);
        self.post(me, said);
    }

    /// Delivers messages and lets players look, in an order that `choices` gives, until all is quiet.
    fn settle(&mut self, choices: &mut impl Iterator<Item = usize>) {
        for _ in 0..200_000 {
            let mut open: Vec<_> = self
                .lines
                .iter()
                .filter(|(_, line)| !line.is_empty())
                .map(|(pair, _)| *pair)
                .collect();
            open.extend(self.dirty.iter().map(|me| (*me, *me)));
            let Some(choice) = choices.next().filter(|_| !open.is_empty()) else { return };
            match open[choice % open.len()] {
                (me, same) if me == same => {
                    self.dirty.remove(&me);
                    self.appearance(me);
                }
                (from, to) => {
                    let say =
                        self.lines.get_mut(&(from, to)).and_then(VecDeque::pop_front).unwrap();
                    self.receive(from, to, say);
                }
            }
            self.check();
        }
        panic!("the players do not come to rest");
    }

    /// What holds after every step (DESIGN, "VIEWS"): lists have room for what is on them, and two players disagree
    /// only while a message between them is under way.
    fn check(&self) {
        let cap = self.crowd.rules.cap;
        for (me, registers) in self.registers.iter().enumerate() {
            assert!(registers.links() <= cap, "V2: {} links, room for {cap}", registers.links());
            for (yes_ids, _) in registers.entries().filter(|(_, peer)| peer.linked()) {
                let other = self.number(yes_ids.id);
                let theirs = &self.registers[other];
                let agree = theirs.find(registers.me).is_some_and(|at| theirs.peers()[at].linked());
                let waits = |pair| self.lines.get(&pair).is_some_and(|line| !line.is_empty());
                let is_under_way = waits((me, other)) || waits((other, me));
                assert!(agree || is_under_way, "V1: {me} and {other} disagree");
            }
        }
    }

    fn links(&self) -> BTreeSet<(usize, usize)> {
        let mut links = BTreeSet::new();
        for (me, registers) in self.registers.iter().enumerate() {
            for (yes_ids, peer) in registers.entries().filter(|(_, peer)| peer.linked()) {
                let other = self.number(yes_ids.id);
                let at = self.registers[other].find(registers.me).unwrap();
                assert!(self.registers[other].peers()[at].linked(), "{me} has {other}: {peer:?}");
                links.insert((me.min(other), me.max(other)));
            }
        }
        links
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn messages_in_any_order_come_to_the_lists_of_the_matcher(
        mut figures in (200..3_000, 1..100_i32).prop_flat_map(|(span, grain): (i32, i32)| figures(14, span, grain)),
        cap in 1..6_usize,
        margin_cm in prop_oneof![Just(0), 1..300_u32],
        enter_cm in prop::option::of(100..3_000_u32),
        steps in prop::collection::vec(
            prop::collection::vec((0..14_usize, (-300..300, -300..300)), 0..14), 1..5),
        seed in any::<u64>(),
    ) {
        figures.iter_mut().for_each(|f| f.ghost = None);
        let rules = ViewRules::new(cap, margin_cm);
        let crowd = Crowd { figures, rules, enter_cm, patch_cm: None };
        let mut talk = Talk::new(crowd, seed % 2 == 0);
        let mut state = seed;
        let mut choices = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        });
        let (mut matcher, mut links) = (Matcher::default(), BTreeSet::new());
        for (tick, step) in steps.iter().enumerate() {
            for (who, by) in step {
                let count = talk.crowd.figures.len();
                let at = &mut talk.crowd.figures[who % count].at;
                *at = (at.0 + by.0, at.1 + by.1);
            }
            talk.begin_tick(tick as u64 + 1);
            talk.settle(&mut choices);
            let matched = talk.crowd.matched(&mut matcher, &links);
            prop_assert_eq!(talk.links(), matched.clone());
            links = matched;
        }
    }
}
