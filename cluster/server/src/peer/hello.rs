//! How a stream between two processes opens: who calls whom, in which words. What does not fit is
//! refused before anything is said.

use std::fmt;

use purview::wire::peer::{PEER_VERSION, PEER_VERSION_MIN};
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

/// The versions of the protocol that a process speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The oldest.
    pub lowest: u16,
    /// The newest.
    pub highest: u16,
}

impl Versions {
    /// Those of this release.
    pub const OURS: Versions = Versions { lowest: PEER_VERSION_MIN, highest: PEER_VERSION };

    /// The newest that both speak.
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

/// What a process says when it opens a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The cluster's name.
    pub cluster: String,
    /// What who calls can speak.
    pub versions: Versions,
    /// The process that calls.
    pub from: u64,
    /// The process that is called.
    pub to: u64,
    /// What the lane carries.
    pub kind: Kind,
}

const CLUSTER: &str = "purview-cluster";
const LOWEST: &str = "purview-version-lowest";
const HIGHEST: &str = "purview-version-highest";
/// In the answer: the version that is spoken.
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
    /// No version of the protocol is spoken by both.
    #[error(
        "this process speaks versions {here} of the protocol between processes, the caller {there}: \
         a rolling upgrade goes from one release to the next"
    )]
    Version {
        /// Ours.
        here: Versions,
        /// The caller's.
        there: Versions,
    },
    /// The process that is called is not this one: it ended, and this one has its address.
    #[error("this is process {here}; process {there} is not here any more")]
    Process {
        /// Ours.
        here: u64,
        /// Who was called.
        there: u64,
    },
    /// The certificate of the other side is another process's.
    #[error("the certificate is that of {shown}, and not of {claimed}")]
    Impostor {
        /// Whose it is.
        shown: String,
        /// Who the other side says that it is, or is held for.
        claimed: String,
    },
    /// The caller is not, or not yet, or not any more, known as a member of the cluster.
    #[error("process {0} is not a member of the cluster")]
    Stranger(u64),
}

/// What a caller is told that is no member.
pub(super) const STRANGER: Code = Code::PermissionDenied;

impl From<Refused> for Status {
    fn from(why: Refused) -> Status {
        let code = match why {
            Refused::Incomplete(_) => Code::InvalidArgument,
            Refused::Cluster { .. } | Refused::Version { .. } => Code::FailedPrecondition,
            Refused::Process { .. } => Code::NotFound,
            Refused::Stranger(_) => STRANGER,
            Refused::Impostor { .. } => Code::Unauthenticated,
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
        put(LOWEST, self.versions.lowest.to_string());
        put(HIGHEST, self.versions.highest.to_string());
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
            versions: Versions { lowest: number(from, LOWEST)?, highest: number(from, HIGHEST)? },
            from: number(from, FROM)?,
            to: number(from, TO)?,
            kind: kind.ok_or(Refused::Incomplete(KIND))?,
        })
    }

    /// Whether it is meant for process `here` of `cluster`, which speaks `ours`; the version to speak.
    pub(super) fn check(&self, cluster: &str, here: u64, ours: Versions) -> Result<u16, Refused> {
        if self.cluster != cluster {
            let (here, there) = (cluster.to_owned(), self.cluster.clone());
            return Err(Refused::Cluster { here, there });
        }
        let there = self.versions;
        let version = ours.common(there).ok_or(Refused::Version { here: ours, there })?;
        if self.to != here {
            return Err(Refused::Process { here, there: self.to });
        }
        Ok(version)
    }
}

/// What a process answers that lets a lane be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// The version to speak.
    pub version: u16,
    /// The number of the message that is due.
    pub want: u64,
}

impl Welcome {
    /// Writes it where the caller reads it.
    pub(super) fn write(self, into: &mut MetadataMap) {
        into.insert(WANT, MetadataValue::from(self.want));
        into.insert(VERSION, MetadataValue::from(self.version));
    }

    /// Reads it.
    pub(super) fn read(from: &MetadataMap) -> Result<Welcome, Refused> {
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
    fn what_is_written_is_read_and_what_is_missing_is_named() {
        let mut map = MetadataMap::new();
        hello().write(&mut map);
        assert_eq!(Hello::read(&map), Ok(hello()));
        map.remove(LOWEST);
        assert_eq!(Hello::read(&map), Err(Refused::Incomplete(LOWEST)));
        hello().write(&mut map);
        map.insert(KIND, MetadataValue::from_static("letters"));
        assert_eq!(Hello::read(&map), Err(Refused::Incomplete(KIND)));
        let welcome = Welcome { version: 3, want: u64::MAX };
        let mut map = MetadataMap::new();
        welcome.write(&mut map);
        assert_eq!(Welcome::read(&map), Ok(welcome));
    }

    #[test]
    fn another_cluster_or_process_is_refused_by_name() {
        let ours = Versions::OURS;
        assert_eq!(hello().check("c", 1, ours), Ok(PEER_VERSION));
        let other = Refused::Cluster { here: "d".into(), there: "c".into() };
        assert_eq!(hello().check("d", 1, ours), Err(other));
        assert_eq!(hello().check("c", 2, ours), Err(Refused::Process { here: 2, there: 1 }));
    }

    #[test]
    fn the_newest_version_that_both_speak_is_spoken_and_without_one_both_are_named() {
        let versions = |lowest, highest| Versions { lowest, highest };
        let agreed = |here, there| {
            let hello = Hello { versions: there, ..hello() };
            hello.check("c", 1, here)
        };
        // This release and the next, either way around.
        assert_eq!(agreed(versions(1, 1), versions(1, 2)), Ok(1));
        assert_eq!(agreed(versions(1, 2), versions(1, 1)), Ok(1));
        assert_eq!(agreed(versions(1, 2), versions(2, 3)), Ok(2));
        assert_eq!(agreed(versions(3, 7), versions(1, 9)), Ok(7));
        let (here, there) = (versions(1, 1), versions(2, 3));
        assert_eq!(agreed(here, there), Err(Refused::Version { here, there }));
        let text = Refused::Version { here, there }.to_string();
        assert!(text.contains("1 to 1") && text.contains("2 to 3"), "{text}");
        // What is no range is spoken by nobody.
        assert!(agreed(versions(1, 3), versions(3, 1)).is_err());
    }
}
