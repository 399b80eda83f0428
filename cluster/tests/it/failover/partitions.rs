//! A node in a network of its own is cut off: from everybody, from etcd and PostgreSQL alone, from its peers alone. What is cut
//! are routes, so packets vanish and nobody is told. Needs the right to make network namespaces.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use super::trial::Trial;

/// Two addresses of this machine, and one of a namespace from which both are reached.
struct Network {
    name: String,
    net: u8,
}

static MADE: AtomicU8 = AtomicU8::new(0);

fn ip(args: &str) -> io::Result<()> {
    let output = Command::new("ip").args(args.split(' ')).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(io::Error::other(format!("ip {args}: {said}")))
        }
    }
}

impl Network {
    fn make() -> io::Result<Network> {
        let pid = std::process::id();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let net = (pid % 120) as u8 * 2 + made % 2;
        let name = format!("pv{pid}-{made}");
        ip(&format!("netns add {name}"))?;
        let network = Network { name, net };
        let (ns, [outer, inner]) = (&network.name, network.links());
        ip(&format!("link add {outer} type veth peer name {inner} netns {ns}"))?;
        ip(&format!("addr add {}/24 dev {outer}", network.peers()))?;
        ip(&format!("addr add {}/24 dev {outer}", network.stores()))?;
        ip(&format!("link set {outer} up"))?;
        ip(&format!("-n {ns} addr add {}/24 dev {inner}", network.node()))?;
        ip(&format!("-n {ns} link set {inner} up"))?;
        ip(&format!("-n {ns} link set lo up"))?;
        ip(&format!("-n {ns} route add {}/32 dev {inner}", network.stores()))?;
        Ok(network)
    }

    fn links(&self) -> [String; 2] {
        [format!("pv{}o", self.net), format!("pv{}i", self.net)]
    }

    /// Where peers of the node listen.
    fn peers(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.net, 1)
    }

    /// Where it reaches etcd and PostgreSQL.
    fn stores(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 214, self.net, 1)
    }

    fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.net, 2)
    }

    /// From now on nothing reaches an address of this machine from the namespace.
    fn cut(&self, address: Ipv4Addr) {
        let ns = &self.name;
        if address == self.stores() {
            ip(&format!("-n {ns} route del {address}/32")).unwrap();
        }
        ip(&format!("-n {ns} route add blackhole {address}/32")).unwrap();
    }

    fn mend(&self, address: Ipv4Addr) {
        let (ns, [_, inner]) = (&self.name, self.links());
        ip(&format!("-n {ns} route del blackhole {address}/32")).unwrap();
        if address == self.stores() {
            ip(&format!("-n {ns} route add {address}/32 dev {inner}")).unwrap();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The links go with it.
        if let Err(error) = ip(&format!("netns del {}", self.name)) {
            eprintln!("{error}");
        }
    }
}

/// What comes to `at` goes to a port of this machine; the port to which it comes.
fn forward(at: Ipv4Addr, port: u16) -> u16 {
    let listener = TcpListener::bind((at, 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for from in listener.incoming() {
            let (Ok(from), Ok(to)) = (from, TcpStream::connect(("127.0.0.1", port))) else {
                continue;
            };
            for (mut a, mut b) in [(from.try_clone().unwrap(), to.try_clone().unwrap()), (to, from)]
            {
                std::thread::spawn(move || {
                    // Either end may close.
                    let _bytes = io::copy(&mut a, &mut b).unwrap_or(0);
                    let _closed = b.shutdown(std::net::Shutdown::Write).is_ok();
                });
            }
        }
    });
    own
}

/// The port of an address such as `http://127.0.0.1:2379` or `postgres://a:b@127.0.0.1:5432/c`, and the same
/// address elsewhere.
fn elsewhere(url: &str, at: Ipv4Addr) -> String {
    let (head, tail) = url.split_once("127.0.0.1:").expect("it is on this machine");
    let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    let port = forward(at, tail[..digits].parse().unwrap());
    format!("{head}{at}:{port}{}", &tail[digits..])
}

/// A cluster on which everybody walks, with one more node in a network of its own, that owns some of the
/// regions; `None` where there is no right to make one.
fn trial() -> Option<(Network, Trial)> {
    let network = match Network::make() {
        Ok(network) => network,
        Err(error) => {
            eprintln!("skipped: no network namespaces here: {error}");
            return None;
        }
    };
    let mut trial = Trial::listening(network.peers().into(), 2);
    let etcd = elsewhere(&trial.cluster.etcd().url(), network.stores());
    let postgres = elsewhere(&trial.cluster.postgres().url(), network.stores());
    let within = ["ip", "netns", "exec", &network.name].map(str::to_owned);
    let set = [
        format!("cluster.etcd={etcd}"),
        format!("cluster.postgres={postgres}"),
        format!("cluster.listen={}:0", network.node()),
        "console.listen=off".to_owned(),
    ];
    trial.cluster.add_node_within("island".into(), &within, &set).unwrap();
    trial.owns("island", 2);
    trial.settles("before anything is cut");
    Some((network, trial))
}

#[test]
fn a_node_that_is_cut_off_from_everybody_is_replaced_and_not_believed_when_it_is_back() {
    let Some((network, trial)) = trial() else { return };
    for address in [network.peers(), network.stores()] {
        network.cut(address);
    }
    trial.walk(7);
    trial.owns("island", 0);
    trial.settles("without it");
    assert!(trial.has_taken_over());
    for address in [network.peers(), network.stores()] {
        network.mend(address);
    }
    trial.walk(4);
    trial.settles("after it is back");
    let island = trial.cluster.nodes().last().unwrap();
    assert!(island.said().contains("lease is gone"), "it knows: {}", island.said());
}

#[test]
fn a_node_that_is_cut_off_from_its_stores_alone_stops_and_others_take_over() {
    let Some((network, trial)) = trial() else { return };
    network.cut(network.stores());
    trial.walk(7);
    trial.owns("island", 0);
    trial.settles("without it, and it still reaches its peers");
    assert!(trial.has_taken_over());
    network.mend(network.stores());
    trial.walk(3);
    trial.settles("after it is back");
}

#[test]
fn a_node_that_is_cut_off_from_its_peers_alone_goes_on_where_it_was() {
    let Some((network, trial)) = trial() else { return };
    network.cut(network.peers());
    // Its players are held; all others play on.
    trial.walk(4);
    network.mend(network.peers());
    trial.walk(4);
    trial.settles("after the links are back");
    trial.owns("island", 2);
    assert!(!trial.has_taken_over(), "it kept its lease");
}
