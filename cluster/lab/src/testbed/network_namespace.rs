//! A network namespace for a node of a [`LocalCluster`](super::local_cluster::LocalCluster). The node can be cut off
//! from all other processes, from etcd and PostgreSQL alone, or from its peers alone. A cut removes routes, so
//! packets vanish and neither side is told. A firewall may also refuse its peers: then both sides are told so, though
//! both live. Needs the right to create network namespaces.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

/// The greatest number of namespaces of a process; each has its number in its addresses.
const MOST: u8 = 4;

static MADE: AtomicU8 = AtomicU8::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    AllProcesses,
    Stores,
    Peers,
}

/// A network namespace with two addresses of this machine that it can reach. It ends when this value is dropped.
#[derive(Debug)]
pub struct NetworkNamespace {
    name: String,
    net: u8,
}

fn ip(args: &str) -> io::Result<()> {
    run(Command::new("ip").args(args.split(' ')))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}", said.trim())))
}

impl NetworkNamespace {
    /// Creates the namespace. Its addresses are in 10.213.0.0/16 and 10.214.0.0/16.
    pub fn create() -> io::Result<NetworkNamespace> {
        let pid = std::process::id();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        if made >= MOST {
            return Err(io::Error::other(format!(
                "a process creates at most {MOST} network namespaces"
            )));
        }
        let net = (pid % 60) as u8 * MOST + made;
        let name = format!("pv{pid}-{made}");
        ip(&format!("netns add {name}"))?;
        let namespace = NetworkNamespace { name, net };
        let (ns, [outer, inner]) = (&namespace.name, namespace.links());
        ip(&format!("link add {outer} type veth peer name {inner} netns {ns}"))?;
        ip(&format!("addr add {}/24 dev {outer}", namespace.peers()))?;
        ip(&format!("addr add {}/24 dev {outer}", namespace.stores()))?;
        ip(&format!("link set {outer} up"))?;
        ip(&format!("-n {ns} addr add {}/24 dev {inner}", namespace.node()))?;
        ip(&format!("-n {ns} link set {inner} up"))?;
        ip(&format!("-n {ns} link set lo up"))?;
        ip(&format!("-n {ns} route add {}/32 dev {inner}", namespace.stores()))?;
        Ok(namespace)
    }

    fn links(&self) -> [String; 2] {
        [format!("pv{}o", self.net), format!("pv{}i", self.net)]
    }

    /// The address at which the peers of the node must listen.
    pub fn peers(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.net, 1)
    }

    /// The address at which the node reaches etcd and PostgreSQL.
    fn stores(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 214, self.net, 1)
    }

    fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.net, 2)
    }

    /// The command prefix of a process in the namespace.
    pub fn within(&self) -> [String; 4] {
        ["ip", "netns", "exec", &self.name].map(str::to_owned)
    }

    /// The settings of a node in the namespace, for a cluster with this etcd and this PostgreSQL whose other members
    /// listen on [`NetworkNamespace::peers`]. Each call forwards two more ports, for the life of this process.
    pub fn settings(&self, etcd: &str, postgres: &str) -> io::Result<[String; 5]> {
        Ok([
            // The network belongs to this machine alone.
            "cluster.insecure=true".to_owned(),
            format!("cluster.etcd={}", elsewhere(etcd, self.stores())?),
            format!("cluster.postgres={}", elsewhere(postgres, self.stores())?),
            format!("cluster.listen={}:0", self.node()),
            "console.listen=off".to_owned(),
        ])
    }

    pub fn cut(&self, from: Cut) -> io::Result<()> {
        let ns = &self.name;
        for address in self.addresses(from) {
            if address == self.stores() {
                ip(&format!("-n {ns} route del {address}/32"))?;
            }
            ip(&format!("-n {ns} route add blackhole {address}/32"))?;
        }
        Ok(())
    }

    pub fn mend(&self, from: Cut) -> io::Result<()> {
        let (ns, [_, inner]) = (&self.name, self.links());
        for address in self.addresses(from) {
            ip(&format!("-n {ns} route del blackhole {address}/32"))?;
            if address == self.stores() {
                ip(&format!("-n {ns} route add {address}/32 dev {inner}"))?;
            }
        }
        Ok(())
    }

    /// A firewall at the node answers all between it and its peers with a reset, or does so no more.
    pub fn refuse(&self, refuses: bool) -> io::Result<()> {
        let change = if refuses { "--append" } else { "--delete" };
        for (chain, end) in [("OUTPUT", "--destination"), ("INPUT", "--source")] {
            let within = self.within();
            let peers = self.peers().to_string();
            let rule = ["iptables", change, chain, "--protocol", "tcp", end, &peers];
            let reset = ["--jump", "REJECT", "--reject-with", "tcp-reset"];
            run(Command::new(&within[0]).args(&within[1..]).args(rule).args(reset))?;
        }
        Ok(())
    }

    fn addresses(&self, cut: Cut) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let peers = (cut != Cut::Stores).then_some(self.peers());
        let stores = (cut != Cut::Peers).then_some(self.stores());
        peers.into_iter().chain(stores)
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        // The links are removed with it.
        if let Err(error) = ip(&format!("netns del {}", self.name)) {
            tracing::warn!(%error, "a network namespace is left over");
        }
    }
}

