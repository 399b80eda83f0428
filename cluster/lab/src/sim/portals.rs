//! Portals of the simulated scenes: pairs, each of which leads into the other one's area. One pair lies on corners of
//! four regions, another one leads between scenes.

use purview::scene::Pos;

/// From the middle of an area to its edges, centimetres.
const HALF_CM: i32 = 300;

/// The middles of the areas of a scene: two on corners of regions, two inside of regions.
pub const MIDDLES: [Pos; 4] = [
    Pos { x: 12_800, y: 0, z: 12_800 },
    Pos { x: 25_600, y: 0, z: 12_800 },
    Pos { x: 6_400, y: 0, z: 6_400 },
    Pos { x: 32_000, y: 0, z: 6_400 },
];

/// Whether a portal puts those that it takes to this place.
pub fn leads_to(pos: Pos) -> bool {
    MIDDLES.iter().any(|to| (pos.x - to.x).abs() <= HALF_CM && (pos.z - to.z).abs() <= HALF_CM)
}

/// The keys of the portals of a scene, which lead to another one if there is one.
pub fn keys(other: &str) -> String {
    let cm = |list: &[i32]| {
        let all: Vec<String> = list.iter().map(|cm| format!("\"{cm}cm\"")).collect();
        all.join(", ")
    };
    let portal = |at: usize| {
        let (from, to) = (MIDDLES[at], MIDDLES[at ^ 1]);
        let area = cm(&[from.x - HALF_CM, from.z - HALF_CM, 2 * HALF_CM, 2 * HALF_CM]);
        let scene = if at < 2 { "here" } else { other };
        format!(
            "[[scene.portal]]\nname = \"portal {at}\"\narea = [{area}]\nto = [{}]\nscene = {scene:?}\n",
            cm(&[to.x, to.z])
        )
    };
    (0..MIDDLES.len()).map(portal).collect()
}
