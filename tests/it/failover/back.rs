//! Entities that are handed over again, or handed back, after a death: where they live on, and for
//! how long they wait.

use purview::scene::region::RegionSnapshot;

use super::*;

/// A region restored without a checkpoint, with no region to ask.
fn risen(w: &World, id: RegionId, epoch: Epoch, grace_ticks: u64) -> Region {
    let before = Epoch(epoch.0 - 1);
    let nothing = RegionSnapshot::nothing(w.scene.id, id, before);
    let how = Recovery { ask: Vec::new(), grace_ticks, owners: Vec::new() };
    Region::recover(w.scene.clone(), id, epoch, nothing, how, &mut Vec::new()).expect("it fits")
}

fn hands(from: RegionId, handed: Vec<Handoff>) -> Input {
    claims(from, None, 99, Vec::new(), handed)
}

/// The entities that a region hands to another one after a death.
fn handed_to(to: RegionId, fx: &[Effect]) -> Vec<Handoff> {
    claims_for(to, fx).into_iter().flat_map(|claims| claims.handed).collect()
}

/// Found by simulation: an owner in between had restored the player, had its session, and died
/// while it was cut off from all other processes. The next owner knew from an older checkpoint that
/// the player had been handed over. The region that had never heard of that restored the player
/// under a lower epoch than the player had had meanwhile.
#[test]
pub fn an_entity_handed_over_again_lives_on_where_the_lineage_is_later() {
    let (w, ..) = pair_of_players();
    let handoff = *a_handoff(&w, SessionId(5));
    let (id, later) = (handoff.state.id, Epoch(9));
    // The entities that `next` hands back, if an owner of the epoch `later` hands it the player
    // again.
    let gives_back = |mut next: Region, handoff: Handoff| {
        let news = Recovered { region: DEAD, epoch: later, map: 1, holds: Vec::new() };
        next.handle(Input::Recovered(Box::new(news)), &mut Vec::new());
        let mut fx = Vec::new();
        next.handle(hands(DEAD, vec![handoff]), &mut fx);
        (100..130).for_each(|n| next.tick(Tick(n), &mut fx));
        let takes = next.find(id).is_some() || next.counts().unclaimed > 0;
        (handed_to(DEAD, &fx), takes)
    };
    let older = || risen(&w, NEXT, Epoch(8), 300);
    let (back, takes) = gives_back(older(), handoff.clone());
    assert_eq!((back.as_slice(), takes), (&[handoff.clone()][..], false));
    assert_eq!(gives_back(risen(&w, NEXT, Epoch(10), 300), handoff.clone()), (Vec::new(), true));
    // A player of another scene cannot live on there.
    let scene = Some(purview::scene::SceneId(7));
    let elsewhere = Handoff { scene, teleported: true, ..handoff.clone() };
    assert_eq!(gives_back(older(), elsewhere), (Vec::new(), true));
    let mut knows = older();
    knows.handle(hands(RegionId(7), vec![handoff.clone()]), &mut Vec::new());
    assert_eq!(gives_back(knows, handoff), (Vec::new(), true), "the player has arrived");

    // Handed back, the player stays unclaimed until its client comes, and then has an epoch above
    // all that this region has given.
    let mut dead = risen(&w, DEAD, later, 300);
    dead.handle(hands(NEXT, back), &mut Vec::new());
    let mut fx = Vec::new();
    (100..130).for_each(|n| dead.tick(Tick(n), &mut fx));
    assert_eq!((dead.counts().unclaimed, handed_to(NEXT, &fx)), (1, Vec::new()));
    let resume = Resume { subject: Default::default(), ..resume_of(SessionId(6), id, DEAD, 1) };
    dead.handle(Input::Resume(resume), &mut fx);
    (130..150).for_each(|n| dead.tick(Tick(n), &mut fx));
    let goes_on = handoffs(&fx).into_iter().next();
    assert_eq!(goes_on.map(|(to, on)| (to, on.epoch >= later.of_birth())), Some((NEXT, true)));
}

/// Found by simulation: the player was handed back one tick before the region's grace period for
/// its players ended.
#[test]
fn a_player_handed_back_late_has_its_whole_grace_period() {
    const GRACE: u64 = 100;
    let (w, ..) = pair_of_players();
    let handoff = *a_handoff(&w, SessionId(5));
    let mut region = risen(&w, NEXT, Epoch(9), GRACE);
    let mut unclaimed_at = |ticks: std::ops::Range<u64>| {
        ticks.for_each(|n| region.tick(Tick(n), &mut Vec::new()));
        let unclaimed_at = region.counts().unclaimed;
        if unclaimed_at == 0 {
            region.handle(hands(DEAD, vec![handoff.clone()]), &mut Vec::new());
        }
        unclaimed_at
    };
    let (first, late) = (100, 100 + GRACE - 2);
    assert_eq!(unclaimed_at(first..late), 0, "the player is handed back now");
    assert_eq!(unclaimed_at(late..late + GRACE - 2), 1);
    assert_eq!(unclaimed_at(late + GRACE - 2..late + GRACE + 2), 0);
}

/// The store of checkpoints was unavailable for longer than handoff notes are normally kept.
fn handed_to_the_dead_long_ago(keeps: bool) -> (World, EntityId) {
    let (mut w, ..) = pair_of_players();
    let (beast, other) = (npc(&mut w, 3_300), npc(&mut w, 3_400));
    w.steps(2);
    later(&mut w);
    push(&mut w, NEXT, beast, 3_000);
    w.steps(3);
    assert_eq!(w.acting_region(beast), Some(DEAD));
    let checkpoint = w.tick;
    if keeps {
        w.regions.iter_mut().for_each(|region| region.keep_notes_since(Tick(checkpoint.0 - 10)));
    }
    w.steps(ESCROW_TICKS + 50);
    // Notes are dropped when newer ones arrive.
    push(&mut w, NEXT, other, 3_000);
    w.steps(3);
    die(&mut w, DEAD);
    (w, beast)
}

#[test]
fn notes_are_kept_for_as_long_as_the_oldest_checkpoint_needs_them() {
    let (w, beast) = handed_to_the_dead_long_ago(true);
    assert_eq!(w.acting_region(beast), Some(DEAD));
    let (w, beast) = handed_to_the_dead_long_ago(false);
    assert_eq!(w.acting_region(beast), None, "the checkpoint is older than recovery assumes");
}
