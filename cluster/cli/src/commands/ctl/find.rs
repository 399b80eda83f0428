//! `purview ctl find`: positions of entities in the whole cluster.

use clap::Args;

use super::ConsoleArgs;
use purview_server::admin::properties::PropertyShape;
use purview_server::admin::{People, Whereabouts};

/// The exit code if some region or process did not answer.
const NOT_WHOLE: u8 = 3;

/// `purview ctl find`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl find\n  \
    purview ctl find 17\n  \
    purview ctl find 17 --json\n\n\
    Any process of the cluster answers for all.\n\n\
    Exit codes: 0 done, 1 failed (no answer, or no such entity), 2 invalid command line, 3 done, but some region or \
    process did not answer.")]
pub struct FindArgs {
    /// The id of an entity [default: all players].
    pub id: Option<u64>,
    /// The server.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Print the JSON of the console: of `/api/entity/ID`, or else of `/api/players`.
    #[arg(long)]
    pub json: bool,
}

/// Prints where an entity is, or where all players are.
pub(super) async fn find(args: &FindArgs) -> anyhow::Result<u8> {
    match args.id {
        Some(id) => entity(id, args).await,
        None => players(args).await,
    }
}

/// Prints the players; the exit code says whether all regions and processes answered.
async fn players(args: &FindArgs) -> anyhow::Result<u8> {
    let told = args.console.get("/api/players").await?;
    let people: People = told.read()?;
    told.print(args.json, &text(&people))?;
    let whole = people.late.is_empty() && people.silent.is_empty();
    Ok(if whole { 0 } else { NOT_WHOLE })
}

/// Prints one entity.
async fn entity(id: u64, args: &FindArgs) -> anyhow::Result<u8> {
    let told = args.console.get(&format!("/api/entity/{id}")).await?;
    let there: Whereabouts = told.read()?;
    told.print(args.json, &format!("{HEAD}{}{}", line(&there), state(&there)))?;
    Ok(0)
}

const HEAD: &str =
    "id        kind      scene            region  plane  at                    node\n";

fn line(there: &Whereabouts) -> String {
    let Whereabouts { id, kind, node, scene, region, plane, pos, .. } = there;
    let plane = plane.map_or_else(|| "-".to_owned(), |plane| plane.to_string());
    let metres = |cm: i32| f64::from(cm) / 100.0;
    let at = format!("{:.2}, {:.2} m", metres(pos.x), metres(pos.z));
    let (id, region) = (id.to_string(), format!("R{region}"));
    format!("{id:<9} {kind:<9} {scene:<16} {region:<7} {plane:<6} {at:<21} {node}\n")
}

/// The facing and the properties of an entity, one a line.
fn state(there: &Whereabouts) -> String {
    let mut out = format!("faces {:.1} degrees clockwise from east\n", there.facing.degrees());
    for p in &there.properties {
        let PropertyShape { id, name, version, value } = p;
        out += &format!("property {id} {name} = {value} (version {version})\n");
    }
    out
}

fn text(people: &People) -> String {
    let mut out = HEAD.to_owned();
    out.extend(people.players.iter().map(line));
    out += &format!("{} player(s)\n", people.players.len());
    for node in &people.silent {
        out += &format!("{node} does not answer\n");
    }
    for region in &people.late {
        out += &format!("R{region} does not answer\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use purview::scene::{EntityId, Facing, Plane, Pos, RegionId};

    use super::*;

    fn player() -> Whereabouts {
        Whereabouts {
            id: EntityId(17),
            kind: "player".into(),
            node: "node-2".into(),
            scene: "city".into(),
            region: RegionId(3),
            plane: Some(Plane(0)),
            pos: Pos { x: 1_250, y: 0, z: -5 },
            facing: Facing::SOUTH,
            properties: Vec::new(),
        }
    }

    #[test]
    fn an_entity_is_printed_with_its_facing_and_its_properties() {
        let hp = PropertyShape { id: 1, name: "hp".into(), version: 12, value: 250.into() };
        let there = Whereabouts { properties: vec![hp], ..player() };
        let want = "faces 90.0 degrees clockwise from east\nproperty 1 hp = 250 (version 12)\n";
        assert_eq!(state(&there), want);
    }

    #[test]
    fn players_and_silent_nodes_are_printed_in_lines() {
        let there = player();
        let nowhere = Whereabouts { id: EntityId(18), plane: None, ..there.clone() };
        let players = vec![there, nowhere];
        let people = People { players, late: vec![RegionId(4)], silent: vec!["node-1".into()] };
        assert_eq!(
            text(&people),
            "id        kind      scene            region  plane  at                    node\n\
             17        player    city             R3      0      12.50, -0.05 m        node-2\n\
             18        player    city             R3      -      12.50, -0.05 m        node-2\n\
             2 player(s)\n\
             node-1 does not answer\n\
             R4 does not answer\n"
        );
    }
}
