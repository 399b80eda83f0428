//! Attackers of the gateway.

use std::time::Duration;

use purview::actor::player::{Login, Pass, Passes, Planes};
use purview::scene::{EntityId, Plane, Pos, RangeSet, Seq};
use purview::wire::client::{Act, Join, Leave, Teleport};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

use super::client::{Client, PATIENCE, Reply, connect, framed, hello, join, until_closed};
use super::{Attacker, DAY};

/// Arrays in arrays, deeper than any stack.
pub fn nested(depth: usize) -> Vec<u8> {
    [vec![0x91; depth], vec![0xc0]].concat()
}

fn noise(seed: u32) -> Vec<u8> {
    (0..200_u32).map(|i| (i.wrapping_mul(seed.wrapping_mul(31) | 1) >> 2) as u8).collect()
}

/// Connects and says nothing, until the server closes.
pub async fn silent(a: Attacker) {
    let to = if a.number.is_multiple_of(2) { a.targets.ws } else { a.targets.tcp };
    let Some(stream) = connect(a.source, to).await else { return a.refused() };
    a.done();
    if until_closed(stream, &[], Duration::from_secs(60)).await {
        a.refused();
    }
}

/// Sends bytes that are no messages: bare, before a hello, and after one.
pub async fn garbage(a: Attacker) {
    let (round, targets) = (a.done(), a.targets.clone());
    let deep = nested(10_000);
    let bare = match round % 5 {
        0 => noise(round),
        1 => framed(&noise(round)),
        2 => u32::MAX.to_be_bytes().to_vec(),
        // Half a message, followed by silence.
        3 => framed(&hello(&a.token("garbage")).encode())[..12].to_vec(),
        _ => framed(&deep),
    };
    let to = if round.is_multiple_of(2) { targets.ws } else { targets.tcp };
    let Some(stream) = connect(a.source, to).await else { return a.refused() };
    if until_closed(stream, &bare, Duration::from_secs(10)).await {
        a.refused();
    }
    let token = a.token(&format!("garbage {}", a.number));
    let Some((mut client, Reply::Welcome)) = Client::greet(a.source, targets.ws, &token).await
    else {
        return;
    };
    // A message whose body is nested, or noise.
    let body = if round.is_multiple_of(2) { [vec![0x92, 2], deep].concat() } else { noise(round) };
    if client.bytes(body).await && matches!(client.answer(PATIENCE).await, Reply::Refused) {
        a.refused();
    }
}

/// Frames of WebSocket that belong to no message: empty and without an end.
pub async fn empty_fragments(a: Attacker) {
    let token = a.token(&format!("fragments {}", a.number));
    let Some(mut client) = Client::play(a.source, a.targets.ws, &token).await else { return };
    // A binary message begins, and goes on with nothing, each masked with zeros.
    let first = [0x02, 0x80, 0, 0, 0, 0];
    let more = [0x00, 0x80, 0, 0, 0, 0].repeat(1_000);
    let begin = Instant::now();
    let mut open = client.bare().write_all(&first).await.is_ok();
    while open && begin.elapsed() < Duration::from_secs(5) {
        a.done();
        let sent = timeout(Duration::from_secs(5), client.bare().write_all(&more)).await;
        open = matches!(sent, Ok(Ok(()))) && !client.stay(Duration::from_millis(20)).await;
    }
    if !open {
        a.refused();
    }
}

/// All use one token, and stay.
pub async fn one_token(a: Attacker) {
    match Client::play(a.source, a.targets.ws, &a.token("everybody")).await {
        None => a.refused(),
        Some(mut client) => {
            a.done();
            // With one subject the last one to join replaces the others.
            if client.stay(Duration::from_secs(5)).await {
                a.refused();
            }
        }
    }
}

