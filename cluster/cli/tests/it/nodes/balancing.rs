//! The leader measures what regions have to do, decides what a hot node gives away, and does it.

use std::sync::Mutex;

use purview_client::{Event, Trust};
use purview_server::http::Caller;
use purview_server::node::balancer::{BalanceMode, BalanceSurvey};

use super::*;

/// Players in the region in the north-west.
const PLAYERS: i32 = 40;

/// A node whose balancer acts.
async fn balancing(name: &str, store: &Embedded, roles: Roles, capacity: u32) -> ClusterProcess {
    let text = format!(
        "tick = \"50ms\"\n[server]\narbiters = 1\n[console]\nlisten = \"127.0.0.1:0\"\n\
         [gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\nlame_duck = \"0ms\"\n\
         [cluster]\nnode = {name:?}\nlisten = \"127.0.0.1:0\"\nlease = \"2s\"\n\
         capacity = {capacity}\nbalance = \"on\"\n\
         [[scene]]\nteleports = \"clients\"\n\
         name = \"city\"\nwidth = \"1536m\"\ndepth = \"1536m\"\nregion = [1, 1]\n"
    );
    let config = Config::parse(&text).unwrap();
    assert_eq!(config.cluster.balance, BalanceMode::On);
    joined(&config, roles, Arc::new(store.another())).await
}

/// What a process's console tells of balancing; `None`: no leader tells yet.
async fn told(node: &ClusterProcess) -> Option<BalanceSurvey> {
    let url = format!("http://{}", node.console_addr().unwrap());
    let caller = Caller { token: None, trust: Trust::default() };
    let answer = caller.get(&url, "/api/balance").await.unwrap();
    (answer.status == 200).then(|| serde_json::from_slice(&answer.body).unwrap())
}

/// Waits until a process's console tells something of balancing.
async fn told_so(
    node: &ClusterProcess,
    what: &str,
    holds: impl Fn(&BalanceSurvey) -> bool,
) -> BalanceSurvey {
    tries(what, async || match told(node).await {
        Some(survey) if holds(&survey) => Ok(survey),
        told => Err(told),
    })
    .await
}

/// What a client was shown: frames, and what ended it.
type Shown = Arc<Mutex<(u64, Option<String>)>>;

/// A client that takes a step to and fro with every frame.
async fn walks(url: String, i: i32, shown: Shown) {
    let place = |step: u64| Pos::ground(10_000 + 100 * i + 10 * (step % 2) as i32, 10_000);
    let end = async {
        let name = format!("walker {i}");
        let token = dev_token(&name);
        let mut client = Client::connect(&url, &token).await.map_err(|e| e.to_string())?;
        client.join(join_at("city", place(0))).await.map_err(|e| e.to_string())?;
        loop {
            match client.next().await.map_err(|e| e.to_string())? {
                Event::Frame(_) => {
                    let frames = {
                        let mut shown = shown.lock().unwrap();
                        shown.0 += 1;
                        shown.0
                    };
                    client.send_move(place(frames)).await.map_err(|e| e.to_string())?;
                }
                other => return Err::<(), String>(format!("{other:?}")),
            }
        }
    };
    let end: Result<(), String> = end.await;
    shown.lock().unwrap().1 = end.err();
}

/// Waits until every client was shown more frames than so many, and fails if one was disconnected.
async fn shown_more(all: &[Shown], than: u64) {
    tries("every client is shown frames", async || {
        let now: Vec<_> = all.iter().map(|shown| shown.lock().unwrap().clone()).collect();
        assert!(now.iter().all(|(_, end)| end.is_none()), "{now:?}");
        if now.iter().all(|(frames, _)| *frames > than) { Ok(()) } else { Err(now) }
    })
    .await;
}

#[test]
fn a_hot_node_gives_a_crowded_region_away_by_itself_and_no_client_is_disconnected() {
    with_store(async |store, outer| {
        // It carries a hundredth of a core, so that some players are much for it.
        let small = balancing("small", store, REGIONS, 1).await;
        come("all regions", &[&small], is_whole).await;
        assert!(now(&small).leads);
        small.orders().pause_balancing(HOUR).await.unwrap();
        let large = balancing("large", store, REGIONS, 100).await;
        let gateway = balancing("gateway", store, GATEWAY, 100).await;
        let all = [&small, &large, &gateway];
        come("a share", &all, |all| is_whole(all) && all[1].here > 0).await;
        for region in 0..9 {
            small.orders().move_region(RegionId(region), "small").await.unwrap();
        }
        come("all at one", &all, |all| is_whole(all) && all[0].here == 9).await;
        let url = format!("ws://{}/", gateway.ws_addr().unwrap());
        let shown: Vec<Shown> = (0..PLAYERS).map(|_| Shown::default()).collect();
        for (i, shown) in (0..).zip(&shown) {
            outer.spawn(walks(url.clone(), i, shown.clone()));
        }
        shown_more(&shown, 10).await;
        // Any console tells what the leader knows. While it is paused nothing moves.
        let survey = told_so(&gateway, "the load of the players", |survey| {
            let crowded = survey.regions.iter().find(|region| region.region == 0);
            crowded.is_some_and(|region| region.players == PLAYERS as u32)
                && survey.nodes.iter().any(|node| node.node == "small" && node.share > 0.25)
        })
        .await;
        assert_eq!((survey.mode.as_str(), survey.leader.as_str()), ("on", "small"));
        assert!(survey.paused_s > 0 && survey.actions.is_empty(), "{survey:#?}");
        assert!(survey.nodes.iter().all(|node| node.unreported == 0), "{survey:#?}");
        assert_eq!(now(&small).here, 9);
        small.orders().pause_balancing(Duration::ZERO).await.unwrap();
        let moved = format!("move R0 from {} to {}", small.name(), large.name());
        let survey = told_so(&large, "the move of the crowded region", |survey| {
            survey.actions.iter().any(|line| line.action == moved && line.outcome == "ordered")
        })
        .await;
        assert_eq!(survey.paused_s, 0);
        tries("the region moves", async || {
            let view = view_of(store).await;
            view.owners.get(&key(0)).filter(|owner| owner.node == "large").map(drop).ok_or(())
        })
        .await;
        come("all regions", &all, is_whole).await;
        let most = shown.iter().map(|shown| shown.lock().unwrap().0).max();
        shown_more(&shown, most.unwrap_or_default() + 10).await;
        stop([gateway, large, small]).await;
    });
}
