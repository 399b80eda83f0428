//! Makes an authority and certificates for the stores and processes of a cluster, for development
//! and tests; called by `purview certs`. Keys must be readable by their owner only.
//!
//! It uses rcgen, by the makers of rustls: rcgen signs with ring, which is a dependency anyway. The
//! program `openssl` would have to be installed, and differs from version to version.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use super::{Named, ProcessRole};

/// The authority's file, without its ending.
pub const AUTHORITY: &str = "ca";

/// The name by which nodes are known to etcd and to PostgreSQL: the common name of their
/// certificates, which PostgreSQL holds against the user's (`clientcert=verify-full`).
pub const USER: &str = "purview";

/// The same of gateways, which have rights of their own there.
pub const GATEWAY_USER: &str = "purview_gateway";

/// The name of a cluster that is given no other.
pub const CLUSTER: &str = "purview";

/// Certificates hold from this long before they are made: clocks of machines differ.
const BEFORE: Duration = Duration::from_secs(3_600);

const DAY: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// The name of its files, without their ending.
    pub name: &'static str,
    user: &'static str,
    /// Whether it calls others, and not only answers.
    calls: bool,
}

/// The roles of stores. An etcd calls itself and its like.
const STORES: [Role; 2] = [
    Role { name: "etcd", user: "etcd", calls: true },
    Role { name: "postgres", user: "postgres", calls: false },
];

fn role_of(process: ProcessRole) -> Role {
    let user = match process {
        ProcessRole::Node => USER,
        ProcessRole::Gateway => GATEWAY_USER,
    };
    Role { name: process.name(), user, calls: true }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order<'a> {
    pub cluster: &'a str,
    /// Its processes, each with its name, which is also that of its files.
    pub processes: &'a [(ProcessRole, String)],
    pub hosts: &'a [String],
    pub days: u32,
}

/// Why no certificates were made. No file was left behind.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    #[error("{0:?} is there already and is not overwritten: name another folder")]
    There(PathBuf),
    #[error("{path:?}: {source}")]
    System { path: PathBuf, source: std::io::Error },
    #[error(
        "{0:?} cannot name a process and its files: use letters, digits, '-', '_', '.' and ':', each name once, \
         and neither ca, etcd nor postgres"
    )]
    Process(String),
    #[error("{path:?}: is not the key of an authority, as `purview certs` makes it: {cause}")]
    Authority { path: PathBuf, cause: String },
    #[error("{name:?} is not a host name or address: {cause}")]
    Name { name: String, cause: String },
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The files: certificates (`.pem`) and keys (`.key`).
    pub files: Vec<PathBuf>,
    pub until: SystemTime,
}

struct Page {
    path: PathBuf,
    text: String,
}

/// The processes for which certificates are made unless others are named: one for each role, of its
/// name.
pub fn one_of_each() -> [(ProcessRole, String); 2] {
    [ProcessRole::Node, ProcessRole::Gateway].map(|role| (role, role.name().to_owned()))
}

/// Makes an authority and certificates for the stores and for one process of each role, all for the
/// hosts `names`, in `folder`. As [`make_all`], for a cluster of the default name.
pub fn make(folder: &Path, names: &[String], days: u32) -> Result<Made, MakeError> {
    let order = Order { cluster: CLUSTER, processes: &one_of_each(), hosts: names, days };
    make_all(folder, &order)
}

/// Makes an authority, and certificates for the stores and for the processes of a cluster, in
/// `folder`, which is made if it is missing. Only the owner may read the files.
pub fn make_all(folder: &Path, order: &Order<'_>) -> Result<Made, MakeError> {
    check(order)?;
    let until = SystemTime::now() + DAY * order.days;
    let key = KeyPair::generate()?;
    let authority = authority(until)?;
    let mut pages = Pages { folder, until, all: Vec::new() };
    pages.put(AUTHORITY, authority.self_signed(&key)?.pem(), &key);
    let issuer = Issuer::new(authority, key);
    for role in STORES {
        pages.sign(role, role.name, order.hosts, None, &issuer)?;
    }
    pages.sign_processes(order, &issuer)?;
    pages.write()
}

/// Makes certificates for more processes of a cluster, signed by the authority that [`make_all`]
/// has made in `folder`.
pub fn make_more(folder: &Path, order: &Order<'_>) -> Result<Made, MakeError> {
    check(order)?;
    let path = folder.join(format!("{AUTHORITY}.key"));
    let system = |source| MakeError::System { path: path.clone(), source };
    let text = std::fs::read_to_string(&path).map_err(system)?;
    let key = KeyPair::from_pem(&text);
    let key = key.map_err(|e| MakeError::Authority { path, cause: e.to_string() })?;
    let until = SystemTime::now() + DAY * order.days;
    // It is always called the same.
    let issuer = Issuer::new(authority(until)?, key);
    let mut pages = Pages { folder, until, all: Vec::new() };
    pages.sign_processes(order, &issuer)?;
    pages.write()
}