/// One session plays, another one has said hello and joins late; then they leave and come back at once.
pub async fn early_hello(a: Attacker) {
    let (source, to) = (a.source, a.targets.ws);
    let token = a.token(&format!("early {}", a.number));
    let Some(first) = Client::play(source, to, &token).await else { return a.refused() };
    let Some((mut late, Reply::Welcome)) = Client::greet(source, to, &token).await else {
        return a.refused();
    };
    sleep(Duration::from_millis(300)).await;
    if !matches!(late.ask(join()).await, Reply::Joined(_)) {
        return a.refused();
    }
    a.done();
    // The first one is replaced.
    let mut first = first;
    if first.stay(Duration::from_secs(5)).await {
        a.refused();
    }
    late.send(Leave {}).await;
    // Without waiting for `Left`, which means that all is stored.
    drop(late);
    for _ in 0..5 {
        match Client::play(source, to, &token).await {
            Some(_dropped) => {
                a.done();
            }
            None => a.refused(),
        }
    }
}

/// The longest actions, as fast as the rate allows and somewhat faster.
pub async fn actions(a: Attacker) {
    let token = a.token(&format!("loud {}", a.number));
    let Some(mut client) = Client::play(a.source, a.targets.ws, &token).await else { return };
    let begin = Instant::now();
    for seq in 1.. {
        let payload = vec![7; 1_024].into();
        if begin.elapsed() > Duration::from_secs(20)
            || !client.send(Act { seq: Seq(seq), payload, aim: None }).await
        {
            break;
        }
        a.done();
        if matches!(client.answer(Duration::from_millis(16)).await, Reply::Refused) {
            a.refused();
        }
    }
}

/// Places, planes, scenes and sights that are not the client's to choose.
pub async fn forbidden(a: Attacker) {
    let token = a.token(&format!("anywhere {}", a.number));
    let greeted = Client::greet(a.source, a.targets.ws, &token).await;
    let Some((mut client, Reply::Welcome)) = greeted else { return };
    // The scene lets nobody choose a sight.
    let sight = |bits| Some(RangeSet::from_bits(bits).expect("rings"));
    let anywhere = Pos { x: i32::MIN, y: i32::MAX, z: i32::MAX };
    let joins = [
        Join { pos: Some(Pos::ground(100, 100)), ..join() },
        Join { pos: Some(anywhere), ..join() },
        Join { plane: Some(Plane(7_777)), ..join() },
        Join { sight: sight(1), ..join() },
        Join { sight: sight(0), ..join() },
        Join { scene: "moon".into(), ..join() },
    ];
    for join in joins {
        a.done();
        match client.ask(join).await {
            Reply::Refused => a.refused(),
            Reply::Joined(joined) => return a.breach(format!("a forbidden join: {joined:?}")),
            _ => {}
        }
    }
    if !matches!(client.ask(join()).await, Reply::Joined(_)) {
        return;
    }
    let teleport = |seq, scene: Option<&str>, plane: Option<i32>, pos| {
        let scene = scene.map(str::to_owned);
        Teleport { seq: Seq(seq), scene, plane: plane.map(Plane), pos }
    };
    let near = Pos::ground(100, 100);
    let teleports = [
        teleport(1, None, None, near),
        teleport(2, None, Some(i32::MIN), near),
        teleport(3, Some("moon"), None, near),
        teleport(4, None, None, anywhere),
    ];
    for teleport in teleports {
        a.done();
        match client.ask(teleport).await {
            Reply::Refused => a.refused(),
            Reply::Joined(joined) => return a.breach(format!("a forbidden teleport: {joined:?}")),
            _ => {}
        }
    }
}

/// Tickets for everybody's players, signed with the same secret for another cluster.
pub async fn foreign_tickets(a: Attacker) {
    let subject = format!("foreigner {}", a.number);
    let token = a.token(&subject);
    let greeted = Client::greet(a.source, a.targets.ws, &token).await;
    let Some((mut client, Reply::Welcome)) = greeted else { return };
    let login = Login {
        subject: subject.clone(),
        expires_s: None,
        planes: Planes::Any,
        ..Login::default()
    };
    for entity in 1..20 {
        let entity = EntityId(entity);
        let pass = Pass { subject: subject.clone(), entity, scene: "meadow".into() };
        let ticket = a.targets.foreign.write(&pass, &login, DAY).expect("a ticket");
        a.done();
        match client.resume(ticket).await {
            Reply::Joined(joined) => return a.breach(format!("a foreign ticket: {joined:?}")),
            Reply::Refused => a.refused(),
            _ => {}
        }
    }
}
