//! Finds the region of an entity for which there is a command and that is not known here: every region of the scene is
//! asked, then all others, and the command goes to the one that has it. The others are the regions of the other scenes,
//! and those that a change of the layout makes or gives up just now. The player of a subject is found in the same way.
//!
//! Only the question goes to all regions, never the command: of two copies both could be applied when the entity
//! walks from one region to the other meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Region;
use super::apply::Applied;
use crate::scene::messages::{CommandError, Effect, Found, Input, Locate, SentCommand, Sought};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, RegionId, Tick};

/// For how many ticks answers are waited for.
const SEARCH_TICKS: u64 = 50;

/// Ticks between two questions to a region that has not answered: its owner may have died with the first one.
const ASK_AGAIN_TICKS: u64 = 5;

/// How often one command makes regions search.
const MAX_SEARCHES: u8 = 3;

/// Most entities that a region searches at a time.
const MAX_OPEN: usize = 1_024;

/// The entities that are searched.
#[derive(Debug, Default)]
pub struct Searches(BTreeMap<Sought, Search>);

/// Which regions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Those of the scene.
    Scene,
    /// All others are about to be.
    Between,
    /// All others.
    Others,
}

#[derive(Debug)]
struct Search {
    commands: Vec<SentCommand>,
    /// The regions of the scene that were asked first.
    first: BTreeSet<RegionId>,
    /// Regions that have not answered.
    silent: BTreeSet<RegionId>,
    /// Where the entity has gone, by a region that had it. That it has come here is believed last: a region that goes on
    /// from an older state has forgotten it.
    moved: Option<Found>,
    /// Which regions are asked.
    stage: Stage,
    since: Tick,
}

/// Asks regions whether an entity lives there.
fn ask((sought, by): (&Sought, RegionId), regions: &BTreeSet<RegionId>, fx: &mut Vec<Effect>) {
    let asked = Input::Locate(Locate::Asked { sought: sought.clone(), by });
    fx.extend(regions.iter().map(|to| Effect::Forward(*to, Box::new(asked.clone()))));
}

fn nobody(sought: &Sought) -> CommandError {
    match sought {
        Sought::Entity(id) => CommandError::Unknown(*id),
        Sought::Subject(_) => CommandError::NoSubject,
    }
}

impl Region {
    /// The commands that wait until it is known where their entities live, those for an entity in their order.
    pub(in crate::scene::region) fn searched_commands(&self) -> impl Iterator<Item = SentCommand> {
        self.logic.searches.0.values().flat_map(|search| search.commands.iter().cloned())
    }

    /// Whether commands for an entity wait until it is known where it lives. It may have come here meanwhile.
    pub fn is_searched(&self, id: EntityId) -> bool {
        self.logic.searches.0.contains_key(&Sought::Entity(id))
    }

    /// A command for an entity that is searched waits with those that were given before; else it is given back.
    pub(super) fn join_search(&mut self, sent: SentCommand) -> Option<SentCommand> {
        let sought = sent.command.sought();
        let search = sought.and_then(|sought| self.logic.searches.0.get_mut(&sought));
        let Some(search) = search else { return Some(sent) };
        if search.commands.iter().all(|waits| waits.id != sent.id) {
            search.commands.push(sent);
        }
        None
    }

    /// Keeps a command until it is known where its entity lives.
    pub(super) fn locate(
        &mut self,
        sought: Sought,
        sent: SentCommand,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        let here = self.identity.id();
        let regions = self.identity.scene().map.regions.iter().map(|region| region.id);
        let silent: BTreeSet<RegionId> = regions.filter(|region| *region != here).collect();
        if silent.is_empty() && self.logic.is_only_region {
            return self.is_nowhere(&sought, sent, fx);
        }
        let sent = SentCommand { searches: sent.searches.saturating_add(1), ..sent };
        let searches = &mut self.logic.searches.0;
        if sent.searches > MAX_SEARCHES || searches.len() >= MAX_OPEN {
            return Err(CommandError::Busy);
        }
        ask((&sought, here), &silent, fx);
        let stage = if silent.is_empty() { Stage::Between } else { Stage::Scene };
        if stage == Stage::Between {
            fx.push(Effect::Locate(sought.clone()));
        }
        let (commands, first, since) = (vec![sent], silent.clone(), self.clock.tick());
        let search = Search { commands, first, silent, moved: None, stage, since };
        searches.insert(sought, search);
        Ok(Applied::Sent)
    }

    /// The answer to [`Effect::Locate`]: an entity may live in any of these regions. Those that were asked first are
    /// left out, and regions that are no more are not waited for.
    pub fn search_elsewhere(
        &mut self,
        sought: &Sought,
        regions: impl IntoIterator<Item = RegionId>,
        fx: &mut Vec<Effect>,
    ) {
        let here = self.identity.id();
        let Some(search) = self.logic.searches.0.get_mut(sought) else { return };
        let others = regions.into_iter().filter(|region| *region != here);
        let others: BTreeSet<RegionId> =
            others.filter(|region| !search.first.contains(region)).collect();
        match search.stage {
            Stage::Scene => return,
            Stage::Between => search.silent = others,
            Stage::Others => search.silent.retain(|region| others.contains(region)),
        }
        search.stage = Stage::Others;
        ask((sought, here), &search.silent, fx);
        if search.silent.is_empty() {
            let moved = search.moved.ok_or(nobody(sought));
            self.end_search(sought, moved, fx);
        }
    }