/// Writes files, all of them or none.
fn write_all(folder: &Path, pages: Vec<Page>, until: SystemTime) -> Result<Made, MakeError> {
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
            // Half of it is of no use. What cannot be removed is named by the error's folder.
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

fn check(order: &Order<'_>) -> Result<(), MakeError> {
    order.hosts.iter().try_for_each(|host| check_name(host))?;
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
    let mut seen = vec![AUTHORITY, "etcd", "postgres"];
    for (_, name) in order.processes {
        let fits = !name.is_empty() && name.len() <= 200 && name.bytes().all(inner);
        if !fits || name.starts_with('.') || seen.contains(&name.as_str()) {
            return Err(MakeError::Process(name.clone()));
        }
        seen.push(name);
    }
    Ok(())
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

fn authority(until: SystemTime) -> Result<CertificateParams, MakeError> {
    let mut authority = params(&[], until)?;
    authority.distinguished_name = subject("Purview development authority", AUTHORITY);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(authority)
}

struct Pages<'a> {
    folder: &'a Path,
    until: SystemTime,
    all: Vec<Page>,
}

impl Pages<'_> {
    fn put(&mut self, name: &str, certificate: String, key: &KeyPair) {
        let path = |ending| self.folder.join(format!("{name}.{ending}"));
        let pages = [(path("pem"), certificate), (path("key"), key.serialize_pem())];
        self.all.extend(pages.map(|(path, text)| Page { path, text }));
    }

    fn sign(
        &mut self,
        role: Role,
        file: &str,
        hosts: &[String],
        named: Option<Named>,
        issuer: &Issuer<'_, KeyPair>,
    ) -> Result<(), MakeError> {
        let mut own = params(hosts, self.until)?;
        own.distinguished_name = subject(role.user, role.name);
        own.use_authority_key_identifier_extension = true;
        own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        if role.calls {
            own.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        if let Some(named) = named {
            own.subject_alt_names.push(SanType::URI(named.to_string().try_into()?));
        }
        let key = KeyPair::generate()?;
        self.put(file, own.signed_by(&key, issuer)?.pem(), &key);
        Ok(())
    }

    fn sign_processes(
        &mut self,
        order: &Order<'_>,
        issuer: &Issuer<'_, KeyPair>,
    ) -> Result<(), MakeError> {
        for (role, name) in order.processes {
            let cluster = order.cluster.to_owned();
            let named = Named { cluster, role: *role, name: name.clone() };
            self.sign(role_of(*role), name, order.hosts, Some(named), issuer)?;
        }
        Ok(())
    }

    fn write(self) -> Result<Made, MakeError> {
        write_all(self.folder, self.all, self.until)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::tls::{Tls, TlsError, TlsSettings};

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
        for name in ["node", "gateway", "etcd", "postgres"] {
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
    fn each_process_has_its_own_name_and_more_are_made_by_the_same_authority() {
        let (_place, folder) = made();
        let named = |file: &str| {
            let text = std::fs::read(folder.join(file)).unwrap();
            let certificate = CertificateDer::from_pem_slice(&text).unwrap();
            Named::of(Some(&[certificate]))
        };
        let process =
            |role, name: &str| Named { cluster: "purview".into(), role, name: name.into() };
        assert_eq!(named("node.pem"), Ok(process(ProcessRole::Node, "node")));
        assert_eq!(named("gateway.pem"), Ok(process(ProcessRole::Gateway, "gateway")));
        assert_eq!(named("etcd.pem"), Err(crate::tls::Untrusted::Nameless));
        let hosts = ["localhost".to_owned()];
        let more = [(ProcessRole::Node, "host-7:7790".to_owned())];
        let order = Order { cluster: "purview", processes: &more, hosts: &hosts, days: 2 };
        assert_eq!(make_more(&folder, &order).unwrap().files.len(), 2);
        assert_eq!(named("host-7:7790.pem"), Ok(process(ProcessRole::Node, "host-7:7790")));
        Tls::load(&settings(&folder, "host-7:7790.pem", "host-7:7790.key")).unwrap();
        assert!(matches!(make_more(&folder, &order), Err(MakeError::There(_))));
        for name in ["", "a/b", "..", ".a", "ca", "etcd", "a b"] {
            let processes = [(ProcessRole::Node, name.to_owned())];
            let refused = make_more(&folder, &Order { processes: &processes, ..order.clone() });
            assert!(matches!(refused, Err(MakeError::Process(_))), "{name:?}");
        }
        std::fs::write(folder.join("ca.key"), "no key").unwrap();
        assert!(matches!(make_more(&folder, &order), Err(MakeError::Authority { .. })));
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
