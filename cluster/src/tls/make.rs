//! Makes an authority and certificates for each role of a cluster, for development and for tests.
//!
//! By rcgen, of the makers of rustls: it signs with the ring that is in the tree anyway, and adds three small crates.
//! The program `openssl` would have to be installed wherever this runs, and says what it does
//! differently from version to version.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

/// The authority's file, without its ending.
pub const AUTHORITY: &str = "ca";

/// The name by which nodes and gateways are known to etcd and to PostgreSQL: the common name of their
/// certificates, which PostgreSQL holds against the user's (`clientcert=verify-full`).
pub const USER: &str = "purview";

/// Certificates hold from this long before they are made: clocks of machines differ.
const BEFORE: Duration = Duration::from_secs(3_600);

const DAY: Duration = Duration::from_secs(86_400);

/// Who has a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The name of its files, without their ending.
    pub name: &'static str,
    /// The common name.
    user: &'static str,
    /// Whether it calls others, and not only answers.
    calls: bool,
}

/// Every role. An etcd calls itself and its like.
pub const ROLES: [Role; 4] = [
    Role { name: "node", user: USER, calls: true },
    Role { name: "gateway", user: USER, calls: true },
    Role { name: "etcd", user: "etcd", calls: true },
    Role { name: "postgres", user: "postgres", calls: false },
];

/// Why certificates are not made. No file was left behind.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// There is something already.
    #[error("{0:?} is there already and is not overwritten: name another folder")]
    There(PathBuf),
    /// The system does not let it.
    #[error("{path:?}: {source}")]
    System {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What stands for a host can be no host's name.
    #[error("{name:?} is no name or address of a host: {cause}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The files: certificates (`.pem`) and keys (`.key`).
    pub files: Vec<PathBuf>,
    /// When all of it runs out.
    pub until: SystemTime,
}

/// What stands in a file.
struct Page {
    path: PathBuf,
    text: String,
}

/// Makes an authority and a certificate for each role, all for the hosts `names`, in `folder`, which is made
/// if it is missing. Only the owner may read the files.
///
/// # Errors
/// [`MakeError`].
pub fn make(folder: &Path, names: &[String], days: u32) -> Result<Made, MakeError> {
    for name in names {
        check_name(name)?;
    }
    let until = SystemTime::now() + DAY * days;
    let pages = pages(folder, names, until)?;
    if let Some(there) = pages.iter().find(|page| page.path.symlink_metadata().is_ok()) {
        return Err(MakeError::There(there.path.clone()));
    }
    let made_folder = !folder.exists();
    let mut builder = DirBuilder::new();
    let system = |path: &Path| {
        let path = path.to_owned();
        move |source| MakeError::System { path, source }
    };
    builder.recursive(true).mode(0o700).create(folder).map_err(system(folder))?;
    for (i, page) in pages.iter().enumerate() {
        if let Err(source) = write(page) {
            // Half of it is of no use to anybody. What cannot be removed is named by the error's folder.
            let gone = pages[..i].iter().all(|page| std::fs::remove_file(&page.path).is_ok());
            if gone && made_folder {
                std::fs::remove_dir(folder).map_err(system(folder))?;
            }
            return Err(match source.kind() {
                std::io::ErrorKind::AlreadyExists => MakeError::There(page.path.clone()),
                _ => MakeError::System { path: page.path.clone(), source },
            });
        }
    }
    Ok(Made { files: pages.into_iter().map(|page| page.path).collect(), until })
}

fn check_name(name: &str) -> Result<(), MakeError> {
    let unfit = |cause: &str| Err(MakeError::Name { name: name.into(), cause: cause.into() });
    if name.parse::<std::net::IpAddr>().is_ok() {
        return Ok(());
    }
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(inner)
            && !label.starts_with('-')
    };
    let rest = name.strip_prefix("*.").unwrap_or(name);
    match rest.len() <= 253 && rest.split('.').all(label) {
        true => Ok(()),
        false => unfit("want, for example, node-3.internal, *.internal or 10.0.0.3"),
    }
}

/// Writes a file that was not there and that only its owner may read.
fn write(page: &Page) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&page.path);
    file.and_then(|mut file| {
        file.write_all(page.text.as_bytes())?;
        file.sync_all()
    })
}

