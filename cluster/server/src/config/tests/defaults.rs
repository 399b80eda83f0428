//! A setting that only conflicts with a default wins; a conflict of two settings stays an error.

use purview::scene::Visibility;
use purview::scene::spec::{KindSpec, LayerSpec};

use super::*;
use crate::config::{Override, SceneSettings};

/// The only scene of `base`, in place of the defaults, after these `--set` flags.
fn onto(base: &Config, flags: &[&str]) -> Result<SceneSettings, String> {
    let set: Vec<Override> = flags.iter().map(|flag| flag.parse().unwrap()).collect();
    let config = Config::load_onto(base, [], &set).map_err(|errors| errors.to_string())?;
    Ok(config.scenes.into_iter().next().unwrap())
}

fn spec(base: &Config, flags: &[&str]) -> SceneSpec {
    onto(base, flags).unwrap().spec
}

/// The defaults with another scene.
fn with_scene(change: impl FnOnce(&mut SceneSettings)) -> Config {
    let mut base = Config::default();
    change(&mut base.scenes[0]);
    base
}

#[test]
fn a_setting_makes_a_default_without_effect() {
    let base = Config::default();
    let circle = Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 };
    assert_eq!(spec(&base, &["scene.0.visibility=circle"]).visibility, circle);
    assert_eq!(set(&["scene.0.visibility=circle"]).unwrap().scenes[0].spec.visibility, circle);
    let round = with_scene(|scene| scene.spec.visibility = circle);
    assert_eq!(spec(&round, &["scene.0.visibility=patches"]).visibility, Visibility::Patches);
}

#[test]
fn one_radius_of_a_circle_moves_the_default_of_the_other() {
    let radii = |flag: &str| {
        let set = set(&["scene.0.visibility=circle", flag]).unwrap();
        match set.scenes[0].spec.visibility {
            Visibility::Circle { enter_cm, leave_cm } => (enter_cm, leave_cm),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(radii("scene.0.enter=70m"), (7_000, 8_500));
    assert_eq!(radii("scene.0.enter=120m"), (12_000, 12_500));
    assert_eq!(radii("scene.0.leave=40m"), (3_500, 4_000));
    assert_eq!(radii("scene.0.leave=90m"), (8_000, 9_000));
}

#[test]
fn a_patch_replaces_default_layers_and_layers_a_default_patch() {
    let layers = |names: &[&str]| -> Vec<LayerSpec> {
        let layer = |name: &&str| LayerSpec::square(*name, 3_200);
        names.iter().map(layer).collect()
    };
    let two = with_scene(|scene| {
        scene.spec.layers = layers(&["fine", "coarse"]);
        let kind = |name: &str, layer| KindSpec::new(name, layer);
        scene.spec.kinds = vec![kind("player", 0), kind("npc", 1)];
    });
    let one = spec(&two, &["scene.0.patch=16m"]);
    assert_eq!(one.layers, [LayerSpec::square("common", 1_600)]);
    assert!(one.kinds.iter().all(|kind| kind.layer == 0));
    let base = Config::default();
    let named = spec(&base, &["scene.0.layer.0.name=fine", "scene.0.layer.0.patch=32m"]);
    assert_eq!(named.layers, layers(&["fine"]));
}

#[test]
fn a_default_spawn_and_a_default_patch_follow_the_size() {
    let base = Config::default();
    let small = ["scene.0.width=300m", "scene.0.depth=200m", "scene.0.land=100m"];
    let small = spec(&base, &[&small[..], &["scene.0.region=[3, 2]"]].concat());
    assert_eq!((small.spawn_x_cm, small.spawn_z_cm), (15_000, 10_000));
    assert_eq!(small.layers[0].patch_cm, [625; 2]);
    let moved = with_scene(|scene| scene.spec.spawn_x_cm = 5_000);
    assert_eq!(spec(&moved, &["scene.0.lines=2"]).spawn_x_cm, 5_000);
}

#[test]
fn the_margin_of_patches_is_at_most_half_a_patch() {
    let base = Config::default();
    let margin = |by: &[&str]| spec(&base, by).patch_margin_cm;
    assert_eq!(margin(&[]), None);
    assert_eq!(margin(&["scene.0.patch_margin=auto"]), None);
    assert_eq!(margin(&["scene.0.patch_margin=0m"]), Some(0));
    assert_eq!(margin(&["scene.0.patch=2m", "scene.0.patch_margin=1m"]), Some(100));
    let error = onto(&base, &["scene.0.patch=2m", "scene.0.patch_margin=101cm"]).unwrap_err();
    let rule = "must lie between 0 m and half of the smallest patch, 1 m";
    assert!(error.contains("patch_margin = 1.01 m") && error.contains(rule), "{error}");
}

#[test]
fn two_settings_still_conflict() {
    let base = Config::default();
    let error = onto(&base, &["scene.0.visibility=circle", "scene.0.range=full"]).unwrap_err();
    assert_eq!(
        error,
        "--set scene.0.range=full: scene.0.range = \"full\": has an effect only with visibility = \
         \"patches\""
    );
    let error = onto(&base, &["scene.0.visibility=all", "scene.0.patch_margin=1m"]).unwrap_err();
    assert!(error.contains("has an effect only with visibility"), "{error}");
    let error = onto(&base, &["scene.0.patch=16m", "scene.0.layer.0.patch=32m"]).unwrap_err();
    assert!(error.contains("cannot be combined with `layer`"), "{error}");
    let error = onto(&base, &["scene.0.enter=70m"]).unwrap_err();
    assert!(error.contains("has an effect only with visibility"), "{error}");
}
