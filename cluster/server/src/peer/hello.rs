//! The handshake that opens a stream between two processes: identities and versions. A stream that
//! does not fit must be refused before any message. `dial` writes hellos, `serve` checks them.

use std::fmt;

use purview::wire::peer::{PEER_VERSION, PEER_VERSION_MIN};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// The content of a channel. Each kind has a connection of its own, so that neither waits for the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// For regions: ghosts, negotiation, handoffs, inputs.
    Regions,
    /// For sessions: frames and notifications.
    Sessions,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Regions, Kind::Sessions];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Regions => "regions",
            Kind::Sessions => "sessions",
        }
    }
}

/// The versions of the peer protocol that a process supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub lowest: u16,
    pub highest: u16,
}

impl Versions {
    pub const OURS: Versions = Versions { lowest: PEER_VERSION_MIN, highest: PEER_VERSION };

    pub fn common(self, other: Versions) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.lowest, self.highest)
    }
}

/// The caller's metadata when it opens a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub cluster: String,
    pub versions: Versions,
    pub from: u64,
    pub to: u64,
    pub kind: Kind,
}

const CLUSTER: &str = "purview-cluster";
const LOWEST: &str = "purview-version-lowest";
const HIGHEST: &str = "purview-version-highest";
/// In the answer: the negotiated version.
const VERSION: &str = "purview-version";
const FROM: &str = "purview-from";
const TO: &str = "purview-to";
const KIND: &str = "purview-channel";
/// In the answer: the number of the next expected message.
const WANT: &str = "purview-want";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    #[error("the stream's metadata lack a valid {0}")]
    Incomplete(&'static str),
    #[error("this is cluster {here:?}, not {there:?}: check [cluster] name on both sides")]
    Cluster { here: String, there: String },
    #[error(
        "this process speaks versions {here} of the peer protocol, the caller {there}: \
         upgrade one release at a time"
    )]
    Version { here: Versions, there: Versions },
    #[error("this is process {here}; process {there} has ended")]
    Process { here: u64, there: u64 },
    #[error("the certificate belongs to {shown}, not to {claimed}")]
    Impostor { shown: String, claimed: String },
    #[error("process {0} is not a member of the cluster")]
    Stranger(u64),
}

/// The status code for a caller that is not a member.
pub(super) const STRANGER: Code = Code::PermissionDenied;

impl From<HelloError> for Status {
    fn from(why: HelloError) -> Status {
        let code = match why {
            HelloError::Incomplete(_) => Code::InvalidArgument,
            HelloError::Cluster { .. } | HelloError::Version { .. } => Code::FailedPrecondition,
            HelloError::Process { .. } => Code::NotFound,
            HelloError::Stranger(_) => STRANGER,
            HelloError::Impostor { .. } => Code::Unauthenticated,
        };
        Status::new(code, why.to_string())
    }
}

fn text<'a>(of: &'a MetadataMap, key: &'static str) -> Result<&'a str, HelloError> {
    of.get(key).and_then(|v| v.to_str().ok()).ok_or(HelloError::Incomplete(key))
}

fn number<N: std::str::FromStr>(of: &MetadataMap, key: &'static str) -> Result<N, HelloError> {
    text(of, key)?.parse().map_err(|_| HelloError::Incomplete(key))
}

impl Hello {
    pub(super) fn write(&self, into: &mut MetadataMap) {
        let mut put = |key, value: String| {
            if let Ok(value) = MetadataValue::try_from(value) {
                into.insert(key, value);
            }
        };
        put(CLUSTER, self.cluster.clone());
        put(LOWEST, self.versions.lowest.to_string());
        put(HIGHEST, self.versions.highest.to_string());
        put(FROM, self.from.to_string());
        put(TO, self.to.to_string());
        put(KIND, self.kind.name().to_owned());
    }

