//! Whether a batch is well formed: what can be said of it without looking at any scene.

use super::proto::change::Change as Kind;
use super::proto::{Batch, Create, Move, SetBond, SetKind, SetPlane};

/// Why a batch is malformed. None of its changes is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("batch {batch}, change {change}: its kind is missing or unknown to this service")]
    NoKind { batch: u64, change: usize },
    #[error(
        "batch {batch}, change {change}: {ids} ids and {found} elements of {column}; \
         columns must have equal lengths"
    )]
    Column {
        batch: u64,
        change: usize,
        /// Elements of the column of ids.
        ids: usize,
        column: &'static str,
        found: usize,
    },
}

struct Column {
    name: &'static str,
    len: usize,
    may_be_empty: bool,
}

fn full(name: &'static str, len: usize) -> Column {
    Column { name, len, may_be_empty: false }
}

fn optional(name: &'static str, len: usize) -> Column {
    Column { name, len, may_be_empty: true }
}

/// Checks all changes of a batch.
///
/// # Errors
/// The first fault.
pub fn check(batch: &Batch) -> Result<(), Malformed> {
    let number = batch.sequence;
    for (change, of) in batch.changes.iter().enumerate() {
        let no_kind = Malformed::NoKind { batch: number, change };
        let (ids, columns) = columns(of.change.as_ref().ok_or(no_kind)?);
        let differs = |c: &&Column| c.len != ids && !(c.may_be_empty && c.len == 0);
        if let Some(&Column { name: column, len: found, .. }) = columns.iter().find(differs) {
            return Err(Malformed::Column { batch: number, change, ids, column, found });
        }
    }
    Ok(())
}

/// The number of ids, and the columns that must fit.
fn columns(kind: &Kind) -> (usize, Vec<Column>) {
    match kind {
        Kind::Create(Create { ids, kinds, planes, x, y, z, .. }) => {
            let mut columns = place(x, y, z);
            columns.push(optional("kinds", kinds.len()));
            columns.push(optional("planes", planes.len()));
            (ids.len(), columns)
        }
        Kind::Move(Move { ids, x, y, z }) => (ids.len(), place(x, y, z)),
        Kind::SetKind(SetKind { ids, kinds }) => (ids.len(), vec![optional("kinds", kinds.len())]),
        Kind::SetPlane(SetPlane { ids, planes }) => {
            (ids.len(), vec![optional("planes", planes.len())])
        }
        Kind::SetBond(SetBond { ids, groups, .. }) => {
            (ids.len(), vec![optional("groups", groups.len())])
        }
        _ => (0, Vec::new()),
    }
}

fn place(x: &[i32], y: &[i32], z: &[i32]) -> Vec<Column> {
    vec![full("x", x.len()), optional("y", y.len()), full("z", z.len())]
}

#[cfg(test)]
mod tests {
    use super::super::proto::Change;
    use super::*;

    fn batch(kind: Option<Kind>) -> Batch {
        let tick = Some(Kind::Tick(super::super::proto::Tick {}));
        let change = |change| Change { scene: 1, change };
        Batch { sequence: 4, changes: vec![change(tick), change(kind)], received: 0 }
    }

    fn told(kind: Kind) -> Option<String> {
        check(&batch(Some(kind))).err().map(|error| error.to_string())
    }

    #[test]
    fn columns_must_fit_unless_they_may_be_empty() {
        let moved = |x: usize, y: usize, z: usize| {
            let column = |len| vec![0; len];
            told(Kind::Move(Move { ids: vec![0; 2], x: column(x), y: column(y), z: column(z) }))
        };
        assert_eq!([moved(2, 0, 2), moved(2, 2, 2)], [None, None]);
        let text = |found, column| {
            Some(format!(
                "batch 4, change 1: 2 ids and {found} elements of {column}; columns must have \
                 equal lengths"
            ))
        };
        assert_eq!(moved(0, 0, 2), text(0, "x"));
        assert_eq!(moved(2, 1, 2), text(1, "y"));
        assert_eq!(moved(2, 0, 3), text(3, "z"));
        let kinds = |kinds| told(Kind::SetKind(SetKind { ids: vec![1], kinds }));
        assert_eq!(
            [kinds(vec![]), kinds(vec![1]), kinds(vec![1, 1])],
            [None, None, {
                let text = "batch 4, change 1: 1 ids and 2 elements of kinds; columns must have equal \
                        lengths";
                Some(text.into())
            }]
        );
    }

    #[test]
    fn a_change_without_a_kind_is_malformed() {
        assert_eq!(check(&batch(None)), Err(Malformed::NoKind { batch: 4, change: 1 }));
    }
}
