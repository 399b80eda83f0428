//! Private planes that logic has opened, and for which subjects. They belong to the scene, not to the worker that opened
//! them: they stay open when it dies, until a worker of the scene closes them.
//!
//! Every process has the whole table. The last change of a plane counts: a change has a higher version than all that its
//! process knew before, and of two changes with the same version that of the higher process counts. So tables that are
//! merged in any order, any number of times, are the same in the end. Versions follow the clock of the cluster, so that
//! a process sees which versions cannot be true.
//!
//! ```text
//!          open                close
//!   ──► Open ──► Open (others may come)    Closed ──► Open
//!                └──────────────────────────▲ │
//!                                             └► forgotten, if there are too many
//! ```
//!
//! *Absent on purpose:* locks, connections, time.

use std::collections::BTreeMap;
use std::hash::Hasher;

use purview::scene::{Plane, SceneId};
use purview::wire::peer::{PlaneNews, PlaneVersion};
use rustc_hash::FxHasher;

pub const MOST_OPEN: usize = 4_096;

const MOST_CLOSED: usize = 16_384;

/// Why a plane was not opened or closed. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaneError {
    #[error("the scene has {MOST_OPEN} private planes, as many as there may be")]
    Full,
    #[error("the plane is not open")]
    NotOpen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    version: PlaneVersion,
    /// Who may come, in order; `None`: it is closed.
    subjects: Option<Vec<String>>,
}

#[derive(Debug, Default)]
pub struct Planes {
    known: BTreeMap<(SceneId, Plane), Known>,
    highest: u64,
    /// Differs where two tables differ.
    digest: u64,
}

fn digest_of((scene, plane): (SceneId, Plane), version: PlaneVersion) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u16(scene.0);
    hasher.write_i32(plane.0);
    hasher.write_u64(version.count);
    hasher.write_u64(version.process);
    hasher.finish()
}

impl Planes {
    /// A plane is opened for these subjects and no others (`Some`), or closed, by a worker of a scene in this process.
    /// What other processes are to be told.
    pub fn set(
        &mut self,
        (scene, plane): (SceneId, Plane),
        subjects: Option<Vec<String>>,
        process: u64,
    ) -> Result<PlaneNews, PlaneError> {
        let is_open = self.is_open(scene, plane);
        match subjects {
            None if !is_open => return Err(PlaneError::NotOpen),
            Some(_) if !is_open && self.open(scene).count() >= MOST_OPEN => {
                return Err(PlaneError::Full);
            }
            _ => {}
        }
        let subjects = subjects.map(|mut subjects| {
            subjects.sort_unstable();
            subjects.dedup();
            subjects
        });
        let version = PlaneVersion { count: self.highest + 1, process };
        let news = PlaneNews { scene, plane, version, subjects };
        self.merge(news.clone());
        Ok(news)
    }

    /// The cluster's clock shows so many microseconds: a later change has a higher version.
    pub fn note_time(&mut self, now_us: u64) {
        self.highest = self.highest.max(now_us);
    }

    /// Takes what another process knows; whether it was new.
    pub fn merge(&mut self, news: PlaneNews) -> bool {
        let PlaneNews { scene, plane, version, subjects } = news;
        let name = (scene, plane);
        let before = self.known.get(&name).map(|known| known.version);
        if before.is_some_and(|before| before >= version) {
            return false;
        }
        self.highest = self.highest.max(version.count);
        self.digest ^= before.map_or(0, |before| digest_of(name, before));
        self.digest ^= digest_of(name, version);
        self.known.insert(name, Known { version, subjects });
        self.forget_closed();
        true
    }

    /// Forgets the plane whose closing is the oldest, if there are too many.
    fn forget_closed(&mut self) {
        if self.known.len() <= MOST_CLOSED + MOST_OPEN {
            return;
        }
        let closed = self.known.iter().filter(|(_, known)| known.subjects.is_none());
        let oldest = closed.min_by_key(|(_, known)| known.version).map(|(name, _)| *name);
        if let Some((name, known)) = oldest.and_then(|name| self.known.remove_entry(&name)) {
            self.digest ^= digest_of(name, known.version);
        }
    }

    fn is_open(&self, scene: SceneId, plane: Plane) -> bool {
        self.known.get(&(scene, plane)).is_some_and(|known| known.subjects.is_some())
    }

    pub fn opens(&self, scene: SceneId, plane: Plane, subject: &str) -> bool {
        let subjects = self.known.get(&(scene, plane)).and_then(|known| known.subjects.as_ref());
        let find = |all: &Vec<String>| all.binary_search_by(|known| (**known).cmp(subject)).is_ok();
        subjects.is_some_and(find)
    }

