//! Clients that are late, and clients that send too much: both are read more slowly, and only a flood that lasts is
//! closed.

use std::time::Duration;

use purview::scene::{Pos, Seq};
use purview::wire::CloseCode;
use purview::wire::client::Ping;
use purview_client::{Client, ClientError, Event, join};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::Background;
use tokio::time::{Instant, interval, timeout};

use crate::common::dev_token;

const PATIENCE: Duration = Duration::from_secs(60);

/// Ticks of 100 ms within which all that a stall had kept is applied.
const CATCH_UP_TICKS: u64 = 10;

fn server() -> Background {
    let text = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"off\"\n\
                [token]\nduplicate = \"allow\"\n\
                [[scene]]\nname = \"meadow\"\nwidth = \"512m\"\ndepth = \"512m\"\nmoves = \"trusted\"\n\
                teleports = \"clients\"\n";
    Background::start(Config::parse(text).unwrap(), Tokens::dev()).unwrap()
}

/// A client that steps `hz` times a second, stalls for so many seconds, and then delivers what it has kept. Gives the
/// ticks between the answer to a ping behind it all and the frame that acknowledges it all.
async fn stalls(url: String, hz: u64, stall_s: u64) -> u64 {
    let mut client = Client::connect(&url, &dev_token("ann")).await.unwrap();
    client.join(join("meadow")).await.unwrap();
    let (mut sender, mut receiver) = client.split();
    let step = Duration::from_micros(1_000_000 / hz);
    let mut clock = interval(step);
    let (mut stepped, mut last) = (0_u64, Seq(0));
    let place = |n: u64| Pos::ground(1_000 + (n % 50) as i32, 1_000);
    let (stalled, ends) = (2 * hz, (2 + stall_s) * hz);
    // It walks, and then it cannot send; it reads all the time.
    while stepped < ends {
        tokio::select! {
            _ = clock.tick() => {
                stepped += 1;
                if stepped <= stalled {
                    last = sender.send_move(place(stepped)).await.unwrap();
                }
            }
            event = receiver.next() => {
                let event = event.unwrap();
                assert!(!matches!(event, Event::Closed { .. }), "{hz} Hz, {stall_s} s: {event:?}");
            }
        }
    }
    let newest = newest_tick(&mut receiver).await;
    for n in stalled..ends {
        last = sender.send_move(place(n)).await.unwrap();
    }
    loop {
        match timeout(PATIENCE, receiver.next()).await.expect("it is not silent").unwrap() {
            Event::Frame(frame) => {
                assert!(frame.refused.is_empty(), "{:?}", frame.refused);
                if frame.ack >= last {
                    return frame.tick.0 - newest;
                }
            }
            Event::Closed { code, detail } => {
                panic!("{hz} Hz, {stall_s} s: closed with {code:?}: {detail}")
            }
            _ => {}
        }
    }
}

async fn newest_tick(receiver: &mut purview_client::Receiver) -> u64 {
    loop {
        if let Event::Frame(frame) = receiver.next().await.unwrap() {
            return frame.tick.0;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_clients_that_stall_are_never_closed_and_catch_up() {
    let server = server();
    let url = server.reach().url().unwrap();
    let all = [10, 20, 30, 60].into_iter().flat_map(|hz| [1, 5, 9].map(|stall_s| (hz, stall_s)));
    let stalling = all.map(|(hz, stall_s)| {
        let url = url.clone();
        async move { (hz, stall_s, tokio::spawn(stalls(url, hz, stall_s)).await.unwrap()) }
    });
    for (hz, stall_s, ticks) in futures::future::join_all(stalling).await {
        assert!(ticks <= CATCH_UP_TICKS, "{hz} Hz, {stall_s} s: {ticks} ticks");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_read_slowly_and_closed_when_it_lasts() {
    let server = server();
    let url = server.reach().url().unwrap();
    let mut client = Client::connect(&url, &dev_token("ann")).await.unwrap();
    client.join(join("meadow")).await.unwrap();
    let limit = u64::from(client.welcome().rate_limit);
    let (mut sender, mut receiver) = client.split();
    let begun = Instant::now();
    let floods = async {
        loop {
            // It is not told when the session ends: the connection breaks.
            if sender.send(Ping { nonce: 7 }).await.is_err() {
                return std::future::pending::<()>().await;
            }
        }
    };
    let mut pongs = 0_u64;
    let hears = async {
        loop {
            match receiver.next().await {
                Ok(Event::Pong(_)) => pongs += 1,
                Ok(Event::Closed { code, .. }) | Err(ClientError::Closed { code, .. }) => {
                    return code;
                }
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let code = timeout(PATIENCE, async {
        tokio::select! {
            () = floods => None,
            code = hears => code,
        }
    });
    assert_eq!(code.await.expect("it is closed"), Some(CloseCode::Rate));
    let lasted_s = begun.elapsed().as_secs();
    assert!(lasted_s >= 9, "closed after {lasted_s} s");
    // The burst, and then as much as is read.
    let most = 1_000 + limit * (lasted_s + 2);
    assert!(pongs > limit * 5 && pongs <= most, "{pongs} of at most {most}");
}