/// A distinguished name.
fn subject(common: &str, unit: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Purview, for development");
    name.push(DnType::OrganizationalUnitName, unit);
    name.push(DnType::CommonName, common);
    name
}

fn params(names: &[String], until: SystemTime) -> Result<CertificateParams, MakeError> {
    let mut params = CertificateParams::new(names)?;
    params.not_before = (SystemTime::now() - BEFORE).into();
    params.not_after = until.into();
    Ok(params)
}

/// All files and what stands in them.
fn pages(folder: &Path, names: &[String], until: SystemTime) -> Result<Vec<Page>, MakeError> {
    let mut pages = Vec::new();
    let mut put = |name: &str, certificate: String, key: &KeyPair| {
        let path = |ending| folder.join(format!("{name}.{ending}"));
        pages.push(Page { path: path("pem"), text: certificate });
        pages.push(Page { path: path("key"), text: key.serialize_pem() });
    };
    let mut authority = params(&[], until)?;
    authority.distinguished_name = subject("Purview development authority", AUTHORITY);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    put(AUTHORITY, authority.self_signed(&key)?.pem(), &key);
    let issuer = Issuer::new(authority, key);
    for role in ROLES {
        let mut own = params(names, until)?;
        own.distinguished_name = subject(role.user, role.name);
        own.use_authority_key_identifier_extension = true;
        own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        if role.calls {
            own.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        let key = KeyPair::generate()?;
        put(role.name, own.signed_by(&key, &issuer)?.pem(), &key);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::TlsSettings;
    use crate::tls::{Tls, TlsError};

    fn made() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("certs");
        make(&folder, &["localhost".into(), "127.0.0.1".into()], 2).unwrap();
        (place, folder)
    }

    fn settings(folder: &Path, certificate: &str, key: &str) -> TlsSettings {
        TlsSettings {
            certificate: folder.join(certificate),
            key: folder.join(key),
            authority: folder.join("ca.pem"),
        }
    }

    #[test]
    fn files_are_their_owners_alone_and_are_read_back() {
        let (_place, folder) = made();
        let mut names: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let want = ["ca", "etcd", "gateway", "node", "postgres"]
            .map(|name| [format!("{name}.key"), format!("{name}.pem")]);
        assert_eq!(names, want.concat());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert!(names.iter().all(|name| mode(&folder.join(name)) == 0o600));
        for Role { name, .. } in ROLES {
            let settings = settings(&folder, &format!("{name}.pem"), &format!("{name}.key"));
            Tls::load(&settings).unwrap();
        }
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_half_done_is_left() {
        let (place, folder) = made();
        let before = std::fs::read(folder.join("node.key")).unwrap();
        let again = make(&folder, &["localhost".into()], 2).unwrap_err();
        assert!(matches!(again, MakeError::There(path) if path == folder.join("ca.pem")));
        assert_eq!(std::fs::read(folder.join("node.key")).unwrap(), before);
        let other = place.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("etcd.key"), "mine").unwrap();
        let refused = make(&other, &["localhost".into()], 2).unwrap_err();
        assert!(matches!(refused, MakeError::There(path) if path == other.join("etcd.key")));
        assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
        for name in ["", "a b", "-a", "a..b", "http://a"] {
            let refused = make(&place.path().join("third"), &[name.into()], 2);
            assert!(matches!(refused, Err(MakeError::Name { .. })), "{name:?}");
        }
        assert!(!place.path().join("third").exists());
    }

    #[test]
    fn what_is_no_certificate_or_key_is_named() {
        let (_place, folder) = made();
        let wrong = |certificate, key| Tls::load(&settings(&folder, certificate, key)).unwrap_err();
        let key_of = |error| match error {
            TlsError::Unreadable { key, .. } => (key, "unreadable"),
            TlsError::Unfit { key, .. } => (key, "unfit"),
            other => panic!("{other}"),
        };
        assert_eq!(
            key_of(wrong("none.pem", "node.key")),
            ("cluster.tls.certificate", "unreadable")
        );
        assert_eq!(key_of(wrong("node.key", "node.key")), ("cluster.tls.certificate", "unfit"));
        assert_eq!(key_of(wrong("node.pem", "ca.pem")), ("cluster.tls.key", "unfit"));
        assert_eq!(key_of(wrong("node.pem", "gateway.key")), ("cluster.tls.key", "unfit"));
    }
}
