//! How a stream between two processes opens: who calls whom, in which words. What does not fit is
//! refused before anything is said.

use purview::wire::peer::PEER_VERSION;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// What a lane carries. Each has a connection of its own, so that neither waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// For regions: ghosts, negotiation, handoffs, inputs.
    Regions,
    /// For sessions: frames and news.
    Sessions,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Regions, Kind::Sessions];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Regions => "regions",
            Kind::Sessions => "sessions",
        }
    }
}

/// What a process says when it opens a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The cluster's name.
    pub cluster: String,
    /// [`PEER_VERSION`] of who calls.
    pub version: u16,
    /// The process that calls.
    pub from: u64,
    /// The process that is called.
    pub to: u64,
    /// What the lane carries.
    pub kind: Kind,
}

const CLUSTER: &str = "purview-cluster";
const VERSION: &str = "purview-version";
const FROM: &str = "purview-from";
const TO: &str = "purview-to";
const KIND: &str = "purview-lane";
/// In the answer: the number of the message that is due.
const WANT: &str = "purview-want";

/// Why a stream is not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A part of the hello is missing or is not what it should be.
    #[error("the stream opens without a sound {0}")]
    Incomplete(&'static str),
    /// Another cluster.
    #[error("this is cluster {here:?}, not {there:?}: check [cluster] name on both sides")]
    Cluster {
        /// Ours.
        here: String,
        /// The caller's.
        there: String,
    },
    /// Another version of the protocol.
    #[error(
        "this process speaks version {PEER_VERSION} of the protocol between processes, the caller {0}"
    )]
    Version(u16),
    /// The process that is called is not this one: it ended, and this one has its address.
    #[error("this is process {here}; process {there} is not here any more")]
    Process {
        /// Ours.
        here: u64,
        /// Who was called.
        there: u64,
    },
    /// The caller is not, or not yet, or not any more, known as a member of the cluster.
    #[error("process {0} is not a member of the cluster")]
    Stranger(u64),
}

impl From<Refused> for Status {
    fn from(why: Refused) -> Status {
        let code = match why {
            Refused::Incomplete(_) => Code::InvalidArgument,
            Refused::Cluster { .. } | Refused::Version(_) => Code::FailedPrecondition,
            Refused::Process { .. } => Code::NotFound,
            Refused::Stranger(_) => Code::PermissionDenied,
        };
        Status::new(code, why.to_string())
    }
}

fn text<'a>(of: &'a MetadataMap, key: &'static str) -> Result<&'a str, Refused> {
    of.get(key).and_then(|v| v.to_str().ok()).ok_or(Refused::Incomplete(key))
}

fn number<N: std::str::FromStr>(of: &MetadataMap, key: &'static str) -> Result<N, Refused> {
    text(of, key)?.parse().map_err(|_| Refused::Incomplete(key))
}

impl Hello {
    /// Writes it where the other side reads it.
    pub(super) fn write(&self, into: &mut MetadataMap) {
        let mut put = |key, value: String| {
            if let Ok(value) = MetadataValue::try_from(value) {
                into.insert(key, value);
            }
        };
        put(CLUSTER, self.cluster.clone());
        put(VERSION, self.version.to_string());
        put(FROM, self.from.to_string());
        put(TO, self.to.to_string());
        put(KIND, self.kind.word().to_owned());
    }

    /// Reads it.
    pub(super) fn read(from: &MetadataMap) -> Result<Hello, Refused> {
        let kind = text(from, KIND)?;
        let kind = Kind::ALL.into_iter().find(|k| k.word() == kind);
        Ok(Hello {
            cluster: text(from, CLUSTER)?.to_owned(),
            version: number(from, VERSION)?,
            from: number(from, FROM)?,
            to: number(from, TO)?,
            kind: kind.ok_or(Refused::Incomplete(KIND))?,
        })
    }

    /// Whether it is meant for process `here` of `cluster`.
    pub(super) fn check(&self, cluster: &str, here: u64) -> Result<(), Refused> {
        if self.cluster != cluster {
            let (here, there) = (cluster.to_owned(), self.cluster.clone());
            return Err(Refused::Cluster { here, there });
        }
        if self.version != PEER_VERSION {
            return Err(Refused::Version(self.version));
        }
        if self.to != here {
            return Err(Refused::Process { here, there: self.to });
        }
        Ok(())
    }
}

/// Writes which message is due.
pub(super) fn write_want(want: u64, into: &mut MetadataMap) {
    into.insert(WANT, MetadataValue::from(want));
}

/// Reads which message is due.
pub(super) fn read_want(from: &MetadataMap) -> Result<u64, Refused> {
    number(from, WANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        let (cluster, kind) = ("c".into(), Kind::Sessions);
        Hello { cluster, version: PEER_VERSION, from: 3, to: 1, kind }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_missing_is_named() {
        let mut map = MetadataMap::new();
        hello().write(&mut map);
        assert_eq!(Hello::read(&map), Ok(hello()));
        map.remove(VERSION);
        assert_eq!(Hello::read(&map), Err(Refused::Incomplete(VERSION)));
        hello().write(&mut map);
        map.insert(KIND, MetadataValue::from_static("letters"));
        assert_eq!(Hello::read(&map), Err(Refused::Incomplete(KIND)));
    }

    #[test]
    fn another_cluster_version_or_process_is_refused_by_name() {
        assert_eq!(hello().check("c", 1), Ok(()));
        let other = Refused::Cluster { here: "d".into(), there: "c".into() };
        assert_eq!(hello().check("d", 1), Err(other));
        let newer = Hello { version: PEER_VERSION + 1, ..hello() };
        assert_eq!(newer.check("c", 1), Err(Refused::Version(PEER_VERSION + 1)));
        assert_eq!(hello().check("c", 2), Err(Refused::Process { here: 2, there: 1 }));
    }
}
