//! The game's logic inside a region's tick: what it is told, and what becomes of its commands.
//!
//! The tick calls [`Region::run_logic`] after inputs were applied and before positions become those of the tick, so
//! that what logic answers to an action is told in the same frame. Everything else of the region notes events
//! here. *Absent on purpose:* which game it is. A region without logic notes nothing.

mod apply;
mod by_subject;
mod commands;
mod draft;
mod each;
mod outbox;
mod search;

use std::collections::BTreeMap;
use std::fmt;

pub(super) use self::apply::Applied;
pub use self::commands::{Commands, Given, NewEntities, Terms};
pub use self::draft::Draft;
use self::outbox::is_entry;
pub use self::outbox::{Outbox, SavedOutbox};
use self::search::Searches;
use super::{Known, Region};
use crate::scene::messages::SentCommand;
use crate::scene::messages::UNANSWERED_TICKS;
use crate::scene::messages::{Asked, Asker, Command, CommandError, CommandId, CommandResult};
use crate::scene::messages::{Effect, EnterCause, Input, LeaveCause, LogicEvent, Mark};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, Kind, Tick};

/// The rules of a game, one value for each region.
///
/// The value has no state that must outlive it: when a region moves to another process, or dies, a new value is
/// made for it, whose first event is [`LogicEvent::Started`]. What must last belongs into properties. When a region
/// dies, its entities go on as they were in its last checkpoint: [`Region::durable_tick`] says up to which tick
/// nothing is undone any more.
///
/// A call is a part of the tick: it must be quick, and must not wait, read a clock or draw randomness except from
/// the tick and its own state, so that a simulation repeats. A call that panics ends the region's actor.
pub trait GameLogic: Send + Sync {
    /// Reads what has happened since the last call, in order, and gives commands, which are applied at once, in
    /// order. `region` answers questions about entities that are known here, ghosts too.
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands);

    /// The kinds of the entities for which [`GameLogic::each`] is called.
    fn kinds_of_each(&self) -> &[Kind] {
        &[]
    }

    /// The rules of one entity, for those that need no other entity's: called after [`GameLogic::tick`] for every
    /// entity of [`GameLogic::kinds_of_each`] that lives here, on several threads where the region has them
    /// ([`Region::set_workers`]). Its commands follow those of the tick, in the order of [`Region::residents`],
    /// whatever the number of threads. They have no numbers so far, and new entities no ids: what gives them
    /// returns 0.
    fn each(&self, _region: &Region, _entity: Known<'_>, _commands: &mut Commands) {}

    /// The tick is over: all that was commanded in it is done. What has happened since the call is
    /// [`Region::untold`], and is told in the next one.
    fn closed(&mut self, _region: &Region) {}

    /// Whether nothing waits for the logic. A region that a layout change has given up ends no sooner, but after
    /// 3,000 ticks at the latest.
    fn is_at_rest(&self) -> bool {
        true
    }

    /// A checkpoint is made, or the region moves to another process: what the value that is made there needs beside
    /// the region itself.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// The region goes on here: what [`GameLogic::save`] gave, if that was anything, and whether the region has
    /// moved; otherwise it goes on from a checkpoint. Called before the first tick.
    fn restore(&mut self, _saved: &[u8], _has_moved: bool) {}
}

/// The logic of a region, and what it is told next.
#[derive(Default)]
pub struct LogicHost {
    logic: Option<Box<dyn GameLogic>>,
    /// The logic is being called: there is one.
    called: bool,
    events: Vec<LogicEvent>,
    commands: Commands,
    /// Messages and orders for the scene that have not ended, and when they were given.
    sent: BTreeMap<u64, (Tick, Option<Asked>)>,
    searches: Searches,
    /// No other region exists.
    is_only_region: bool,
    /// See [`Region::durable_tick`]; `None`: nothing is ever undone.
    durable: Option<Tick>,
    /// From which checkpoint the region goes on, if it does.
    origin: Origin,
}

/// From where a region goes on.
#[derive(Debug, Default)]
struct Origin {
    /// The tick of the state, if later ones may be lost.
    lost_since: Option<Tick>,
    /// What the logic has kept where the region was before.
    saved: Vec<u8>,
}

impl fmt::Debug for LogicHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogicHost { events, .. } = self;
        f.debug_struct("LogicHost")
            .field("there", &self.is_there())
            .field("events", events)
            .finish()
    }
}

impl LogicHost {
    /// Whether there is any logic: otherwise nothing needs to be noted.
    pub fn is_there(&self) -> bool {
        self.logic.is_some() || self.called
    }

    /// See [`GameLogic::is_at_rest`].
    pub fn is_at_rest(&self) -> bool {
        let is_at_rest = self.logic.as_ref().is_none_or(|logic| logic.is_at_rest());
        is_at_rest || mutants::has(Mutant::ActsGivenUp)
    }

    /// Tells the logic something at its next call.
    pub fn note(&mut self, event: LogicEvent) {
        if self.is_there() {
            self.events.push(event);
        }
    }