/// Forwards connections to `at` to a port of this machine. Returns the port of `at`.
fn forward(at: Ipv4Addr, port: u16) -> io::Result<u16> {
    let listener = TcpListener::bind((at, 0))?;
    let own = listener.local_addr()?.port();
    thread::spawn(move || {
        for from in listener.incoming() {
            // If the other end is gone, this connection is closed, too.
            if let (Ok(from), Ok(to)) = (from, TcpStream::connect(("127.0.0.1", port))) {
                let Ok(both) = both_ways(from, to) else { continue };
                for (mut from, mut to) in both {
                    thread::spawn(move || {
                        // Either end may close.
                        let _bytes = io::copy(&mut from, &mut to).unwrap_or(0);
                        let _closed = to.shutdown(std::net::Shutdown::Write).is_ok();
                    });
                }
            }
        }
    });
    Ok(own)
}

fn both_ways(a: TcpStream, b: TcpStream) -> io::Result<[(TcpStream, TcpStream); 2]> {
    Ok([(a.try_clone()?, b.try_clone()?), (b, a)])
}

/// The address with another host, and a port that is forwarded to the original one. The address is one such as
/// `http://127.0.0.1:2379` or `postgres://a:b@127.0.0.1:5432/c`.
fn elsewhere(url: &str, at: Ipv4Addr) -> io::Result<String> {
    let wrong = || io::Error::other(format!("{url} is not an address of 127.0.0.1 with a port"));
    let (head, tail) = url.split_once("127.0.0.1:").ok_or_else(wrong)?;
    let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    let port = forward(at, tail[..digits].parse().map_err(|_| wrong())?)?;
    Ok(format!("{head}{at}:{port}{}", &tail[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_address_keeps_everything_but_host_and_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("postgres://a:b@127.0.0.1:{port}/c?x=1");
        let there = elsewhere(&url, Ipv4Addr::LOCALHOST).unwrap();
        let own = there.strip_prefix("postgres://a:b@127.0.0.1:").unwrap();
        let own = own.strip_suffix("/c?x=1").unwrap();
        assert_ne!(own, port.to_string());
        let mut client = TcpStream::connect(format!("127.0.0.1:{own}")).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        io::Write::write_all(&mut client, b"hello").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(io::read_to_string(&mut server).unwrap(), "hello");
    }

    #[test]
    fn an_address_on_another_machine_is_an_error_that_names_it() {
        for url in ["http://10.0.0.1:2379", "http://127.0.0.1", "http://127.0.0.1:x/"] {
            let error = elsewhere(url, Ipv4Addr::LOCALHOST).unwrap_err().to_string();
            assert!(error.contains(url), "{error}");
        }
    }
}
