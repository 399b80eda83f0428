//! Judges one tick.

use purview::scene::{EntityId, Seq};
use rustc_hash::FxHashMap;

use super::apply::{self, Scope};
use super::findings::Fault;
use super::player::{NO_SLOT, Player};
use super::track::{Track, TrackPoint};
use super::{ASYMMETRY_TICKS, FLICKER_TICKS, LAG_TICKS_MAX, Oracle, SLACK_TICKS, Sent, pairs};

impl Oracle {
    /// Judges tick `t`: first the true positions, then every view, then every pair.
    pub(super) fn judge(&mut self, t: u64) {
        self.judged = true;
        self.log.findings.ticks += 1;
        for slot in 0..self.players.len() as u32 {
            self.let_go(slot, t);
        }
        for slot in 0..self.players.len() as u32 {
            self.learn_truth(slot, t);
        }
        for track in &mut self.tracks {
            track.review(t, self.options.mirror_ticks);
        }
        self.read_frames(t);
        self.check_entries(t);
        self.check_alone(t);
        self.check_lists(t);
        pairs::check(self, t);
        self.acts.resolve(t, &self.options, &self.players, &self.tracks, &mut self.log);
    }

    /// Frees the slot of a player that has left by tick `t`.
    fn let_go(&mut self, slot: u32, t: u64) {
        let gone = self.players[slot as usize].as_ref().is_some_and(|p| match p.left_at {
            Some(left) => left <= t,
            None => false,
        });
        if !gone {
            return;
        }
        self.resolve_inputs(slot);
        let Some(player) = self.players[slot as usize].take() else { return };
        if !player.vanished {
            self.dead.insert(player.id, player.left_at.unwrap_or(t));
        }
        self.by_id.remove(&player.id);
        self.by_client.remove(&player.client);
        self.acts.forget(player.id);
        self.tracks[slot as usize] = Track::default();
        self.free.push(slot);
    }

    /// Counts inputs that were not acknowledged by a client's last frame or before its leave, although they were due.
    pub(super) fn resolve_inputs(&mut self, slot: u32) {
        let Some(player) = self.players[slot as usize].as_ref() else { return };
        let left = player.left_at.filter(|_| !player.vanished);
        let (client, last) = (player.client, player.last_frame.max(left).unwrap_or(0));
        for input in &player.pending {
            if input.at + self.options.ack_ticks <= last {
                let (seq, at) = (input.seq, input.at);
                self.log.fault(Fault::Lost, last, || {
                    format!("client {client}: input {seq}, sent at tick {at}, never acknowledged")
                });
            }
        }
        if let Some((first, last)) = player.epochs {
            // A new incarnation after a crash is no handoff.
            self.log.findings.handoffs += last.in_life().saturating_sub(first.in_life());
        }
    }

    /// Takes the joins and frames of a player up to tick `t`, and finds its true position.
    fn learn_truth(&mut self, slot: u32, t: u64) {
        let Some(mut player) = self.players[slot as usize].take() else { return };
        if player.is_live(t) {
            self.log.findings.calm.player_ticks += 1;
            while player.joins.front().is_some_and(|j| j.tick.0.max(player.from) <= t) {
                let Some(joined) = player.joins.pop_front() else { break };
                let place = self.place(&joined);
                let track = &mut self.tracks[slot as usize];
                if track.id == joined.id {
                    track.arrive(place, joined.rules, joined.pos, t);
                } else {
                    *track = Track::new(joined.id, place, joined.rules, joined.pos, t);
                }
                track.follow(joined.own.as_ref());
            }
            while player.inbox.front().is_some_and(|f| f.tick.0 <= t) {
                player.now.extend(player.inbox.pop_front().map(|f| *f));
            }
            self.receive_acks(slot, &mut player, t);
            self.tracks[slot as usize].walk_on(t);
            let has_frame = player.now.last().is_some_and(|f| f.tick.0 == t);
            if !has_frame {
                self.tracks[slot as usize].held_at = Some(t);
                self.log.findings.frames_missing += 1;
                self.note_silence(&mut player, t);
            }
        }
        self.players[slot as usize] = Some(player);
    }

