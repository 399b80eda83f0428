//! The scene of `purview dev` where the configuration has none.

use purview::scene::SceneSpec;
use purview::scene::spec::{BondSpec, CrowdSpec, LayerSpec};
use purview_server::config::SceneSettings;

use crate::hunt;

/// The radii in which monsters sight and lose players, centimetres.
const WATCH_CM: (i32, i32) = (1_500, 1_900);

/// A few hundred metres, so that borders, ghosts and handoffs are visible at once. All else is as in a configured
/// scene, except that clients may teleport and see crowds: moves are judged, and clients are told by error.
pub fn meadow() -> SceneSpec {
    SceneSpec {
        name: "meadow".into(),
        width_cm: 38_400,
        depth_cm: 25_600,
        land_cm: 6_400,
        region_lands_x: 2,
        region_lands_z: 2,
        layers: vec![LayerSpec::square("common", 1_600)],
        visibility: purview::scene::Visibility::Circle { enter_cm: 4_000, leave_cm: 4_400 },
        top_speed_cm_s: 2_000,
        spawn_x_cm: 19_200,
        spawn_z_cm: 12_800,
        kinds: hunt::kinds(WATCH_CM),
        bonds: BondSpec { kinds: vec!["party".into()], ..BondSpec::default() },
        crowd: Some(CrowdSpec::default()),
        // Visitors of the demo may fly.
        client_teleports: true,
        ..SceneSettings::default().spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_clients_are_told_what_those_of_a_configured_scene_are() {
        let (demo, configured) = (meadow(), SceneSettings::default().spec);
        assert!(demo.update_error_in_force().is_some());
        let told = |spec: &SceneSpec| (spec.update_error, spec.rates, spec.moves.clone());
        assert_eq!(told(&demo), told(&configured));
    }
}
