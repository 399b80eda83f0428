//! Gateways are replaced behind a load balancer that notices their end late.

use serde_json::Value;

use crate::world::{pause, with_world_of};

const SESSIONS: u32 = 500;

/// The largest share of the sessions that a gateway ends within one second of its lame duck time, which has ten.
const LARGEST_SHARE: f64 = 0.25;

/// The resumes of each second, one list for each gateway that ended: seconds without any are between them.
fn ends(each_s: &[u64]) -> Vec<Vec<u64>> {
    const QUIET: usize = 4;
    let (mut ends, mut quiet) = (Vec::<Vec<u64>>::new(), QUIET);
    for &resumes in each_s {
        match ends.last_mut() {
            _ if resumes == 0 => quiet += 1,
            Some(end) if quiet < QUIET => {
                end.extend(std::iter::repeat_n(0, quiet).chain([resumes]));
                quiet = 0;
            }
            _ => {
                ends.push(vec![resumes]);
                quiet = 0;
            }
        }
    }
    ends
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/slow-load-balancer"]
fn gateways_end_behind_a_slow_load_balancer_and_no_client_is_refused() {
    let files = ["five-hundred-bots", "slow-load-balancer"]
        .map(|file| format!("cluster/cli/tests/deployment/rehearsals/{file}.yaml"));
    with_world_of("rehearsals::slow_load_balancer", &files.each_ref().map(|f| &**f), |world| {
        world.up(&[]);
        world.wait_whole("gateway-1");
        let (_, report) = world.bots(SESSIONS, 150, &["--json"], |world| {
            world.wait_players(SESSIONS);
            for gateway in ["gateway-1", "gateway-2"] {
                println!("{gateway} replaced in {:.1} s", world.replace(gateway).as_secs_f64());
                pause(10);
            }
        });
        let json = report.lines().find(|line| line.starts_with('{'));
        let json: Value = serde_json::from_str(json.unwrap_or_else(|| panic!("{report}"))).unwrap();
        let number = |name: &str| json[name].as_u64().unwrap();
        let counts = ["players", "not_joined", "refused", "resumed", "failed_attempts"];
        for name in counts {
            println!("{name:<20}{}", number(name));
        }
        let each_s: Vec<u64> = serde_json::from_value(json["resumed_each_s"].clone()).unwrap();
        let mut ends = ends(&each_s);
        for end in &ends {
            println!("resumes each second {end:?}");
        }
        // A busy machine may lose a few connections besides.
        ends.retain(|end| end.iter().sum::<u64>() > u64::from(SESSIONS / 10));
        let said = format!("{json}\n{}", world.logs());
        assert_eq!(counts.map(number)[..3], [SESSIONS.into(), 0, 0], "{said}");
        assert_eq!(number("failed_attempts"), 0, "{said}");
        let examples = json["examples"].to_string();
        assert!(!examples.contains("cut_off"), "{said}");
        assert_eq!(ends.len(), 2, "{said}");
        for end in ends {
            let (most, all) = (end.iter().max().copied().unwrap_or(0), end.iter().sum::<u64>());
            let share = most as f64 / all as f64;
            println!("== {all} resumes, at most {most} in a second ({:.0} %)", share * 100.0);
            assert!(share <= LARGEST_SHARE, "{said}");
        }
    });
}
