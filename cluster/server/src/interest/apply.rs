//! Columns of a change, item by item, in a world. A change with many refused items is made in
//! parts.

use purview::interest::{Entity, World};
use purview::scene::Pos;

use super::convert::{self, Fault};
use super::proto::change::Change as Kind;
use super::proto::{Change, Create, Move, Reason};

const PART: usize = 1_000;

/// A refused item: its place in the columns, and its entity.
#[derive(Debug)]
pub struct RefusedItem {
    pub item: usize,
    pub entity: u64,
    pub fault: Fault,
}

#[derive(Debug, Clone, Copy)]
pub struct Growth {
    pub entities: usize,
    pub bytes: usize,
}

pub fn items(change: &Change) -> usize {
    match &change.change {
        Some(Kind::Create(create)) => create.ids.len(),
        Some(Kind::Move(moves)) => moves.ids.len(),
        Some(kind) => ids(kind).len().max(1),
        None => 0,
    }
}

fn ids(kind: &Kind) -> &[u64] {
    match kind {
        Kind::Create(Create { ids, .. }) | Kind::Move(Move { ids, .. }) => ids,
        Kind::Delete(of) => &of.ids,
        Kind::SetKind(of) => &of.ids,
        Kind::SetPlane(of) => &of.ids,
        Kind::SetReach(of) => &of.ids,
        Kind::SetObserved(of) => &of.ids,
        Kind::SetBond(of) => &of.ids,
        Kind::CreateScene(_) | Kind::DeleteScene(_) | Kind::Tick(_) | Kind::Query(_) => &[],
    }
}

/// Makes a change of entities, from an item on. Refused items are added to a list. Returns the next
/// item, or `None` after the last one.
///
/// # Errors
/// Why the whole change is refused.
pub fn apply(
    world: &mut World,
    kind: &Kind,
    (from, growth): (usize, Growth),
    refused: &mut Vec<RefusedItem>,
) -> Result<Option<usize>, Fault> {
    let all = Items { ids: ids(kind), from, refused };
    Ok(match kind {
        Kind::Create(create) => return create_all(world, create, growth, all),
        Kind::Move(moves) => move_all(world, moves, all),
        Kind::Delete(_) => all.each(|_, id| Ok(world.delete(id)?)),
        Kind::SetKind(of) => all.each(|i, id| {
            check_growth(world, growth)?;
            Ok(world.set_kind(id, convert::kind(at(&of.kinds, i))?)?)
        }),
        Kind::SetPlane(of) => all.each(|i, id| Ok(world.set_plane(id, at(&of.planes, i))?)),
        Kind::SetReach(of) => {
            let reach = of.reach.as_ref().map(convert::reach).transpose()?;
            check_growth(world, growth)?;
            all.each(|_, id| Ok(world.set_reach(id, reach)?))
        }
        Kind::SetObserved(of) => {
            let kinds = convert::observed(of.observed.as_ref())?;
            check_growth(world, growth)?;
            all.each(|_, id| Ok(world.set_kinds(id, kinds)?))
        }
        Kind::SetBond(of) => {
            let strength = u8::try_from(of.strength).unwrap_or(u8::MAX);
            all.each(|i, id| Ok(world.set_bond(id, strength, at(&of.groups, i))?))
        }
        Kind::CreateScene(_) | Kind::DeleteScene(_) | Kind::Tick(_) | Kind::Query(_) => None,
    })
}

/// Whether a world may take more bytes. `growth` is what it may become.
fn check_growth(world: &World, growth: Growth) -> Result<(), Fault> {
    if world.bytes() >= growth.bytes { Err(too_many_bytes()) } else { Ok(()) }
}

pub fn too_many_bytes() -> Fault {
    let text = "the session or the service has as many bytes as it may have \
                (--session-memory, --memory)";
    Fault::new(Reason::Full, text)
}

struct Items<'a> {
    ids: &'a [u64],
    from: usize,
    refused: &'a mut Vec<RefusedItem>,
}

impl Items<'_> {
    /// Makes the items; stops when many are refused.
    fn each(self, mut make: impl FnMut(usize, u64) -> Result<(), Fault>) -> Option<usize> {
        let Items { ids, from, refused } = self;
        for (item, entity) in ids.iter().copied().enumerate().skip(from) {
            if let Err(fault) = make(item, entity) {
                refused.push(RefusedItem { item, entity, fault });
                if refused.len() >= PART {
                    return Some(item + 1);
                }
            }
        }
        None
    }
}

/// An element of a column that may be empty.
#[inline]
fn at<T: Copy + Default>(column: &[T], i: usize) -> T {
    column.get(i).copied().unwrap_or_default()
}

fn move_all(world: &mut World, Move { x, y, z, .. }: &Move, all: Items) -> Option<usize> {
    all.each(|i, id| {
        let pos = Pos { x: at(x, i), y: at(y, i), z: at(z, i) };
        world.move_to(id, pos).map_err(Fault::from)
    })
}

fn create_all(
    world: &mut World,
    of: &Create,
    growth: Growth,
    all: Items,
) -> Result<Option<usize>, Fault> {
    let sight = convert::sight(of)?;
    Ok(all.each(|i, id| {
        if world.len() >= growth.entities {
            let text = format!("entity {id}: the service has as many entities as it may have");
            return Err(Fault::new(Reason::Full, text));
        }
        check_growth(world, growth)?;
        let pos = Pos { x: at(&of.x, i), y: at(&of.y, i), z: at(&of.z, i) };
        let (kind, plane) = (convert::kind(at(&of.kinds, i))?, at(&of.planes, i));
        Ok(world.create(Entity { id, kind, plane, pos, sight })?)
    }))
}