    pub(super) fn read(from: &MetadataMap) -> Result<Hello, HelloError> {
        let kind = text(from, KIND)?;
        let kind = Kind::ALL.into_iter().find(|k| k.name() == kind);
        Ok(Hello {
            cluster: text(from, CLUSTER)?.to_owned(),
            versions: Versions { lowest: number(from, LOWEST)?, highest: number(from, HIGHEST)? },
            from: number(from, FROM)?,
            to: number(from, TO)?,
            kind: kind.ok_or(HelloError::Incomplete(KIND))?,
        })
    }

    /// Checks that the hello is meant for process `here` of `cluster`, which supports `ours`;
    /// returns the version to speak.
    pub(super) fn check(
        &self,
        cluster: &str,
        here: u64,
        ours: Versions,
    ) -> Result<u16, HelloError> {
        if self.cluster != cluster {
            let (here, there) = (cluster.to_owned(), self.cluster.clone());
            return Err(HelloError::Cluster { here, there });
        }
        let there = self.versions;
        let version = ours.common(there).ok_or(HelloError::Version { here: ours, there })?;
        if self.to != here {
            return Err(HelloError::Process { here, there: self.to });
        }
        Ok(version)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    pub version: u16,
    /// The number of the next expected message.
    pub want: u64,
}

impl Welcome {
    pub(super) fn write(self, into: &mut MetadataMap) {
        into.insert(WANT, MetadataValue::from(self.want));
        into.insert(VERSION, MetadataValue::from(self.version));
    }

    pub(super) fn read(from: &MetadataMap) -> Result<Welcome, HelloError> {
        Ok(Welcome { version: number(from, VERSION)?, want: number(from, WANT)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        let (cluster, kind) = ("c".into(), Kind::Sessions);
        Hello { cluster, versions: Versions::OURS, from: 3, to: 1, kind }
    }

    #[test]
    fn a_hello_reads_back_and_a_missing_part_is_named() {
        let mut map = MetadataMap::new();
        hello().write(&mut map);
        assert_eq!(Hello::read(&map), Ok(hello()));
        map.remove(LOWEST);
        assert_eq!(Hello::read(&map), Err(HelloError::Incomplete(LOWEST)));
        hello().write(&mut map);
        map.insert(KIND, MetadataValue::from_static("streams"));
        assert_eq!(Hello::read(&map), Err(HelloError::Incomplete(KIND)));
        let welcome = Welcome { version: 3, want: u64::MAX };
        let mut map = MetadataMap::new();
        welcome.write(&mut map);
        assert_eq!(Welcome::read(&map), Ok(welcome));
    }

    #[test]
    fn another_cluster_or_process_is_refused_by_name() {
        let ours = Versions::OURS;
        assert_eq!(hello().check("c", 1, ours), Ok(PEER_VERSION));
        let other = HelloError::Cluster { here: "d".into(), there: "c".into() };
        assert_eq!(hello().check("d", 1, ours), Err(other));
        assert_eq!(hello().check("c", 2, ours), Err(HelloError::Process { here: 2, there: 1 }));
    }

    #[test]
    fn the_newest_common_version_is_spoken_and_without_one_both_ranges_are_named() {
        let versions = |lowest, highest| Versions { lowest, highest };
        let agreed = |here, there| {
            let hello = Hello { versions: there, ..hello() };
            hello.check("c", 1, here)
        };
        // This release and the next, in both directions.
        assert_eq!(agreed(versions(1, 1), versions(1, 2)), Ok(1));
        assert_eq!(agreed(versions(1, 2), versions(1, 1)), Ok(1));
        assert_eq!(agreed(versions(1, 2), versions(2, 3)), Ok(2));
        assert_eq!(agreed(versions(3, 7), versions(1, 9)), Ok(7));
        let (here, there) = (versions(1, 1), versions(2, 3));
        assert_eq!(agreed(here, there), Err(HelloError::Version { here, there }));
        let text = HelloError::Version { here, there }.to_string();
        assert!(text.contains("1 to 1") && text.contains("2 to 3"), "{text}");
        // An inverted range matches nothing.
        assert!(agreed(versions(1, 3), versions(3, 1)).is_err());
    }
}
