//! Commands of the protocol become commands of the scene. What is malformed ends the stream; what is not legal is refused.

use purview::scene::account::SUBJECT_MAX;
use purview::scene::messages::{
    Command, EntityAction, Motion, Order, Recipients, SetProperty, Spawn,
};
use purview::scene::movement::{Flags, GrantId, Move, Vector};
use purview::scene::portals::{Journey, Target, ToPlane};
use purview::scene::properties::{Properties, PropertyId, Value};
use purview::scene::spec::WatchSpec;
use purview::scene::views::{NamedBond, Relation};
use purview::scene::{EntityId, Epoch, Facing, Kind, Plane, Pos, RegionId, Scene};
use purview::wire::peer::{LeaseName, WorkerAnswer, WorkerCommand, WorkerWish};
use tonic::Status;

use super::proto::{self, MOST_COMMANDS, Position, Property, Reason, command::Command as Wanted};
use super::worker::Worker;

/// Most subjects of a plane, and the longest of them, bytes.
const MOST_SUBJECTS: usize = 1_024;
const LONGEST_SUBJECT: usize = 256;

/// Why a command is not legal, for the protocol and for people.
type NotLegal = (Reason, &'static str);

/// The answer of a worker. Commands that are not legal, whatever the region says, are refused when it counts.
pub fn answer(
    worker: &Worker,
    scene: &Scene,
    answer: proto::Answer,
) -> Result<WorkerAnswer, Status> {
    if answer.commands.len() > MOST_COMMANDS {
        return Err(Status::invalid_argument(format!("more than {MOST_COMMANDS} commands")));
    }
    let lease =
        answer.lease.ok_or_else(|| Status::invalid_argument("an answer without a lease"))?;
    let (region, epoch) = (RegionId(lease.region), Epoch(lease.epoch));
    let lease = LeaseName { region, epoch, number: lease.number };
    let mut commands = Vec::with_capacity(answer.commands.len());
    for (at, command) in answer.commands.into_iter().enumerate() {
        let wrong = |what| Status::invalid_argument(format!("command {at} {what}"));
        let (mut entity, held, together) =
            (EntityId(command.entity), command.held, command.together);
        let epoch = (command.epoch > 0).then_some(Epoch(command.epoch));
        let wanted = command.command.ok_or_else(|| wrong("has no kind that this server knows"))?;
        let names_none = entity.0 == 0 || matches!(wanted, Wanted::Spawn(_));
        let wish = if epoch.is_some() && names_none {
            Err((Reason::NotOfEntity, "an epoch is that of an entity that the command names"))
        } else if let Some(content) = command.content {
            let named = content_named(scene, entity, &command.subject, &content);
            entity = named.unwrap_or(entity);
            named.and_then(|id| entity_command(worker, id, wanted)).map(WorkerWish::Command)
        } else if !command.subject.is_empty() {
            subject_command(worker, (entity, &command.subject), wanted).map(WorkerWish::Command)
        } else if entity.0 == 0 {
            scene_command(scene, wanted).ok_or_else(|| wrong("names no entity"))?
        } else {
            entity_command(worker, entity, wanted).map(WorkerWish::Command)
        };
        let illegal = |(reason, text): NotLegal| WorkerWish::Illegal(reason.into(), text.into());
        let wish = wish.unwrap_or_else(illegal);
        commands.push(WorkerCommand { entity, held, wish, epoch, together });
    }
    Ok(WorkerAnswer { worker: worker.id, lease, seq: answer.seq, commands })
}

fn content_named(
    scene: &Scene,
    entity: EntityId,
    subject: &str,
    content: &proto::Content,
) -> Result<EntityId, NotLegal> {
    if entity.0 != 0 || !subject.is_empty() {
        return Err((Reason::NotOfEntity, "the command names a content and something else"));
    }
    let id = scene.contents().named(Plane(content.plane), &content.name);
    id.ok_or((Reason::UnknownEntity, "the scene contains nothing of this name"))
}

fn subject_command(
    worker: &Worker,
    (entity, subject): (EntityId, &str),
    wanted: Wanted,
) -> Result<Command, NotLegal> {
    if entity.0 != 0 {
        return Err((Reason::NotOfEntity, "the command names both an entity and a subject"));
    }
    if subject.len() > SUBJECT_MAX {
        return Err((Reason::TooLong, "the subject is longer than 128 bytes"));
    }
    let command = entity_command(worker, entity, wanted)?;
    if !command.is_by_subject() {
        let text = "by subject are set_bonds, hold and kick: name the entity";
        return Err((Reason::NotOfEntity, text));
    }
    Ok(Command::OfSubject(subject.into(), Box::new(command)))
}

fn entity_command(worker: &Worker, id: EntityId, wanted: Wanted) -> Result<Command, NotLegal> {
    let order = |order| Ok(Command::Order(id, order));
    let motion = |motion| Ok(Command::Motion(id, motion));
    match wanted {
        Wanted::Spawn(spawn) => spawn_command(worker, id, spawn),
        Wanted::Despawn(_) => Ok(Command::Despawn(id)),
        Wanted::Place(place) => order(Order::Move(pos(place.position)?)),
        Wanted::Teleport(teleport) => order(Order::Travel(Journey {
            scene: (!teleport.scene.is_empty()).then_some(teleport.scene),
            plane: ToPlane::Of(Plane(teleport.plane)),
            at: Target::Exact(pos(teleport.position)?),
        })),
        Wanted::Walk(walk) => {
            let (vx_mm_s, vz_mm_s, lasts_ms) = (walk.vx_mm_s, walk.vz_mm_s, Some(walk.lasts_ms));
            // It begins where the entity is.
            let start = Pos::ground(0, 0);
            motion(Motion::Walk(Move::Vector(Vector { start, vx_mm_s, vz_mm_s, lasts_ms })))
        }
        Wanted::Stop(_) => motion(Motion::Stop),
        Wanted::SetFlags(set) => {
            let flags = u8::try_from(set.flags).ok().filter(|flags| *flags < 8);
            let flags = flags.ok_or((Reason::Movement, "flags are a sum of 1, 2 and 4"))?;
            motion(Motion::Flags(Flags(flags)))
        }
        Wanted::SetSpeed(set) => motion(Motion::Speed(set.speed_cm_s)),
        Wanted::Grant(grant) => motion(Motion::Grant {
            id: grant_id(grant.grant)?,
            speed_cm_s: grant.speed_cm_s,
            lasts_ms: (grant.lasts_ms > 0).then_some(grant.lasts_ms),
        }),
        Wanted::Revoke(revoke) => motion(Motion::Revoke(grant_id(revoke.grant)?)),
        Wanted::SetProperty(property) => {
            let (id, value) = set_property(&property)?;
            order(Order::Set(SetProperty { id, value }))
        }
        Wanted::SetFacing(set) => order(Order::Face(facing(set.facing)?)),
        Wanted::SetWatch(set) => {
            let rules = set.rules.into_iter().map(watch).collect::<Result<_, _>>()?;
            Ok(Command::Watch(id, rules))
        }
        Wanted::SetSight(set) => Ok(Command::Sight(id, set.within_cm)),
        Wanted::Act(act) => {
            let aim = (act.aim > 0).then_some(EntityId(act.aim));
            order(Order::Act(EntityAction { aim, ..EntityAction::new(act.payload) }))
        }
        Wanted::SetBonds(set) => Ok(Command::Bonds(id, set.bonds.into_iter().map(bond).collect())),
        Wanted::Tell(tell) => Ok(Command::Tell(id, tell.payload)),
        Wanted::Kick(_) => Ok(Command::Kick(id)),
        Wanted::Hold(hold) => Ok(Command::Hold(id, hold.lasts_ms)),
        Wanted::TellBond(_)
        | Wanted::Announce(_)
        | Wanted::SetDoor(_)
        | Wanted::ResetPlane(_)
        | Wanted::SetRelation(_)
        | Wanted::OpenPlane(_)
        | Wanted::ClosePlane(_) => {
            Err((Reason::NotOfEntity, "the command concerns a scene: its entity must be 0"))
        }
    }
}

/// A command for entity 0; `None`: it needs an entity.
fn scene_command(scene: &Scene, wanted: Wanted) -> Option<Result<WorkerWish, NotLegal>> {
    let command = match wanted {
        Wanted::TellBond(tell) => {
            let to = tell.bond.map(bond).ok_or((Reason::Bond, "there is no bond"));
            to.map(|bond| Command::TellGroup(Recipients::Bond(bond), tell.payload))
        }
        Wanted::Announce(announce) => {
            let to = match announce.plane {
                Some(plane) => Recipients::Plane(scene.id, Plane(plane)),
                None => Recipients::Scene(scene.id),
            };
            Ok(Command::TellGroup(to, announce.payload))
        }
        Wanted::SetDoor(set) => Ok(Command::Door(Plane(set.plane), set.door, set.open)),
        Wanted::SetRelation(set) => relation(set),
        Wanted::ResetPlane(reset) => Ok(Command::ResetPlane(Plane(reset.plane))),
        Wanted::OpenPlane(open) => return Some(open_plane(scene, open)),
        Wanted::ClosePlane(close) => {
            return Some(Ok(WorkerWish::Plane { plane: Plane(close.plane), subjects: None }));
        }
        _ => return None,
    };
    Some(command.map(WorkerWish::Command))
}

fn relation(set: proto::SetRelation) -> Result<Command, NotLegal> {
    let to = match proto::Relation::try_from(set.relation) {
        Ok(proto::Relation::Neutral) => Relation::Neutral,
        Ok(proto::Relation::Ally) => Relation::Ally,
        Ok(proto::Relation::Enemy) => Relation::Enemy,
        Err(_) => return Err((Reason::Bond, "the relation is neutral, ally or enemy")),
    };
    Ok(Command::Relate(set.kind, [set.group, set.other], to))
}

fn open_plane(scene: &Scene, open: proto::OpenPlane) -> Result<WorkerWish, NotLegal> {
    let (plane, subjects) = (Plane(open.plane), open.subjects);
    if scene.is_line(plane) || plane == Plane::LIMBO {
        return Err((Reason::Plane, "the plane is one of the scene's lines"));
    }
    if subjects.len() > MOST_SUBJECTS || subjects.iter().any(|s| s.len() > LONGEST_SUBJECT) {
        return Err((Reason::TooLong, "more than 1,024 subjects, or one of more than 256 bytes"));
    }
    Ok(WorkerWish::Plane { plane, subjects: Some(subjects) })
}

fn spawn_command(worker: &Worker, id: EntityId, spawn: proto::Spawn) -> Result<Command, NotLegal> {
    if !worker.owns_id(id) {
        return Err((Reason::ForeignId, "the id is not of the worker's blocks"));
    }
    let kind = u8::try_from(spawn.kind).map_err(|_| (Reason::Kind, "kinds are below 256"))?;
    let mut properties = Properties::default();
    for property in &spawn.properties {
        let (id, value) = set_property(property)?;
        properties.begin_with(id, value);
    }
    Ok(Command::Spawn(Box::new(Spawn {
        plane: Plane(spawn.plane),
        facing: facing(spawn.facing)?,
        properties,
        ..Spawn::new(id, Kind(kind), pos(spawn.position)?)
    })))
}

fn pos(position: Option<Position>) -> Result<Pos, NotLegal> {
    let position = position.ok_or((Reason::OutOfBounds, "there is no position"))?;
    Ok(Pos { x: position.x, y: position.y, z: position.z })
}

fn facing(facing: u32) -> Result<Facing, NotLegal> {
    let facing = u16::try_from(facing);
    facing.map(Facing).map_err(|_| (Reason::OutOfBounds, "a facing is below 65,536"))
}

fn grant_id(grant: u32) -> Result<GrantId, NotLegal> {
    (grant > 0).then_some(GrantId(grant)).ok_or((Reason::Movement, "grants are named from 1 on"))
}

fn set_property(property: &Property) -> Result<(PropertyId, Value), NotLegal> {
    let id = u8::try_from(property.id).ok().filter(|id| *id < 64);
    let id = id.ok_or((Reason::Property, "ids of properties are below 64"))?;
    let value = Value::new(property.value.clone());
    let value = value.map_err(|_| (Reason::Property, "the value is not one MessagePack value"))?;
    Ok((PropertyId(id), value))
}

fn watch(watch: proto::Watch) -> Result<WatchSpec, NotLegal> {
    let kinds = watch.kinds.iter().map(|kind| u8::try_from(*kind));
    let kinds =
        kinds.collect::<Result<_, _>>().map_err(|_| (Reason::Kind, "kinds are below 256"))?;
    let cm = |cm: u32| i32::try_from(cm).map_err(|_| (Reason::Watch, "a radius is too long"));
    Ok(WatchSpec { kinds, enter_cm: cm(watch.enter_cm)?, leave_cm: cm(watch.leave_cm)? })
}

/// The region knows whether the scene has the kind.
fn bond(bond: proto::Bond) -> NamedBond {
    NamedBond::new(bond.kind, bond.group)
}

#[cfg(test)]
mod tests {
    use purview::scene::contents::ContentSpec;
    use purview::scene::region::Followed;
    use purview::scene::spec::KindSpec;
    use purview::scene::{SceneId, SceneSpec};

    use super::*;
    use crate::logic::worker::Profile;

    fn wish(entity: u64, command: Wanted) -> WorkerWish {
        let command = Some(command);
        taken(SceneSpec::default(), proto::Command { entity, command, ..Default::default() }).wish
    }

    /// The only command of an answer, in a scene.
    fn taken(spec: SceneSpec, command: proto::Command) -> WorkerCommand {
        let (scene, followed) = (SceneId(0), Followed::Watched);
        let worker = Worker::new(7, Profile { scene, name: "w".into(), answers: false, followed });
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
        let lease = Some(proto::Lease::default());
        let told = proto::Answer { lease, seq: 1, commands: vec![command] };
        answer(&worker, &scene, told).unwrap().commands.remove(0)
    }

    #[test]
    fn a_content_is_named_by_its_plane_and_its_name_alone() {
        let mut spec = SceneSpec::default();
        spec.kinds.push(KindSpec::new("chest", 0));
        let pos = Pos::ground(1_000, 1_000);
        spec.contents.push(ContentSpec::new("old chest", Kind(1), pos));
        let scene = Scene::new(SceneId(0), spec.clone(), 100, RegionId(0)).unwrap();
        let chest = scene.contents().named(Plane(3), "old chest").unwrap();
        let despawn = |entity, subject: &str, name: &str| {
            let content = Some(proto::Content { plane: 3, name: name.into() });
            let command = Some(Wanted::Despawn(proto::Despawn {}));
            let subject = subject.into();
            let named = proto::Command { entity, subject, content, command, ..Default::default() };
            taken(spec.clone(), named)
        };
        let named = despawn(0, "", "old chest");
        let wish = WorkerWish::Command(Command::Despawn(chest));
        let (epoch, together) = (None, false);
        assert_eq!(named, WorkerCommand { entity: chest, held: false, wish, epoch, together });
        for (entity, subject, name, reason) in [
            (0, "", "new chest", Reason::UnknownEntity),
            (chest.0, "", "old chest", Reason::NotOfEntity),
            (0, "ada", "old chest", Reason::NotOfEntity),
        ] {
            let refused = despawn(entity, subject, name).wish;
            let WorkerWish::Illegal(why, _) = refused else { panic!("{refused:?}") };
            assert_eq!(why, i32::from(reason), "{name}");
        }
    }

    #[test]
    fn a_teleport_names_a_scene_or_stays_in_its_own() {
        let place = Pos { x: 100, y: 5, z: 200 };
        for (scene, named) in [("cave", Some("cave".to_owned())), ("", None)] {
            let (x, y, z) = (place.x, place.y, place.z);
            let position = Some(Position { x, y, z });
            let told = proto::Teleport { plane: 3, position, scene: scene.into() };
            let to =
                Journey { scene: named, plane: ToPlane::Of(Plane(3)), at: Target::Exact(place) };
            let travel = Command::Order(EntityId(9), Order::Travel(to));
            assert_eq!(wish(9, Wanted::Teleport(told)), WorkerWish::Command(travel));
        }
    }

    #[test]
    fn a_relation_is_one_of_three_and_concerns_the_scene() {
        let told =
            |relation| proto::SetRelation { kind: "guild".into(), group: 7, other: 12, relation };
        for (number, relation) in
            [(0, Relation::Neutral), (1, Relation::Ally), (2, Relation::Enemy)]
        {
            let relate = Command::Relate("guild".into(), [7, 12], relation);
            assert_eq!(wish(0, Wanted::SetRelation(told(number))), WorkerWish::Command(relate));
        }
        let illegal = |wish| matches!(wish, WorkerWish::Illegal(reason, _) if reason == i32::from(Reason::Bond));
        assert!(illegal(wish(0, Wanted::SetRelation(told(3)))));
        let of_entity = wish(9, Wanted::SetRelation(told(1)));
        assert!(
            matches!(of_entity, WorkerWish::Illegal(reason, _) if reason == i32::from(Reason::NotOfEntity))
        );
    }
}