    /// An entity lives here from now on.
    pub fn entered(&mut self, id: EntityId, cause: EnterCause) {
        self.note(LogicEvent::Entered { id, cause });
    }

    /// A number of this tick, for an entry that no call gives.
    fn new_number(&mut self, now: Tick) -> u64 {
        self.commands.new_number(now)
    }

    /// A message, or an order for the scene, has come to an end.
    pub fn has_ended(&mut self, command: u64, result: Result<(), CommandError>) {
        if let Some((_, asked)) = self.sent.remove(&command) {
            self.note(match result {
                Ok(()) => LogicEvent::Done { command },
                Err(why) => LogicEvent::Refused { command, asked, why },
            });
        }
    }

    /// Gives up waiting for answers that are overdue.
    fn give_up_waiting(&mut self, now: Tick) {
        let overdue = |at: Tick| at.0 + UNANSWERED_TICKS <= now.0;
        while let Some((number, _)) = self.sent.first_key_value().filter(|(_, s)| overdue(s.0)) {
            self.has_ended(*number, Err(CommandError::Unanswered));
        }
    }
}

impl Region {
    /// Gives the region its logic, which is called from the next tick on. Entities that it creates have ids of
    /// `ids`.
    pub fn set_logic(&mut self, mut logic: Box<dyn GameLogic>, ids: NewEntities) {
        let Origin { lost_since, saved } = std::mem::take(&mut self.logic.origin);
        if !saved.is_empty() {
            logic.restore(&saved, lost_since.is_none());
        }
        let (region, epoch) = (self.identity.id(), self.identity.epoch());
        self.logic = LogicHost {
            logic: Some(logic),
            events: vec![LogicEvent::Started { region, epoch }],
            commands: Commands::new(ids),
            is_only_region: self.logic.is_only_region,
            durable: self.logic.durable,
            origin: Origin { lost_since, saved: Vec::new() },
            ..LogicHost::default()
        };
    }

    /// What the logic keeps for where the region goes on.
    pub(super) fn save_logic(&self) -> Vec<u8> {
        let untaken = || self.logic.origin.saved.clone();
        self.logic.logic.as_ref().map_or_else(untaken, |logic| logic.save())
    }

    /// The region goes on with what its logic had kept: from a checkpoint of this tick, or, if it has moved, with
    /// nothing lost.
    pub(super) fn set_origin(&mut self, lost_since: Option<Tick>, saved: Vec<u8>) {
        self.logic.origin = Origin { lost_since, saved };
    }

    /// The tick of the state from which the region began, if later states of it may be lost; `None`: it has
    /// moved, and nothing was lost.
    pub fn lost_since(&self) -> Option<Tick> {
        self.logic.origin.lost_since
    }

    /// Tells up to which tick everything is kept in checkpoints from which the region would go on. What was durable
    /// stays so.
    pub fn set_durable(&mut self, tick: Tick) {
        self.logic.durable = self.logic.durable.max(Some(tick));
    }

    /// What was so at the end of this tick stays so when processes die: the region would go on from a checkpoint
    /// of this tick or of a later one. An entity that came later is durable as of its coming. Where there are no
    /// checkpoints nothing is ever undone, and every tick is durable.
    pub fn durable_tick(&self) -> Tick {
        let durable = self.logic.durable.filter(|_| !mutants::has(Mutant::DurableAtOnce));
        durable.unwrap_or(self.clock.tick())
    }

    /// What the logic is told next: it has happened since the call of the last tick.
    pub fn untold(&self) -> &[LogicEvent] {
        &self.logic.events
    }

    /// The same region with logic.
    pub fn with_logic(mut self, logic: Box<dyn GameLogic>, ids: NewEntities) -> Region {
        self.set_logic(logic, ids);
        self
    }

    /// An entity does not live here any more.
    pub(super) fn note_left(&mut self, slot: u32, cause: LeaveCause) {
        if self.logic.is_there() {
            let (body, record) = (self.entities.body(slot), self.entities.record(slot));
            let (id, kind, place) = (body.id, body.kind, (record.plane, body.pos));
            self.logic.note(LogicEvent::Left { id, kind, place, cause });
        }
    }

    /// Calls the logic with what has happened since its last call, and applies its commands. A region that
    /// recovers does not act yet, and its logic waits.
    pub(super) fn run_logic(&mut self, fx: &mut Vec<Effect>) {
        if self.is_recovering() {
            return;
        }
        self.end_old_searches(fx);
        self.logic.give_up_waiting(self.clock.tick());
        self.try_early_entries(fx);
        self.tell_outcomes(fx);
        // A region that was given up rules what has happened there, and ends when its commands are done.
        let rules = !self.is_given_up() || self.counts.reals > 0 || !self.logic.is_at_rest();
        let Some(mut logic) = self.logic.logic.take_if(|_| rules) else {
            return self.send_entries(fx);
        };
        let mut events = std::mem::take(&mut self.logic.events);
        let mut commands = std::mem::take(&mut self.logic.commands);
        self.logic.called = true;
        commands.begin(self.clock.tick());
        logic.tick(self, &events, &mut commands);
        self.call_each(&*logic, &mut commands);
        events.clear();
        self.logic.events.append(&mut events);
        let given = commands.drain();
        // Entries that are renamed take numbers after those of the call.
        (self.logic.logic, self.logic.commands, self.logic.called) = (Some(logic), commands, false);
        let mut given = given.into_iter().peekable();
        while let Some(first) = given.next() {
            let others = std::iter::from_fn(|| given.next_if(|(_, given)| given.terms.together));
            self.apply_row(first, others.collect(), fx);
        }
        self.send_entries(fx);
        if mutants::has(Mutant::EventsLost) {
            self.logic.events.clear();
        }
    }

