//! Measures the page with 600 entities in view, which walk and turn.

use std::sync::Arc;
use std::time::Duration;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{LogicEvent, Motion};
use purview::scene::movement::{Move, Vector};
use purview::scene::region::{Commands, Draft, GameLogic};
use purview::scene::{Kind, Plane, Pos, Region, RegionId, Scene, SceneSpec, Visibility};
use purview_demo::hunt::rules::{HP, MONSTER};
use serde_json::json;

use super::visitors::{enter, number};
use super::{server_with, small_meadow, url};
use crate::console::browser::{Screen, with_page};

const HERD: usize = 600;

/// Keeps a herd around the middle of the map; a tenth of it turns in each second.
#[derive(Debug, Clone, Default)]
struct Herd;

impl LogicFactory for Herd {
    fn make(&self, _: &Arc<Scene>, _: RegionId) -> Option<Box<dyn GameLogic>> {
        Some(Box::new(Herd))
    }
}

impl GameLogic for Herd {
    fn tick(&mut self, region: &Region, _: &[LogicEvent], commands: &mut Commands) {
        let draft = &mut Draft::new(region, commands);
        let (now, all) = (draft.now().0, draft.all(MONSTER).into_iter().collect::<Vec<_>>());
        let side = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i32;
        if all.len() < HERD && now % 2 == 1 {
            for n in all.len()..(all.len() + 40).min(HERD) {
                let at = Pos::ground(
                    1_200 + side(n as u64) % 4_000,
                    1_200 + side(n as u64 + 7_777) % 4_000,
                );
                draft.commands.spawn(MONSTER, Plane(0), at, super::hit_points(HP, 30));
            }
        }
        for id in all.into_iter().filter(|id| (now + id.0) % 100 == 0) {
            let Some(me) = draft.here(id, Kind(1)) else { continue };
            let (dx, dz) =
                (3_200 - me.pos.x + side(now) % 900, 3_200 - me.pos.z + side(now + id.0) % 900);
            let motion = Move::Vector(Vector::heading(me.pos, dx, dz, 200));
            draft.commands.motion(id, Motion::Walk(motion));
        }
    }
}

#[test]
fn a_page_draws_600_entities_where_they_are() {
    let spec = SceneSpec {
        width_cm: 6_400,
        depth_cm: 6_400,
        spawn_x_cm: 3_200,
        spawn_z_cm: 3_200,
        ..small_meadow()
    };
    let spec = SceneSpec { visibility: Visibility::All, ..spec };
    let server = server_with(spec, 30, Arc::new(Herd));
    with_page(url(&server), Screen::Desktop, async |page| {
        enter(&page, "Eve").await;
        page.until(&format!("window.purview.entities.length >= {HERD}")).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let figures = page.eval("window.purview.figures").await;
        println!("600 entities: {figures}");
        page.picture("-herd").await;
        assert!(number(&page, "window.purview.figures.errorMeanCm").await < 5.0, "{figures}");
        assert_eq!(page.eval("window.purview.errors").await, json!([]));
    });
}
