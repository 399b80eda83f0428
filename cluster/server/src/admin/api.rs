//! The HTTP API: routes, arguments, errors. The server in `serve` calls its router. Every error is
//! JSON with `error` (what was wrong) and `expected` (what would be right). A request must never
//! wait for a region without a limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use futures::future::{join, join_all};
use purview::scene::inspect::InspectedEntity;
use purview::scene::terrain::Terrain;
use purview::scene::{EntityId, Plane, Scene};
use purview::wire::peer::query::Question;

use super::access::Access;
use super::audit::Audit;
use super::error::ApiError;
use super::hosts::Hosts;
use super::page::{ASSETS, Asset, PAGE};
use super::routing::{Console, Route, harden};
use super::shared::Shared;
use super::{
    ConsoleState, balance, guard, health, kick, openapi, orders, people, process, shapes, stats,
    terrain, why, workers,
};
use crate::node::inspect;
use crate::whole_numbers as whole;

type Args = Result<Query<Vec<(String, String)>>, QueryRejection>;
type Id = Result<Path<String>, PathRejection>;

/// Routes without a token.
fn open_routes() -> Vec<Route> {
    vec![
        ("/", get(async || PAGE.response())),
        ("/assets/{name}", get(asset_named)),
        ("/metrics", get(metrics_text)),
    ]
    .into_iter()
    .chain(health::routes())
    .collect()
}

/// Routes that need the token for reading, if there is one.
fn api_routes() -> Vec<Route> {
    vec![
        ("/api/scenes", get(scenes)),
        ("/api/entities", get(entities)),
        ("/api/player/{id}", get(player)),
        ("/api/why", get(why_seen)),
        ("/api/terrain", get(terrain_figures)),
        ("/api/terrain.png", get(terrain_piece)),
        ("/api/stats", get(stats)),
        ("/api/cluster", get(cluster)),
        ("/api/cluster/move", post(orders::move_region)),
        ("/api/cluster/drain", post(orders::drain)),
        ("/api/cluster/region", post(orders::decide)),
        ("/api/cluster/map", post(orders::change_map)),
        ("/api/balance", get(balance::balance)),
        ("/api/balance/pause", post(balance::pause)),
        ("/api/balance/pin", post(balance::pin)),
        ("/api/balance/reserve", post(balance::reserve)),
        ("/api/kick", post(kick::kick)),
        ("/api/players", get(players)),
        ("/api/workers", get(list_workers)),
        ("/api/entity/{id}", get(entity)),
        ("/api/openapi.json", get(document)),
    ]
}

pub fn paths() -> Vec<&'static str> {
    open_routes().into_iter().chain(api_routes()).map(|(path, _)| path).collect()
}

pub fn router(shared: Arc<Shared>, access: Access, hosts: Hosts) -> Router {
    let add = |router: Router<Arc<Shared>>, (path, method): Route| router.route(path, method);
    let api = api_routes().into_iter().fold(Router::new(), add);
    let tokens = (access, Audit::default());
    let api = api.route_layer(middleware::from_fn_with_state(tokens, guard::by_token));
    open_routes()
        .into_iter()
        .fold(api, add)
        .fallback(async |uri: Uri| {
            let expected = format!("one of {}; see /api/openapi.json", paths().join(", "));
            ApiError::not_found(format!("there is no {}", uri.path()), expected)
        })
        .method_not_allowed_fallback(async || {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this method is not allowed here",
                "one of the methods in the Allow header",
            )
        })
        .layer(middleware::from_fn_with_state(hosts, guard::by_name))
        .layer(middleware::map_response(harden))
        .with_state(shared)
}

async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi::DOCUMENT).into_response()
}

async fn asset_named(name: Id) -> Result<Response, ApiError> {
    let Path(name) = name.map_err(|e| ApiError::bad(e.body_text(), "the name of an asset"))?;
    let found = ASSETS.iter().find(|a| a.name == name).map(Asset::response);
    found.ok_or_else(|| {
        let names: Vec<&str> = ASSETS.iter().map(|a| a.name).collect();
        let expected = format!("one of {}", names.join(", "));
        ApiError::not_found(format!("there is no asset {name:?}"), expected)
    })
}

async fn scenes(State(shared): Console) -> Json<shapes::Scenes> {
    let ConsoleState { directory, regions, node, .. } = &shared.state;
    let surveys = shared.surveys();
    let regions = &regions.now();
    let surveys = directory.scenes().map(|s| async move {
        let survey = surveys.survey(regions, s.id, None).await;
        (s, survey)
    });
    let scenes = join_all(surveys).await;
    let scenes = scenes.iter().map(|(s, survey)| shapes::scene(s, node, survey)).collect();
    Json(shapes::Scenes { node: node.clone(), version: env!("CARGO_PKG_VERSION"), scenes })
}

