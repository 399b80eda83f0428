//! A region without a world: what it is told, how it is restored, and what it sends.

use std::sync::Arc;

use purview::scene::messages::{
    BorderRoundBatch, Claim, Claims, Effect, FrameBatch, GhostState, Handoff, Input, Notice, Order,
    Spawn,
};
use purview::scene::region::{Recovery, RegionSnapshot};
use purview::scene::{EntityId, Epoch, Kind, Pos, Region, RegionId, Scene, Seq, SessionId, Tick};

pub fn enter(id: EntityId, session: SessionId, pos: Pos) -> Input {
    let player = Spawn::new(id, Kind::PLAYER, pos);
    Input::Enter(Box::new(Spawn { session: Some(session), ..player }))
}

pub fn ordered(id: EntityId, session: SessionId, seq: u32, order: Order) -> Input {
    Input::Client { id, session, seq: Seq(seq), order, handle: Default::default() }
}

/// What a region knows in its tick `tick`: an answer to the owner of an epoch, if it gives one.
pub fn claims(
    from: RegionId,
    answer: Option<Epoch>,
    tick: u64,
    lives: Vec<Claim>,
    handed: Vec<Handoff>,
) -> Input {
    Input::Claims(Box::new(Claims { from, answer, tick: Tick(tick), lives, handed }))
}

/// The checkpoint of a region of which nothing is known, under epoch 8.
pub fn nothing_of(scene: &Scene, id: RegionId) -> RegionSnapshot {
    RegionSnapshot::nothing(scene.id, id, Epoch(8))
}

/// The region of a checkpoint goes on under epoch 9; and what it sends at once.
pub fn recover(
    scene: &Arc<Scene>,
    kept: RegionSnapshot,
    ask: &[RegionId],
    grace_ticks: u64,
) -> (Region, Vec<Effect>) {
    let (id, mut fx) = (kept.region(), Vec::new());
    let how = Recovery { ask: ask.to_vec(), grace_ticks, owners: Vec::new() };
    let region = Region::recover(scene.clone(), id, Epoch(9), kept, how, &mut fx);
    (region.expect("it fits"), fx)
}

/// An effect that is a message of one region to another.
pub fn message_of(effect: Effect) -> Result<(RegionId, Input), Box<Effect>> {
    Ok(match effect {
        Effect::Border(to, batch) => (to, Input::Border(batch)),
        Effect::BorderRound(to, batch) => (to, Input::BorderRound(batch)),
        Effect::View(to, msg) => (to, Input::View(msg)),
        Effect::Handoff(to, handoff) => (to, Input::Handoff(handoff)),
        Effect::Forward(to, input) => (to, *input),
        other => return Err(Box::new(other)),
    })
}

/// What is sent on to a region as it is.
pub fn forwarded(to: RegionId, fx: &[Effect]) -> Vec<Input> {
    let inputs = fx.iter().filter_map(|effect| match effect {
        Effect::Forward(region, input) if *region == to => Some((**input).clone()),
        _ => None,
    });
    inputs.collect()
}

/// Each message of this kind for a region.
pub fn claims_for(to: RegionId, fx: &[Effect]) -> Vec<Claims> {
    let claims = forwarded(to, fx).into_iter().filter_map(|input| match input {
        Input::Claims(claims) => Some(*claims),
        _ => None,
    });
    claims.collect()
}

pub fn frames(fx: &[Effect]) -> Vec<&FrameBatch> {
    let batches = fx.iter().filter_map(|effect| match effect {
        Effect::Frames(batch) => Some(batch),
        _ => None,
    });
    batches.collect()
}

/// That a neighbour's round of a tick is over, with these thresholds of its players.
pub fn settled(from: RegionId, tick: Tick, thresholds: Vec<(EntityId, u64)>) -> Input {
    Input::BorderRound(Box::new(BorderRoundBatch {
        from,
        epoch: Epoch(1),
        tick,
        round: 0,
        done: true,
        view_messages: Vec::new(),
        recovers: !thresholds.is_empty(),
        thresholds,
    }))
}

/// The ghost of an entity of a neighbour, which accepts everybody.
pub fn ghost(id: EntityId, kind: Kind, pos: Pos) -> GhostState {
    let (epoch, threshold) = (Epoch(1), u64::MAX);
    GhostState { id, epoch, kind, pos, threshold, ..GhostState::default() }
}

/// The notices for a session.
pub fn notices_for(to: SessionId, fx: &[Effect]) -> Vec<Notice> {
    let notices = fx.iter().filter_map(|effect| match effect {
        Effect::Notice(session, notice) if *session == to => Some(notice.clone()),
        _ => None,
    });
    notices.collect()
}

/// The entities that are handed over, and to whom.
pub fn handoffs(fx: &[Effect]) -> Vec<(RegionId, Handoff)> {
    let handed = fx.iter().filter_map(|effect| match effect {
        Effect::Handoff(to, handoff) => Some((*to, (**handoff).clone())),
        _ => None,
    });
    handed.collect()
}