    /// The open planes of a scene, and who may come, in order.
    pub fn open(&self, scene: SceneId) -> impl Iterator<Item = (Plane, &[String])> {
        let of_scene = (scene, Plane(i32::MIN))..=(scene, Plane(i32::MAX));
        let open = |known: &(&(SceneId, Plane), &Known)| known.1.subjects.is_some();
        self.known
            .range(of_scene)
            .filter(open)
            .map(|((_, plane), known)| (*plane, known.subjects.as_deref().unwrap_or_default()))
    }

    /// All that is known, for another process.
    pub fn all(&self) -> impl Iterator<Item = PlaneNews> {
        self.known.iter().map(|((scene, plane), known)| PlaneNews {
            scene: *scene,
            plane: *plane,
            version: known.version,
            subjects: known.subjects.clone(),
        })
    }

    /// A number that differs where two tables differ.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: SceneId = SceneId(1);

    fn subjects(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_plane_is_open_for_its_subjects_until_it_is_closed() {
        let mut planes = Planes::default();
        let name = (SCENE, Plane(1_000));
        assert_eq!(planes.set(name, None, 1), Err(PlaneError::NotOpen));
        planes.set(name, subjects(&["bob", "ann", "ann"]), 1).unwrap();
        assert!(
            planes.opens(SCENE, Plane(1_000), "ann") && planes.opens(SCENE, Plane(1_000), "bob")
        );
        assert!(!planes.opens(SCENE, Plane(1_000), "cat") && !planes.opens(SCENE, Plane(1), "ann"));
        assert!(!planes.opens(SceneId(2), Plane(1_000), "ann"));
        let open: Vec<_> = planes.open(SCENE).map(|(plane, who)| (plane, who.len())).collect();
        assert_eq!(open, [(Plane(1_000), 2)]);
        planes.set(name, None, 1).unwrap();
        assert!(!planes.opens(SCENE, Plane(1_000), "ann") && planes.open(SCENE).next().is_none());
        assert_eq!(planes.set(name, None, 1), Err(PlaneError::NotOpen));
    }

    #[test]
    fn tables_that_hear_of_the_same_changes_in_any_order_are_the_same() {
        let (mut one, mut two) = (Planes::default(), Planes::default());
        let mut news = Vec::new();
        for n in 0..4 {
            news.push(one.set((SCENE, Plane(n)), subjects(&["ann"]), 1).unwrap());
            news.push(two.set((SCENE, Plane(n)), subjects(&["bob"]), 2).unwrap());
        }
        news.push(one.set((SCENE, Plane(2)), None, 1).unwrap());
        assert_ne!(one.digest(), two.digest());
        for change in news.iter().rev() {
            one.merge(change.clone());
        }
        for change in news.iter().chain(&news) {
            two.merge(change.clone());
        }
        assert!(news.iter().all(|change| !one.merge(change.clone())));
        assert_eq!(one.digest(), two.digest());
        assert_eq!(one.all().collect::<Vec<_>>(), two.all().collect::<Vec<_>>());
        // Of two changes at once that of the higher process counts; what came later counts more.
        assert!(one.opens(SCENE, Plane(0), "bob") && !one.opens(SCENE, Plane(0), "ann"));
        assert!(!one.opens(SCENE, Plane(2), "bob"), "it was closed later");
        let mut three = Planes::default();
        assert!(one.all().all(|change| three.merge(change)));
        assert_eq!(three.digest(), one.digest());
    }

    #[test]
    fn only_so_many_planes_are_open_and_only_so_many_closed_ones_are_known() {
        let mut planes = Planes::default();
        let last = i32::try_from(MOST_OPEN).unwrap();
        (0..last).for_each(|n| drop(planes.set((SCENE, Plane(n)), subjects(&["ann"]), 1).unwrap()));
        let one_more = planes.set((SCENE, Plane(last)), subjects(&["ann"]), 1);
        assert_eq!(one_more, Err(PlaneError::Full));
        assert!(planes.set((SceneId(2), Plane(last)), subjects(&["ann"]), 1).is_ok());
        let all = i32::try_from(MOST_CLOSED + MOST_OPEN).unwrap() + 10;
        for n in 0..all {
            let _was_open = planes.set((SCENE, Plane(n)), None, 1).is_ok();
            planes.set((SCENE, Plane(n)), subjects(&["bob"]), 1).unwrap();
            planes.set((SCENE, Plane(n)), None, 1).unwrap();
        }
        assert!(planes.known.len() <= MOST_CLOSED + MOST_OPEN);
        assert!(planes.opens(SceneId(2), Plane(last), "ann"), "what is open stays");
    }
}