async fn entities(State(shared): Console, args: Args) -> Result<Json<shapes::Entities>, ApiError> {
    let args = known_args(args, &["scene", "plane", "ghosts"])?;
    let scene = scene_arg(&shared.state, &args)?;
    let expected = "a whole number from -2147483648 to 2147483647, for example plane=0";
    let plane = read_arg(&args, "plane", whole::parse, expected)?.map_or(Plane(0), Plane);
    let is_asked = |text: &str| match whole::parse(text) {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    };
    let expected = "ghosts=1 to include ghosts, ghosts=0 to leave them out";
    let ghosts = read_arg(&args, "ghosts", is_asked, expected)?.unwrap_or(false);
    let survey = shared.surveys().survey(&shared.state.regions.now(), scene.id, Some(plane)).await;
    Ok(Json(shapes::entities(&scene, plane, ghosts, &survey)))
}

/// The arguments; each must be in `known`.
fn known_args(args: Args, known: &[&str]) -> Result<HashMap<String, String>, ApiError> {
    let expected = || format!("only {}", known.join(", "));
    let Query(args) = args.map_err(|e| ApiError::bad(e.body_text(), expected()))?;
    let mut read = HashMap::new();
    for (name, value) in args {
        if !known.contains(&name.as_str()) {
            return Err(ApiError::bad(format!("there is no argument {name:?}"), expected()));
        }
        if read.insert(name.clone(), value).is_some() {
            return Err(ApiError::bad(format!("{name} is given twice"), "each argument once"));
        }
    }
    Ok(read)
}

/// An argument as `read` reads it; `None`: it is not given.
fn read_arg<T>(
    args: &HashMap<String, String>,
    name: &str,
    read: impl FnOnce(&str) -> Option<T>,
    expected: &str,
) -> Result<Option<T>, ApiError> {
    let Some(text) = args.get(name) else { return Ok(None) };
    let bad = || ApiError::bad(format!("{name} is {text:?}"), expected);
    read(text).map(Some).ok_or_else(bad)
}

fn scene_arg(state: &ConsoleState, args: &HashMap<String, String>) -> Result<Arc<Scene>, ApiError> {
    let expected = || {
        let names: Vec<String> =
            state.directory.scenes().map(|s| format!("{:?}", s.spec.name)).collect();
        format!("one of {}", names.join(", "))
    };
    let Some(name) = args.get("scene") else {
        return Err(ApiError::bad("scene is missing", expected()));
    };
    state
        .directory
        .scene_named(name)
        .ok_or_else(|| ApiError::not_found(format!("there is no scene {name:?}"), expected()))
}

fn id_arg(id: Id, expected: &str) -> Result<EntityId, ApiError> {
    let Path(id) = id.map_err(|e| ApiError::bad(e.body_text(), expected))?;
    let bad = || ApiError::bad(format!("the id is {id:?}"), expected);
    whole::parse(&id).map(EntityId).ok_or_else(bad)
}

async fn player(State(shared): Console, id: Id) -> Result<Json<shapes::Player>, ApiError> {
    let id = id_arg(id, "a whole number, as in /api/player/17")?;
    match find(&shared.state, id).await? {
        (scene, InspectedEntity::Player(p)) => Ok(Json(shapes::player(&scene, *p))),
        (scene, InspectedEntity::Other(e)) => Err(ApiError::not_found(
            format!("entity {id} is of kind {:?}", shapes::kind_name(&scene, e.kind)),
            "the id of a player; /api/entities lists them",
        )),
    }
}

async fn find(
    state: &ConsoleState,
    id: EntityId,
) -> Result<(Arc<Scene>, InspectedEntity), ApiError> {
    let (found, late) = inspect::entity(&state.regions.now(), id).await;
    let scene = |id| state.directory.scene(id);
    match found.and_then(|(scene_id, e)| Some((scene(scene_id)?, e))) {
        Some(found) => Ok(found),
        None => {
            let late: Vec<String> = late.into_iter().map(shapes::region_name).collect();
            Err(no_entity(("region", &late), id, "/api/entities lists them"))
        }
    }
}

/// None of these places (regions, or processes) has the entity, unless it is in one that does not answer.
fn no_entity((place, silent): (&str, &[String]), id: EntityId, list: &str) -> ApiError {
    match silent.is_empty() {
        true => ApiError::not_found(
            format!("no {place} has an entity {id}"),
            format!("the id of an entity; {list}"),
        ),
        false => ApiError::unavailable(
            format!(
                "no {place} that answered has an entity {id}; no answer from {}",
                silent.join(", ")
            ),
            "try again",
        ),
    }
}

async fn why_seen(State(shared): Console, args: Args) -> Result<Json<why::Explanation>, ApiError> {
    let args = known_args(args, &["a", "b"])?;
    let id = |name: &str| {
        let expected = "a whole number, the id of an entity, as in /api/why?a=17&b=42";
        let id = read_arg(&args, name, whole::parse, expected)?.map(EntityId);
        id.ok_or_else(|| ApiError::bad(format!("{name} is missing"), expected))
    };
    let (a, b) = (id("a")?, id("b")?);
    let (a, b) = join(find(&shared.state, a), find(&shared.state, b)).await;
    let ((scene_of_a, a), (scene_of_b, b)) = (a?, b?);
    Ok(Json(why::answer([&scene_of_a, &scene_of_b], &a, &b)))
}