    fn note_silence(&mut self, player: &mut Player, t: u64) {
        let behind = player.received < t;
        if behind && !player.silent {
            let (client, lag) = (player.client, LAG_TICKS_MAX);
            self.log.fault(Fault::Lost, t, || format!("client {client}: no frame for {lag} ticks"));
        }
        player.silent = behind;
    }

    /// Applies the acknowledged inputs of a player to its true position.
    fn receive_acks(&mut self, slot: u32, player: &mut Player, t: u64) {
        for i in 0..player.now.len() {
            let frame = &player.now[i];
            let (ack, epoch) = (frame.ack, frame.epoch);
            let first = player.epochs.map_or(epoch, |(first, _)| first);
            player.epochs = Some((first, epoch));
            for refused in &frame.refused {
                player.pending.retain(|p| p.seq != refused.seq);
                self.log.findings.refused += 1;
            }
            if ack < player.ack || ack > player.sent_last {
                let (client, before, sent) = (player.client, player.ack, player.sent_last);
                self.log.fault(Fault::Lost, t, || {
                    format!("client {client}: {ack} acknowledged after {before}; sent up to {sent}")
                });
            }
            player.ack = player.ack.max(ack.min(player.sent_last));
            self.apply_inputs(slot, player, ack, t);
            if let Some(own) = &player.now[i].own {
                self.tracks[slot as usize].follow(Some(own));
            }
        }
    }

    fn apply_inputs(&mut self, slot: u32, player: &mut Player, ack: Seq, t: u64) {
        while player.pending.front().is_some_and(|p| p.seq <= ack) {
            let Some(input) = player.pending.pop_front() else { break };
            match input.what {
                Sent::Move(pos) => self.tracks[slot as usize].stand(pos, t),
                Sent::Teleport { scene, plane, pos } => {
                    let to = self.destination(slot, scene, plane);
                    let track = &mut self.tracks[slot as usize];
                    if to != track.place {
                        // The next `Joined` of the player says where it is.
                        track.place = None;
                    }
                    // The same frame, or the next `Joined`, says where the player walks.
                    track.follow(None);
                    track.teleport(pos, t);
                }
                Sent::Other => {}
                Sent::Act(digest) if !input.told => {
                    self.acts.done(player.id, (digest, input.seq), t);
                }
                Sent::Act(_) => {}
            }
        }
    }

    /// The position after a teleport; `None` if its `Joined` must tell.
    fn destination(
        &mut self,
        slot: u32,
        scene: Option<String>,
        plane: Option<purview::scene::Plane>,
    ) -> Option<TrackPoint> {
        let now = self.tracks[slot as usize].place?;
        let scene = scene.map_or(now.scene, |name| self.scene(&name));
        match plane {
            Some(plane) => Some(TrackPoint { scene, plane }),
            None if scene == now.scene => Some(now),
            None => None,
        }
    }

    fn read_frames(&mut self, t: u64) {
        for slot in 0..self.players.len() {
            let Some(mut player) = self.players[slot].take() else { continue };
            let frames = std::mem::take(&mut player.now);
            apply::walk_on(&mut player, &self.tracks[slot].rules, t);
            let mut scope = Scope {
                t,
                me: &self.tracks[slot],
                tracks: &self.tracks,
                by_id: &self.by_id,
                players: &mut self.players,
                waiting: &self.waiting,
                acts: &mut self.acts,
                log: &mut self.log,
                options: &self.options,
            };
            apply::measure(&player, &mut scope);
            for frame in &frames {
                apply::frame(&mut player, frame, &mut scope);
            }
            self.players[slot] = Some(player);
        }
    }

