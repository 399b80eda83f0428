//! Queries.

use super::super::convert::{self, Fault};
use super::super::draft::ChangeSource;
use super::super::job::{Job, Rest};
use super::super::proto::change::Change as Kind;
use super::super::proto::query::Query as Form;
use super::super::proto::{Answer, Query, Reason};
use super::{State, unknown};

pub(super) fn entity(kind: &Kind) -> Option<u64> {
    match kind {
        Kind::Query(Query { query: Some(Form::Sees(id) | Form::SeenBy(id)), .. }) => Some(*id),
        _ => None,
    }
}

impl State {
    pub(super) fn ask(&mut self, source: ChangeSource, query: &Query) -> Result<(), Fault> {
        let world = &self.scenes.get(&source.scene).ok_or_else(|| unknown(source.scene))?.world;
        let ids = |id: u64, ids: Option<Vec<u64>>| {
            let text = format!("no entity has the id {id}");
            Ok(Rest::Ids(ids.ok_or_else(|| Fault::new(Reason::UnknownEntity, text))?, 0))
        };
        let rest = match &query.query {
            None => Err(Fault::new(Reason::Query, "the query has no form")),
            Some(Form::Sees(id)) => ids(*id, world.sees(*id)),
            Some(Form::SeenBy(id)) => ids(*id, world.seen_by(*id)),
            Some(Form::Place(of)) => Ok(Rest::Places(world.find(&convert::place(of)?), 0)),
            Some(Form::Pairs(_)) => Ok(Rest::Pairs { from: Some(0), pairs: Vec::new(), told: 0 }),
        }?;
        let batch = source.change.map_or(0, |(batch, _)| batch);
        let answer = Answer { batch, scene: source.scene, query: query.id, ..Answer::default() };
        self.job = Some(Job::Answer { answer, rest });
        Ok(())
    }
}
