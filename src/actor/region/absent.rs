//! Game logic sets bonds of players that do not play: in their records, one command after the other.
//!
//! The region claims the record for an entity that never lives, as a session does that joins, and frees it with the new
//! bonds. Where a session holds the record, or takes it over meanwhile, the command is tried again, and finds the player
//! in the world.

use std::collections::VecDeque;
use std::sync::Arc;

use actix::{Context, Handler, Message};

use super::RegionActor;
use crate::actor::player_store::{ClaimOver, Claimed, LastState, NotClaimed, PlayerStore};
use crate::scene::messages::{CommandError, CommandId, NamedBond};
use crate::scene::spec::BondSpec;
use crate::scene::views::MAX_KEPT;

/// Most commands that wait; the next ones are to come again.
const MAX_WAITING: usize = 4_096;

/// New bonds of an absent player.
#[derive(Debug)]
pub(super) struct AbsentBonds {
    pub id: CommandId,
    pub subject: Box<str>,
    pub bonds: Vec<NamedBond>,
}

/// What waits for the store; the first one is being changed.
pub(super) type Absent = VecDeque<AbsentBonds>;

/// The first command has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Kept(CommandId, Result<(), CommandError>);

impl Handler<Kept> for RegionActor {
    type Result = ();

    fn handle(&mut self, Kept(id, result): Kept, ctx: &mut Context<Self>) {
        self.absent.pop_front();
        if self.forwarder.is_none() {
            self.command_ended(id, result);
            self.change_first_absent();
            self.deliver();
            self.depart_if_asked(ctx);
        }
    }
}

impl RegionActor {
    /// Sets the bonds of a player that does not play.
    pub(super) fn keep_bonds(&mut self, absent: AbsentBonds) {
        if self.absent.iter().any(|waits| waits.id == absent.id) {
            return;
        }
        if self.absent.len() >= MAX_WAITING {
            return self.command_ended(absent.id, Err(CommandError::Busy));
        }
        self.absent.push_back(absent);
        if self.absent.len() == 1 {
            self.change_first_absent();
        }
    }

    fn change_first_absent(&mut self) {
        while let Some(AbsentBonds { id, subject, bonds }) = self.absent.front() {
            let id = *id;
            let store = self.directory.player_store().cloned();
            let scene = self.directory.scene(self.region.scene_id());
            let (Some(store), Some(scene), Some(me)) = (store, scene, self.me.clone()) else {
                self.absent.pop_front();
                self.command_ended(id, Err(CommandError::NoSubject));
                continue;
            };
            let Some(entity) = self.directory.new_entity() else {
                self.absent.pop_front();
                self.command_ended(id, Err(CommandError::Busy));
                continue;
            };
            let (subject, bonds) = (subject.clone(), bonds.clone());
            actix_rt::spawn(async move {
                let claimed = store.claim(&subject, entity, ClaimOver::Nobody).await;
                let result = match claimed {
                    Ok(Claimed { kept: Some(kept), .. }) => {
                        let bonds = merged(&scene.spec.bonds, bonds, &kept.place.bonds);
                        let last = LastState {
                            clock_ms: kept.clock_ms,
                            at: None,
                            properties: Vec::new(),
                            bonds: bonds.clone(),
                            declared: Vec::new(),
                        };
                        store.ended(entity, Some(last)).await;
                        has_bonds(&store, &subject, &bonds).await
                    }
                    Ok(Claimed { kept: None, .. }) => {
                        store.ended(entity, None).await;
                        Err(CommandError::NoSubject)
                    }
                    Err(NotClaimed::Held(_) | NotClaimed::Away(_)) => Err(CommandError::Busy),
                };
                me.do_send(Kept(id, result));
            });
            return;
        }
    }
}

/// Bonds of the scene's kinds are replaced, those of other kinds stay.
fn merged(scene: &BondSpec, new: Vec<NamedBond>, before: &[NamedBond]) -> Vec<NamedBond> {
    let others = before.iter().filter(|bond| scene.bond(bond).is_none()).cloned();
    new.into_iter().chain(others).take(MAX_KEPT).collect()
}

/// Whether a record has these bonds: a player may have begun to play before they were kept.
async fn has_bonds(
    store: &Arc<dyn PlayerStore>,
    subject: &str,
    bonds: &[NamedBond],
) -> Result<(), CommandError> {
    let kept = store.read(subject).await.ok().flatten();
    let has = kept.is_some_and(|kept| kept.place.bonds == bonds);
    has.then_some(()).ok_or(CommandError::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_of_kinds_that_the_scene_has_are_replaced() {
        let scene = BondSpec { kinds: vec!["party".into()], ..BondSpec::default() };
        let before = [NamedBond::new("party", 1), NamedBond::new("guild", 2)];
        let after = merged(&scene, vec![NamedBond::new("party", 3)], &before);
        assert_eq!(after, [NamedBond::new("party", 3), NamedBond::new("guild", 2)]);
        assert_eq!(merged(&scene, Vec::new(), &before), [NamedBond::new("guild", 2)]);
    }
}