    /// Checks every entity in a view: in range, fresh, updated in time.
    fn check_entries(&mut self, t: u64) {
        for (me, player) in self.tracks.iter().zip(&mut self.players) {
            let Some(player) = player.as_mut().filter(|p| p.is_live(t)) else { continue };
            if me.is_held(t) || me.place.is_none() {
                continue;
            }
            let client = player.client;
            for (id, entry) in &mut player.shown {
                if self.tracks.get(entry.slot as usize).is_none_or(|track| track.id != *id) {
                    entry.slot = self.by_id.get(id).copied().unwrap_or(NO_SLOT);
                }
                let other = self.tracks.get(entry.slot as usize).filter(|track| track.id == *id);
                let legal = match other {
                    Some(o) if o.is_held(t) || o.place.is_none() => {
                        entry.fresh = t;
                        continue;
                    }
                    Some(o) => me.may_see(o),
                    None => !self.dead.contains_key(id),
                };
                entry.extra = if legal { 0 } else { entry.extra + 1 };
                if entry.extra == SLACK_TICKS + 1 {
                    self.log.findings.updates.expected += 1;
                    let why = if other.is_some() { "out of range" } else { "gone" };
                    self.log
                        .fault(Fault::Extra, t, || format!("client {client}: shows {id}, {why}"));
                }
                match other {
                    Some(other) if legal => {
                        apply::check_fresh((client, *id), entry, (me, other), t, &mut self.log);
                    }
                    _ => (entry.fresh, entry.due) = (t, None),
                }
            }
        }
    }

    /// Records which client sees which, and checks that views are symmetric.
    fn check_alone(&mut self, t: u64) {
        self.shows.clear(self.players.len());
        for (slot, player) in self.players.iter().enumerate() {
            for (id, entry) in player.iter().flat_map(|p| &p.shown) {
                if self.tracks.get(entry.slot as usize).is_some_and(|track| track.id == *id) {
                    self.shows.set(slot, entry.slot as usize);
                }
            }
        }
        for (slot, player) in self.players.iter_mut().enumerate() {
            let Some(player) = player.as_mut().filter(|p| p.is_live(t)) else { continue };
            let me = &self.tracks[slot];
            for (id, entry) in &mut player.shown {
                let other = self.tracks.get(entry.slot as usize).filter(|track| track.id == *id);
                let Some(other) = other else { continue };
                if me.is_held(t) || other.is_held(t) || me.place.is_none() || other.place.is_none()
                {
                    continue;
                }
                let mutual = self.shows.has(entry.slot as usize, slot);
                entry.alone = if mutual { 0 } else { entry.alone.saturating_add(1) };
                if entry.alone == ASYMMETRY_TICKS + 1 {
                    let me = me.id;
                    self.log.fault(Fault::Asymmetric, t, || {
                        format!("{me} shows {id}, but {id} does not show {me}")
                    });
                }
            }
        }
    }

    /// Checks the length of lists, and forgets parted players that may meet again without flicker.
    fn check_lists(&mut self, t: u64) {
        let mut coming: FxHashMap<EntityId, usize> = FxHashMap::default();
        for (a, b) in self.waiting.keys() {
            for id in [a, b] {
                *coming.entry(*id).or_default() += 1;
            }
        }
        for (track, player) in self.tracks.iter_mut().zip(&mut self.players) {
            let Some(player) = player.as_mut().filter(|p| p.is_live(t)) else { continue };
            track.listed = player.listed();
            let cap = track.rules.view_cap as usize;
            // The server may have given places to players that are not shown yet.
            if track.listed + coming.get(&track.id).copied().unwrap_or(0) >= cap {
                track.full_at = Some(t);
            }
            player.over_cap = if track.listed > cap { player.over_cap + 1 } else { 0 };
            if player.over_cap == SLACK_TICKS + 1 {
                let (client, listed) = (player.client, track.listed);
                self.log.fault(Fault::Extra, t, || {
                    format!("client {client}: shows {listed} players; the cap is {cap}")
                });
            }
        }
        for (slot, player) in self.players.iter_mut().enumerate() {
            let Some(player) = player else { continue };
            let (me, tracks, by_id) = (&self.tracks[slot], &self.tracks, &self.by_id);
            player.parted.retain_mut(|parted| {
                let other = by_id.get(&parted.id).map(|&s| &tracks[s as usize]);
                let calm = |track: &Track| !track.was_full_since(t) && !track.is_held(t);
                parted.calm &= calm(me) && other.is_some_and(|o| me.is_near(o) && calm(o));
                t - parted.at < FLICKER_TICKS
            });
        }
    }
}