    /// Applies a command and those that are to be done together with it.
    fn apply_row(&mut self, first: (u64, Given), others: Vec<(u64, Given)>, fx: &mut Vec<Effect>) {
        let row = || std::iter::once(&first).chain(&others);
        let wrong =
            row().find_map(|(number, given)| Some((*number, self.is_as_told(given).err()?)));
        let mut is_refused = wrong.is_some();
        for (command, given) in std::iter::once(first).chain(others) {
            let asked = given.terms.asked;
            let result = match wrong {
                Some((number, why)) if number == command => Err(why),
                _ if is_refused && !mutants::has(Mutant::RowTorn) => Err(CommandError::NotTogether),
                _ => self.apply_given(command, given, fx),
            };
            is_refused |= result.is_err();
            if let Err(why) = result {
                self.logic.note(LogicEvent::Refused { command, asked, why });
            }
        }
    }

    fn apply_given(
        &mut self,
        number: u64,
        given: Given,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let Given { command, terms, .. } = &given;
        self.is_as_told(&given)?;
        if matches!(command, Command::OfSubject(..)) {
            return self.command_subject(number, given, fx);
        }
        // What a client was told cannot be undone: it is told at most once.
        let is_message = matches!(command, Command::Tell(..));
        if let Some(entity) = command.entity().filter(|_| !is_message) {
            return self.command_entity((entity, number), given, fx);
        }
        let (asked, from) = (terms.asked, Asker::Logic(self.identity.id(), self.identity.epoch()));
        let (id, command) = (CommandId { from, number }, given.command);
        match self.apply_command(SentCommand { id, command, searches: 0, after: None }, fx)? {
            Applied::Here => {}
            Applied::Sent => drop(self.logic.sent.insert(number, (self.clock.tick(), asked))),
        }
        Ok(())
    }

    /// The entity of a command lives here under the epoch that the command names, if it names one.
    fn is_as_told(&self, given: &Given) -> Result<(), CommandError> {
        let (Some(epoch), Some(id)) = (given.terms.epoch, given.command.entity()) else {
            return Ok(());
        };
        let slot = self.slot_to_command(id);
        let holds = slot.is_some_and(|slot| self.entities.record(slot).epoch == epoch);
        let holds = holds || mutants::has(Mutant::TermsIgnored);
        holds.then_some(()).ok_or(CommandError::NotAsTold(id))
    }

    /// Tells the logic that the tick is over.
    pub(super) fn close_logic(&mut self) {
        if self.is_recovering() {
            return;
        }
        let Some(mut logic) = self.logic.logic.take() else { return };
        logic.closed(self);
        self.logic.logic = Some(logic);
    }

    /// Tells whoever has given a command what has become of it.
    pub(super) fn answer_command(
        &mut self,
        id: CommandId,
        result: Result<(), CommandError>,
        fx: &mut Vec<Effect>,
    ) {
        let ended = CommandResult { id, result };
        match id.from {
            Asker::Logic(region, _) if region == self.identity.id() => self.take_result(ended),
            Asker::Logic(region, _) => {
                fx.push(Effect::Forward(region, Box::new(Input::CommandResult(ended))));
            }
            Asker::Process(process) => fx.push(Effect::Answer(process, ended)),
        }
    }

    /// The region goes on from a checkpoint. Commands that waited in it may have been applied or passed on since: they
    /// are not applied again.
    pub(super) fn refuse_old_commands(&mut self, fx: &mut Vec<Effect>) {
        let mut old = Vec::new();
        self.inbox.retain(|input| match input {
            Input::Command(sent) => {
                old.extend((!is_entry(input)).then_some(sent.id));
                false
            }
            _ => true,
        });
        for id in old {
            self.answer_command(id, Err(CommandError::Unanswered), fx);
        }
    }

    /// A command of this region's logic, or of an earlier logic of the region, has come to an end.
    pub(super) fn take_result(&mut self, CommandResult { id, result }: CommandResult) {
        let Asker::Logic(region, epoch) = id.from else { return };
        if region != self.identity.id() {
            return;
        }
        let is_entry = self.take_outcome(Mark { epoch, number: id.number }, result);
        if !is_entry && epoch == self.identity.epoch() {
            self.logic.has_ended(id.number, result);
        }
    }
}
