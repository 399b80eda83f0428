//! Admission, by what it admits, refuses and evicts.

use super::*;

fn admission(max_sessions: u64, max_waiting: usize) -> Arc<AdmissionControl> {
    let limits = AddressLimits {
        connections: 4,
        handshakes: 2,
        failed_tokens: 3,
        block: Duration::from_secs(90),
        exempt: Vec::new(),
    };
    let bounds = Bounds {
        sessions: max_sessions,
        waiting: max_waiting,
        per_subject: 3,
        refuses_when_full: true,
    };
    AdmissionControl::new(limits, bounds, Arc::default())
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

fn is_evicted(evicted: &mut oneshot::Receiver<()>) -> bool {
    evicted.try_recv().is_ok()
}

#[test]
fn waiting_connections_use_no_session() {
    let admission = admission(1, 100);
    let idle: Vec<_> = (0..50).map(|i| admission.admit(ip(&format!("10.0.0.{i}")))).collect();
    assert!(idle.iter().all(Result::is_ok));
    let (honest, _evicted) = admission.admit(ip("10.0.1.1")).unwrap();
    assert!(honest.log_in(None).is_ok() && honest.log_in(None).is_ok());
    assert_eq!(admission.admit(ip("10.0.1.2")).err(), Some(AdmissionError::Full));
    // A valid hello that arrives when the last session is in use.
    let (late, _evicted) = idle.into_iter().next().unwrap().unwrap();
    assert_eq!((late.log_in(None), late.refusal()), (Err(NotIn::Full), Some(NotIn::Full)));
    drop(honest);
    assert_eq!((late.log_in(None), late.refusal()), (Ok(()), None));
    assert_eq!(admission.counters.sessions_total.load(Ordering::Relaxed), 2);
}

#[test]
fn connections_and_handshakes_per_address_are_limited() {
    let admission = admission(100, 100);
    let (first, mut first_evicted) = admission.admit(ip("10.0.0.1")).unwrap();
    let (second, mut second_evicted) = admission.admit(ip("10.0.0.1")).unwrap();
    first.log_in(None).unwrap();
    let third = admission.admit(ip("10.0.0.1")).unwrap();
    // The oldest connection that still waits is evicted.
    let fourth = admission.admit(ip("10.0.0.1")).unwrap();
    assert!(!is_evicted(&mut first_evicted) && is_evicted(&mut second_evicted));
    assert_eq!((second.log_in(None), second.refusal()), (Err(NotIn::Evicted), None));
    assert_eq!(admission.admit(ip("10.0.0.1")).err(), Some(AdmissionError::Address(4)));
    assert!(admission.admit(ip("10.0.0.2")).is_ok());
    drop((first, second, third, fourth));
    assert!(admission.admit(ip("10.0.0.1")).is_ok());
    let state = admission.state.lock();
    assert!(state.addresses.is_empty() && state.networks.is_empty() && state.sessions == 0);
}

#[test]
fn the_address_with_most_connections_loses_one() {
    let admission = admission(100, 3);
    let mut many = [0; 2].map(|_| admission.admit(ip("10.0.0.1")).unwrap());
    let mut one = admission.admit(ip("10.0.0.2")).unwrap();
    let mut new = admission.admit(ip("10.0.0.3")).unwrap();
    assert!(is_evicted(&mut many[0].1) && !is_evicted(&mut many[1].1));
    assert!(!is_evicted(&mut one.1) && !is_evicted(&mut new.1));
    assert_eq!([one.0.log_in(None), new.0.log_in(None)], [Ok(()); 2]);
}

#[tokio::test(start_paused = true)]
async fn failed_tokens_block_their_address_for_a_while() {
    let admission = admission(100, 100);
    let fail = |addr, n| {
        for _ in 0..n {
            admission.admit(ip(addr)).unwrap().0.fail();
        }
    };
    fail("10.0.0.1", 2);
    tokio::time::advance(failures::FAILURES_OVER).await;
    fail("10.0.0.1", 3);
    let refused = admission.admit(ip("10.0.0.1")).err();
    assert_eq!(refused, Some(AdmissionError::Blocked(Duration::from_secs(90))));
    assert!(admission.admit(ip("10.0.0.2")).is_ok());
    tokio::time::advance(Duration::from_secs(90)).await;
    assert!(admission.admit(ip("10.0.0.1")).is_ok());
}

#[test]
fn an_ipv6_network_has_no_more_than_its_share_however_many_addresses_it_uses() {
    let admission = admission(10_000, 10_000);
    let admit = |number: u32| admission.admit(ip(&format!("2001:db8:1:{number:x}::1")));
    let mut held: Vec<_> = (0..64).map(|number| admit(number).unwrap()).collect();
    // Two handshakes of an address, and of the network 16 times as many.
    let evicted: usize = held.iter_mut().map(|(_, evicted)| usize::from(is_evicted(evicted))).sum();
    assert_eq!((evicted, admission.state.lock().waiting.len()), (32, 32));
    assert_eq!(admit(64).err(), Some(AdmissionError::Network(64)));
    assert!(admission.admit(ip("2001:db8:2::1")).is_ok());
    for number in 0..48 {
        held[number % 64].0.fail();
    }
    drop(held);
    assert!(matches!(admit(99).err(), Some(AdmissionError::Blocked(_))), "3 x 16 failures");
}

#[test]
fn of_equally_busy_sources_the_longest_wait_ends() {
    let admission = admission(100, 3);
    let mut held: Vec<_> = ["10.0.0.2", "10.0.0.1", "10.0.0.9", "10.0.0.5", "10.0.0.8"]
        .map(|addr| admission.admit(ip(addr)).unwrap())
        .into();
    let evicted: Vec<bool> = held.iter_mut().map(|(_, evicted)| is_evicted(evicted)).collect();
    assert_eq!(evicted, [true, true, false, false, false]);
}

#[test]
fn a_connection_costs_the_same_however_many_addresses_wait() {
    let addr = |number: u32| Some(IpAddr::from(std::net::Ipv4Addr::from(number)));
    // The shortest time of some rounds, in which each connection evicts another one.
    let shortest = |most: u32| {
        let admission = admission(1, most as usize);
        let mut held: Vec<_> = (0..most).map(|number| admission.admit(addr(number))).collect();
        let mut round = |round: u32| {
            let start = std::time::Instant::now();
            let new = (0..200).map(|number| admission.admit(addr(most + round * 200 + number)));
            held.extend(new);
            start.elapsed()
        };
        let shortest = (0..10).map(&mut round).min().unwrap();
        assert_eq!(admission.state.lock().waiting.len(), most as usize);
        shortest
    };
    let (few, many) = (shortest(100), shortest(20_000));
    // A scan of all addresses costs two hundred times as much.
    assert!(many < few * 20, "{few:?} and {many:?}");
}

#[test]
fn a_subject_fills_no_more_than_its_own_sessions() {
    let admission = admission(100, 100);
    let admit = |number: u8| admission.admit(ip(&format!("10.0.0.{number}"))).unwrap();
    let held: Vec<_> = (0..10).map(admit).collect();
    let in_now = held.iter().filter(|(ticket, _)| ticket.log_in(Some("mallory")).is_ok()).count();
    assert_eq!((in_now, admission.state.lock().sessions), (3, 3));
    assert_eq!(held[9].0.refusal(), Some(NotIn::Subject(3)));
    let (honest, _evicted) = admit(200);
    assert_eq!(honest.log_in(Some("alice")), Ok(()));
    drop(held);
    assert_eq!(admit(201).0.log_in(Some("mallory")), Ok(()));
    drop(honest);
    assert!(admission.state.lock().subjects.is_empty() && admission.state.lock().sessions == 0);
}
