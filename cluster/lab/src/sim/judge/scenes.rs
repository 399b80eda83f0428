//! What must hold of scenes at rest: where players are there is all that the scene contains, and every region knows the
//! same relations of groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use purview::scene::views::GroupRelation;
use purview::scene::{EntityId, Plane, Region, RegionId, Scene, Tick};

use super::quiescence::FRESH;
use super::{Inner, Judge};

/// For how many ticks an order may be on its way to a region.
const ON_ITS_WAY: u64 = 30;

/// The relations of groups as each region knows them.
#[derive(Debug, Default)]
pub(super) struct Relations(BTreeMap<RegionId, (Tick, Vec<GroupRelation>)>);

impl Relations {
    pub fn note(&mut self, region: &Region) {
        self.0.insert(region.id(), (region.current_tick(), region.relations()));
    }

    /// A region of a scene that does not know an order that another one knows.
    fn differ(&self, scene: &Scene) -> Option<String> {
        let of = |region| Some((region, self.0.get(&region)?));
        let all: Vec<_> = scene.map.regions.iter().filter_map(|entry| of(entry.id)).collect();
        let since = all.iter().map(|(_, (tick, _))| tick.0).min()?.saturating_sub(ON_ITS_WAY);
        let known = |orders: &[GroupRelation]| -> BTreeSet<(u64, u64)> {
            let due = orders.iter().filter(|order| order.at.0 <= since);
            due.map(|order| (order.version, order.groups[0])).collect()
        };
        let tables: Vec<_> = all.iter().map(|(id, (_, orders))| (*id, known(orders))).collect();
        let every: BTreeSet<_> = tables.iter().flat_map(|(_, table)| table).copied().collect();
        tables.iter().find_map(|(region, table)| {
            let (version, group) = every.difference(table).next()?;
            Some(format!(
                "region {region} does not know order {version} of group {group}, which another region knows"
            ))
        })
    }
}

impl Inner {
    /// A content of ground where a player is that lives nowhere.
    fn missing_content(&self, scene: &Scene, now: Duration) -> Option<(EntityId, String)> {
        let contents = scene.contents();
        let lives = |id: &EntityId| {
            self.acting.get(id).is_some_and(|acting| now.saturating_sub(acting.at) <= FRESH)
        };
        let players = self.clients.keys().filter(|id| lives(id)).map(|id| &self.acting[id]);
        let here = players.filter(|acting| acting.scene == scene.id);
        let opened: BTreeSet<(RegionId, Plane)> =
            here.map(|acting| (acting.region, acting.player.plane)).collect();
        opened.into_iter().filter(|(_, plane)| *plane != Plane::LIMBO).find_map(|(region, plane)| {
            let rect = scene.map.get(region)?.rect;
            let mut own = contents.of(plane).filter(|(_, content)| rect.contains(content.pos));
            let (id, content) = own.find(|(id, _)| !lives(id))?;
            let text = format!(
                "{:?} of plane {plane:?}, {id}, lives nowhere, but a player is in its region {region}",
                content.name
            );
            Some((id, text))
        })
    }
}

impl Judge {
    /// What is wrong with scenes at rest: the entities concerned, and a text.
    pub fn scenes_not_at_rest(&self, scenes: &[Arc<Scene>]) -> Option<(Vec<EntityId>, String)> {
        let (inner, now) = (self.inner(), self.journal.now());
        scenes.iter().find_map(|scene| {
            let missing = inner.missing_content(scene, now).map(|(id, text)| (vec![id], text));
            // An order that reached only one of two owners of a region may be lost with it.
            let relations = || Some((Vec::new(), inner.relations.differ(scene)?));
            missing.or_else(|| inner.double_granted.is_empty().then(relations)?)
        })
    }
}
