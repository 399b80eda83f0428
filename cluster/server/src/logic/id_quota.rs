//! How many blocks of entity ids the workers of a process may take. A process has 65,536 blocks: without a
//! limit one worker that asks again and again would leave none for players.

use std::time::Duration;

use parking_lot::Mutex;
use purview::actor::directory::Directory;
use purview::clock;
use purview::scene::EntityId;
use tokio::time::Instant;

pub const IDS: u64 = 1 << 16;

const AT_ONCE: u32 = 64;

const ONE_MORE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoIds {
    #[error("workers have taken {AT_ONCE} blocks of {IDS} ids of late: ask again in {} s", .0.as_secs() + 1)]
    TooOften(Duration),
    #[error("the process has used all of its ids for entities: start it anew")]
    None,
}

#[derive(Debug, Default)]
pub struct IdQuota(Mutex<Option<Taken>>);

#[derive(Debug, Clone, Copy)]
struct Taken {
    blocks: u32,
    at: Instant,
}

impl IdQuota {
    /// The first id of a new block of [`IDS`].
    ///
    /// # Errors
    /// [`NoIds`]; nothing was taken.
    pub fn take(&self, directory: &Directory) -> Result<EntityId, NoIds> {
        let (mut taken, now) = (self.0.lock(), clock::now());
        let Taken { blocks, at } = taken.unwrap_or(Taken { blocks: 0, at: now });
        let spare = (now.duration_since(at).as_secs() / ONE_MORE.as_secs()).min(blocks.into());
        let (blocks, at) = match blocks - spare as u32 {
            0 => (0, now),
            left => (left, at + ONE_MORE * spare as u32),
        };
        if blocks >= AT_ONCE {
            return Err(NoIds::TooOften((at + ONE_MORE).duration_since(now)));
        }
        let first = directory.new_entities(IDS).ok_or(NoIds::None)?;
        *taken = Some(Taken { blocks: blocks + 1, at });
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn workers_get_blocks_of_ids_no_faster_than_the_quota_has_them() {
        let (quota, directory) = (IdQuota::default(), Directory::new(Vec::new()));
        let firsts: Vec<u64> =
            (0..AT_ONCE).map(|_| quota.take(&directory).expect("a block").0).collect();
        assert!(firsts.windows(2).all(|pair| pair[1] - pair[0] == IDS), "blocks do not overlap");
        assert_eq!(quota.take(&directory), Err(NoIds::TooOften(ONE_MORE)));
        tokio::time::advance(ONE_MORE * 2).await;
        assert!(quota.take(&directory).is_ok() && quota.take(&directory).is_ok());
        assert!(matches!(quota.take(&directory), Err(NoIds::TooOften(_))));
        // A refusal uses no id.
        let next = directory.new_entity().expect("an id").0;
        assert_eq!(next, firsts[0] + u64::from(AT_ONCE + 2) * IDS);
    }

    #[test]
    fn a_process_without_ids_refuses_instead_of_using_those_of_the_next_process() {
        let directory = Directory::new(Vec::new());
        // The last number of a process is not used: the count stops there.
        let all = (1 << 32) - 1;
        assert_eq!(directory.new_entities(all - 2), Some(EntityId(1)));
        assert_eq!(IdQuota::default().take(&directory), Err(NoIds::None));
        assert_eq!(directory.new_entity(), Some(EntityId(all - 1)));
        assert_eq!((directory.new_entity(), directory.new_entities(2)), (None, None));
    }
}