    /// There is no other region anywhere: an entity that is not here is nowhere.
    pub(crate) fn set_only_region(&mut self) {
        self.logic.is_only_region = true;
    }

    /// Another region asks, or answers, where an entity lives.
    pub(in crate::scene::region) fn take_locate(&mut self, locate: Locate, fx: &mut Vec<Effect>) {
        match locate {
            Locate::Asked { sought, by } => {
                let lives = self.lives(&sought);
                let told = Locate::Told { sought, from: self.identity.id(), lives };
                fx.push(Effect::Forward(by, Box::new(Input::Locate(told))));
            }
            Locate::Told { sought, from, lives } => self.located(&sought, from, lives, fx),
        }
    }

    /// Where an entity lives as far as is known here.
    pub(super) fn lives(&self, sought: &Sought) -> Option<Found> {
        let id = match sought {
            Sought::Entity(id) => *id,
            Sought::Subject(subject) => self.player_of(subject)?,
        };
        let is_here = self.entities.real_slot(id).is_some() || self.expects(id);
        let region = match is_here || self.outbox.has_ended(id) {
            true => Some(self.identity.id()),
            // It may have gone a moment ago, and be on its way.
            false => self.whereabouts(id),
        };
        region.map(|region| Found { id, region })
    }

    fn located(
        &mut self,
        sought: &Sought,
        from: RegionId,
        lives: Option<Found>,
        fx: &mut Vec<Effect>,
    ) {
        let here = self.identity.id();
        let Some(search) = self.logic.searches.0.get_mut(sought) else { return };
        let is_awaited = search.silent.remove(&from);
        search.moved = search.moved.filter(|moved| moved.region != here).or(lives).or(search.moved);
        let found = lives.filter(|lives| lives.region == from);
        let end = match (found, search.moved) {
            (Some(found), _) => Ok(found),
            // A second answer says nothing of the regions that are about to be asked.
            _ if !is_awaited => return,
            _ if !search.silent.is_empty() && !mutants::has(Mutant::SearchedOnce) => return,
            (None, Some(moved)) if moved.region != here => Ok(moved),
            (None, _) if search.stage == Stage::Scene => {
                search.stage = Stage::Between;
                fx.push(Effect::Locate(sought.clone()));
                return;
            }
            (None, moved) => moved.ok_or(nobody(sought)),
        };
        self.end_search(sought, end, fx);
    }

    fn end_search(
        &mut self,
        sought: &Sought,
        end: Result<Found, CommandError>,
        fx: &mut Vec<Effect>,
    ) {
        let Some(search) = self.logic.searches.0.remove(sought) else { return };
        // It may have come here meanwhile.
        let here = self.identity.id();
        let end = end.or_else(|why| match self.lives(sought) {
            Some(found) if found.region == here => Ok(found),
            _ => Err(why),
        });
        for sent in search.commands {
            let id = sent.id;
            match (end, sought) {
                (Ok(found), Sought::Subject(_)) => self.found_player(found, sent, fx),
                // It comes here, or has come meanwhile.
                (Ok(found), _) if found.region == here => self.wait_for_entity(sent),
                (Ok(found), _) => {
                    let command = Input::Command(Box::new(sent));
                    fx.push(Effect::Forward(found.region, Box::new(command)));
                }
                (Err(CommandError::NoSubject), _) => {
                    if let Err(why) = self.is_nowhere(sought, sent, fx) {
                        self.answer_command(id, Err(why), fx);
                    }
                }
                (Err(why), _) => self.answer_command(id, Err(why), fx),
            }
        }
    }

    /// Asks silent regions again, and gives up searches to which not every region has answered in time.
    pub(super) fn end_old_searches(&mut self, fx: &mut Vec<Effect>) {
        let (here, now) = (self.identity.id(), self.clock.tick().0);
        for (sought, search) in &self.logic.searches.0 {
            let elapsed = now.saturating_sub(search.since.0);
            match search.stage {
                _ if elapsed == 0 || !elapsed.is_multiple_of(ASK_AGAIN_TICKS) => {}
                Stage::Scene => ask((sought, here), &search.silent, fx),
                Stage::Between | Stage::Others => fx.push(Effect::Locate(sought.clone())),
            }
        }
        let open = self.logic.searches.0.iter();
        let old = open.filter(|(_, search)| search.since.0 + SEARCH_TICKS <= now);
        let old: Vec<Sought> = old.map(|(sought, _)| sought.clone()).collect();
        for sought in old {
            self.end_search(&sought, Err(CommandError::Busy), fx);
        }
    }
}