fn terrain_arg(
    state: &ConsoleState,
    args: &HashMap<String, String>,
) -> Result<(String, Arc<Terrain>), ApiError> {
    let scene = scene_arg(state, args)?;
    let name = scene.spec.name.clone();
    match &scene.terrain {
        Some(terrain) => Ok((name, terrain.clone())),
        None => {
            let with = state.directory.scenes().filter(|s| s.terrain.is_some());
            let names: Vec<String> = with.map(|s| format!("{:?}", s.spec.name)).collect();
            let expected = match names.is_empty() {
                true => "a scene with a map; no scene of this server has one".into(),
                false => format!("a scene with a map: one of {}", names.join(", ")),
            };
            let error = format!("scene {name:?} has no map");
            Err(ApiError::not_found(error, expected))
        }
    }
}

/// Whether the client has the version with this tag already.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|v| v.to_str().ok());
    known.is_some_and(|all| all.split(',').any(|t| t.trim().trim_matches('"') == tag))
}

/// An answer that a client may cache while its tag stays the same.
fn tagged(tag: &str, mut response: Response) -> Response {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

async fn terrain_figures(
    State(shared): Console,
    headers: HeaderMap,
    args: Args,
) -> Result<Response, ApiError> {
    let args = known_args(args, &["scene"])?;
    let (scene, terrain) = terrain_arg(&shared.state, &args)?;
    let tag = terrain::version(&terrain);
    Ok(tagged(
        &tag,
        match is_known(&headers, &tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => Json(terrain::shape(&scene, &terrain)).into_response(),
        },
    ))
}

/// A whole number from 0 among the arguments; default 0.
fn number_arg(args: &HashMap<String, String>, name: &str) -> Result<u32, ApiError> {
    let expected = format!("a whole number from 0 to {}, for example {name}=0", u32::MAX);
    Ok(read_arg(args, name, whole::parse, &expected)?.unwrap_or(0))
}

async fn terrain_piece(
    State(shared): Console,
    headers: HeaderMap,
    args: Args,
) -> Result<Response, ApiError> {
    let args = known_args(args, &["scene", "level", "x", "z"])?;
    let (_, map) = terrain_arg(&shared.state, &args)?;
    let [level, x, z] = ["level", "x", "z"].map(|name| number_arg(&args, name));
    let (level, x, z) = (level?, x?, z?);
    let tag = format!("{}-{level}-{x}-{z}", terrain::version(&map));
    if is_known(&headers, &tag) {
        return Ok(tagged(&tag, StatusCode::NOT_MODIFIED.into_response()));
    }
    let drawn = map.clone();
    // A large map takes some milliseconds, so it is drawn on another thread.
    let png = tokio::task::spawn_blocking(move || terrain::piece(&drawn, level, x, z)).await;
    let Some(png) = png.ok().flatten() else {
        let most = |tiles: i32| (tiles - 1) / (terrain::PIECE << level.min(15));
        let levels = terrain::levels(&map);
        let expected = match level < levels {
            true => format!("x from 0 to {}, z from 0 to {}", most(map.width()), most(map.depth())),
            false => format!("level from 0 to {}", levels - 1),
        };
        let error = format!("there is no piece ({x}, {z}) of level {level}");
        return Err(ApiError::not_found(error, expected));
    };
    Ok(tagged(&tag, ([(header::CONTENT_TYPE, "image/png")], png).into_response()))
}

async fn stats(State(shared): Console) -> Json<stats::Stats> {
    let ConsoleState { directory, regions, node, .. } = &shared.state;
    let regions = regions.now();
    let recent = shared.sampler.lock().recent(Instant::now(), super::figures(&regions));
    let regions = regions.iter().map(|r| (r.scene, r.region, &*r.metrics));
    Json(stats::stats(node, regions, process::usage(), directory.uptime(), recent))
}

async fn cluster(State(shared): Console) -> Result<Json<serde_json::Value>, ApiError> {
    let view = shared.state.cluster.as_ref().ok_or_else(ApiError::no_cluster)?;
    Ok(Json(view()))
}

async fn list_workers(State(shared): Console) -> Json<workers::WorkersShape> {
    Json(workers::workers(&shared.state))
}

async fn players(State(shared): Console) -> Json<people::People> {
    let _turn = shared.turn().await;
    Json(people::everybody(&shared.state, Question::Players).await)
}

async fn entity(State(shared): Console, id: Id) -> Result<Json<people::Whereabouts>, ApiError> {
    let id = id_arg(id, "a whole number, as in /api/entity/17")?;
    let _turn = shared.turn().await;
    let mut found = people::everybody(&shared.state, Question::Entity(id)).await;
    if let Some(there) = found.players.pop() {
        return Ok(Json(there));
    }
    let late = found.late.into_iter().map(shapes::region_name);
    let silent: Vec<String> = found.silent.into_iter().chain(late).collect();
    Err(no_entity(("process", &silent), id, "/api/players lists players"))
}

async fn metrics_text(State(shared): Console) -> Response {
    match crate::metrics::text(shared.registry()) {
        Ok(text) => ([(header::CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            let why = "the metrics cannot be written";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, why, "report it").into_response()
        }
    }
}
