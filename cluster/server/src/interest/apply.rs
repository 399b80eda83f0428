//! Columns of a change, item by item, in a world.

use purview::interest::{Entity, World};
use purview::scene::Pos;

use super::convert::{self, Fault};
use super::proto::change::Change as Kind;
use super::proto::{Change, Create, Move, Reason, SetKind};

/// A refused item: its place in the columns, and its entity.
#[derive(Debug)]
pub struct Refused {
    pub item: usize,
    pub entity: u64,
    pub fault: Fault,
}

/// The number of items of a change.
pub fn items(change: &Change) -> usize {
    match &change.change {
        Some(Kind::Create(create)) => create.ids.len(),
        Some(Kind::Move(moves)) => moves.ids.len(),
        Some(kind) => ids(kind).len().max(1),
        None => 0,
    }
}

/// The ids of a change of entities.
fn ids(kind: &Kind) -> &[u64] {
    match kind {
        Kind::Create(Create { ids, .. }) | Kind::Move(Move { ids, .. }) => ids,
        Kind::Delete(of) => &of.ids,
        Kind::SetKind(of) => &of.ids,
        Kind::SetPlane(of) => &of.ids,
        Kind::SetReach(of) => &of.ids,
        Kind::SetObserved(of) => &of.ids,
        Kind::SetBond(of) => &of.ids,
        Kind::CreateScene(_) | Kind::DeleteScene(_) | Kind::Tick(_) => &[],
    }
}

/// Makes a change of entities. `room`: how many may be created. Refused items are added to a list.
///
/// # Errors
/// Why the whole change is refused.
pub fn apply(
    world: &mut World,
    kind: &Kind,
    room: usize,
    refused: &mut Vec<Refused>,
) -> Result<(), Fault> {
    match kind {
        Kind::Create(create) => return create_all(world, create, room, refused),
        Kind::Move(moves) => move_all(world, moves, refused),
        Kind::Delete(of) => each(&of.ids, refused, |_, id| Ok(world.delete(id)?)),
        Kind::SetKind(of) => set_kinds(world, of, refused),
        Kind::SetPlane(of) => {
            each(&of.ids, refused, |i, id| Ok(world.set_plane(id, at(&of.planes, i))?))
        }
        Kind::SetReach(of) => {
            let reach = of.reach.as_ref().map(convert::reach).transpose()?;
            each(&of.ids, refused, |_, id| Ok(world.set_reach(id, reach)?));
        }
        Kind::SetObserved(of) => {
            let kinds = convert::observed(of.observed.as_ref())?;
            each(&of.ids, refused, |_, id| Ok(world.set_kinds(id, kinds)?));
        }
        Kind::SetBond(of) => {
            let strength = u8::try_from(of.strength).unwrap_or(u8::MAX);
            each(&of.ids, refused, |i, id| Ok(world.set_bond(id, strength, at(&of.groups, i))?));
        }
        Kind::CreateScene(_) | Kind::DeleteScene(_) | Kind::Tick(_) => {}
    }
    Ok(())
}

/// An element of a column that may be empty.
#[inline]
fn at<T: Copy + Default>(column: &[T], i: usize) -> T {
    column.get(i).copied().unwrap_or_default()
}

fn each(
    ids: &[u64],
    refused: &mut Vec<Refused>,
    mut make: impl FnMut(usize, u64) -> Result<(), Fault>,
) {
    for (item, entity) in ids.iter().copied().enumerate() {
        if let Err(fault) = make(item, entity) {
            refused.push(Refused { item, entity, fault });
        }
    }
}

fn move_all(world: &mut World, Move { ids, x, y, z }: &Move, refused: &mut Vec<Refused>) {
    let places = x.iter().zip(z).enumerate().map(|(i, (x, z))| Pos { x: *x, y: at(y, i), z: *z });
    for (item, (id, pos)) in ids.iter().zip(places).enumerate() {
        if let Err(error) = world.move_to(*id, pos) {
            refused.push(Refused { item, entity: *id, fault: Fault::from(error) });
        }
    }
}

fn set_kinds(world: &mut World, of: &SetKind, refused: &mut Vec<Refused>) {
    each(&of.ids, refused, |i, id| Ok(world.set_kind(id, convert::kind(at(&of.kinds, i))?)?));
}

fn create_all(
    world: &mut World,
    of: &Create,
    room: usize,
    refused: &mut Vec<Refused>,
) -> Result<(), Fault> {
    let sight = convert::sight(of)?;
    let most = world.len().saturating_add(room);
    each(&of.ids, refused, |i, id| {
        if world.len() >= most {
            let text = format!("entity {id}: the service has as many entities as it may have");
            return Err(Fault::new(Reason::Full, text));
        }
        let pos = Pos { x: at(&of.x, i), y: at(&of.y, i), z: at(&of.z, i) };
        let (kind, plane) = (convert::kind(at(&of.kinds, i))?, at(&of.planes, i));
        Ok(world.create(Entity { id, kind, plane, pos, sight })?)
    });
    Ok(())
}
