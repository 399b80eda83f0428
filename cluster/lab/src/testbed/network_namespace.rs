//! A network of its own for a node of a [`LocalCluster`](super::local_cluster::LocalCluster), that can be cut off: from everybody, from
//! etcd and PostgreSQL alone, from its peers alone. What is cut are routes, so packets vanish and nobody is
//! told. Needs the right to make network namespaces.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

/// How many are made by one process at most; each has a number of its own in its addresses.
const MOST: u8 = 4;

static MADE: AtomicU8 = AtomicU8::new(0);

/// From what a node is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It reaches nobody.
    Everybody,
    /// It reaches its peers, and neither etcd nor PostgreSQL.
    Stores,
    /// It reaches etcd and PostgreSQL, and none of its peers.
    Peers,
}

/// Two addresses of this machine, and one of a network namespace from which both are reached. It ends when this does.
#[derive(Debug)]
pub struct Island {
    name: String,
    net: u8,
}

fn ip(args: &str) -> io::Result<()> {
    let output = Command::new("ip").args(args.split(' ')).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ip {args}: {}", said.trim())))
}

impl Island {
    /// Makes the network; its addresses are of 10.213.0.0/16 and 10.214.0.0/16.
    ///
    /// # Errors
    /// There is no `ip`, no right to make it, or this process has made as many as it may (four).
    pub fn make() -> io::Result<Island> {
        let pid = std::process::id();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        if made >= MOST {
            return Err(io::Error::other(format!("a process makes at most {MOST} networks")));
        }
        let net = (pid % 60) as u8 * MOST + made;
        let name = format!("pv{pid}-{made}");
        ip(&format!("netns add {name}"))?;
        let island = Island { name, net };
        let (ns, [outer, inner]) = (&island.name, island.links());
        ip(&format!("link add {outer} type veth peer name {inner} netns {ns}"))?;
        ip(&format!("addr add {}/24 dev {outer}", island.peers()))?;
        ip(&format!("addr add {}/24 dev {outer}", island.stores()))?;
        ip(&format!("link set {outer} up"))?;
        ip(&format!("-n {ns} addr add {}/24 dev {inner}", island.node()))?;
        ip(&format!("-n {ns} link set {inner} up"))?;
        ip(&format!("-n {ns} link set lo up"))?;
        ip(&format!("-n {ns} route add {}/32 dev {inner}", island.stores()))?;
        Ok(island)
    }

    fn links(&self) -> [String; 2] {
        [format!("pv{}o", self.net), format!("pv{}i", self.net)]
    }

    /// Where peers of the node are to listen.
    pub fn peers(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.net, 1)
    }

    /// Where it reaches etcd and PostgreSQL.
    fn stores(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 214, self.net, 1)
    }

    fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.net, 2)
    }

    /// What goes before the command of a process that runs there.
    pub fn within(&self) -> [String; 4] {
        ["ip", "netns", "exec", &self.name].map(str::to_owned)
    }

    /// The settings of a node that runs there, of a cluster with this etcd and this PostgreSQL, whose other members listen
    /// on [`Island::peers`]. Each call forwards two more ports, for as long as this process lives.
    ///
    /// # Errors
    /// One of the two is not at 127.0.0.1, or no port is free.
    pub fn settings(&self, etcd: &str, postgres: &str) -> io::Result<[String; 5]> {
        Ok([
            // The network is this machine's own.
            "cluster.insecure=true".to_owned(),
            format!("cluster.etcd={}", elsewhere(etcd, self.stores())?),
            format!("cluster.postgres={}", elsewhere(postgres, self.stores())?),
            format!("cluster.listen={}:0", self.node()),
            "console.listen=off".to_owned(),
        ])
    }

    /// From now on nothing passes between the node and these.
    ///
    /// # Errors
    /// The routes cannot be changed, or are cut already.
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

    /// From now on everything passes again.
    ///
    /// # Errors
    /// The routes cannot be changed, or were not cut.
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

    fn addresses(&self, cut: Cut) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let peers = (cut != Cut::Stores).then_some(self.peers());
        let stores = (cut != Cut::Peers).then_some(self.stores());
        peers.into_iter().chain(stores)
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        // The links go with it.
        if let Err(error) = ip(&format!("netns del {}", self.name)) {
            tracing::warn!(%error, "a network is left over");
        }
    }
}

/// What comes to `at` goes to a port of this machine; the port to which it comes.
fn forward(at: Ipv4Addr, port: u16) -> io::Result<u16> {
    let listener = TcpListener::bind((at, 0))?;
    let own = listener.local_addr()?.port();
    thread::spawn(move || {
        for from in listener.incoming() {
            // Where the other end is gone, this one is closed, too.
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

/// The same address as `http://127.0.0.1:2379` or `postgres://a:b@127.0.0.1:5432/c`, at another place from which its port is
/// forwarded.
fn elsewhere(url: &str, at: Ipv4Addr) -> io::Result<String> {
    let wrong = || io::Error::other(format!("{url} is not at 127.0.0.1 with a port"));
    let (head, tail) = url.split_once("127.0.0.1:").ok_or_else(wrong)?;
    let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    let port = forward(at, tail[..digits].parse().map_err(|_| wrong())?)?;
    Ok(format!("{head}{at}:{port}{}", &tail[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_elsewhere_is_forwarded_and_keeps_all_else() {
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
    fn an_address_that_is_not_here_is_named() {
        for url in ["http://10.0.0.1:2379", "http://127.0.0.1", "http://127.0.0.1:x/"] {
            let error = elsewhere(url, Ipv4Addr::LOCALHOST).unwrap_err().to_string();
            assert!(error.contains(url), "{error}");
        }
    }
}
