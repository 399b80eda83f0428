//! Starts PostgreSQL on this machine.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::child::{Run, Running};
use super::server::{Server, Setup, on_free_ports};
use super::{DataFolder, ServerError, find, free_port, system};
use crate::random::random_hex;
use crate::tls::TlsSettings;

/// The user and the database of the cluster's checkpoints.
const NAME: &str = "purview";

/// The user that runs PostgreSQL when this process runs as root, which PostgreSQL refuses.
const USER: &str = "postgres";

/// A PostgreSQL on this machine.
pub type PostgresServer = Server<PostgresSetup>;

pub struct PostgresSetup {
    place: DataFolder,
    port: u16,
    user: Option<&'static str>,
    password: String,
    /// Whether clients must show a certificate of their user.
    secure: bool,
}

impl Server<PostgresSetup> {
    /// Starts a PostgreSQL and waits until it is ready. With `dir` the data stays there and is synced to disk; without
    /// `dir` it is deleted at the end. A process of root starts it as the user `postgres`, which then owns `dir` and
    /// must be able to reach it.
    pub fn start(dir: Option<&Path>) -> Result<PostgresServer, ServerError> {
        PostgresServer::start_as(dir, None)
    }

    /// The same over TLS alone, for clients with a certificate whose common name is
    /// [`crate::tls::make::USER`], and knows the password.
    pub fn start_secure(
        dir: Option<&Path>,
        tls: &TlsSettings,
    ) -> Result<PostgresServer, ServerError> {
        PostgresServer::start_as(dir, Some(tls))
    }

    fn start_as(
        dir: Option<&Path>,
        tls: Option<&TlsSettings>,
    ) -> Result<PostgresServer, ServerError> {
        let mut setup = PostgresSetup::new(dir)?;
        if let Some(tls) = tls {
            setup.secure(tls)?;
        }
        let running = on_free_ports(|| {
            setup.port = free_port()?;
            setup.start()
        })?;
        Ok(Server { running, setup })
    }

    /// The address with the password: `postgres://purview:password@127.0.0.1:port/postgres`.
    pub fn url(&self) -> String {
        let PostgresSetup { port, password, .. } = &self.setup;
        format!("postgres://{NAME}:{password}@127.0.0.1:{port}/postgres")
    }

    /// The address without the password: `postgres://purview@127.0.0.1:port/postgres`.
    pub fn address(&self) -> String {
        format!("postgres://{NAME}@127.0.0.1:{}/postgres", self.setup.port)
    }

    pub fn password_file(&self) -> PathBuf {
        self.setup.password_file()
    }
}

impl PostgresSetup {
    fn new(dir: Option<&Path>) -> Result<PostgresSetup, ServerError> {
        let root = rustix::process::geteuid().is_root();
        let mut setup = PostgresSetup {
            place: DataFolder::new(dir)?,
            port: 0,
            user: root.then_some(USER),
            password: String::new(),
            secure: false,
        };
        setup.password = setup.password()?;
        if !setup.data().join("PG_VERSION").exists() {
            setup.init()?;
        }
        Ok(setup)
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("postgres")
    }

    fn password_file(&self) -> PathBuf {
        self.place.path().join("postgres.password")
    }

    /// The password of an existing database, or a new one.
    fn password(&self) -> Result<String, ServerError> {
        let path = self.password_file();
        let what = || path.display().to_string();
        if let Ok(password) = std::fs::read_to_string(&path) {
            return Ok(password);
        }
        let password =
            random_hex().map_err(|no| system("a password")(std::io::Error::other(no)))?;
        let file = File::options().create_new(true).write(true).mode(0o600).open(&path);
        let mut file = file.map_err(system(what()))?;
        file.write_all(password.as_bytes()).map_err(system(what()))?;
        if let Some((user, group)) = self.ids()? {
            chown(&path, Some(user), Some(group)).map_err(system(what()))?;
            let place = self.place.path();
            chown(place, Some(user), Some(group)).map_err(system(place.display().to_string()))?;
        }
        Ok(password)
    }

    /// Installs the certificate and requires one of clients.
    fn secure(&mut self, tls: &TlsSettings) -> Result<(), ServerError> {
        self.secure = true;
        let copies = [("crt", &tls.certificate), ("key", &tls.key), ("authority", &tls.authority)];
        for (ending, from) in copies {
            let text = std::fs::read(from).map_err(system(from.display().to_string()))?;
            self.write(&self.certificate(ending), &text)?;
        }
        // `verify-full` would compare the common name with the user's name: on one machine gateways
        // log in as nodes do, and their certificates have another one.
        let rule = "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n";
        self.write(&self.data().join("pg_hba.conf"), rule.as_bytes())
    }

    fn certificate(&self, ending: &str) -> PathBuf {
        self.place.path().join(format!("server.{ending}"))
    }

    /// Writes a file that only the user of the server may read.
    fn write(&self, path: &Path, text: &[u8]) -> Result<(), ServerError> {
        let what = || path.display().to_string();
        let file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text)).map_err(system(what()))?;
        match self.ids()? {
            Some((user, group)) => chown(path, Some(user), Some(group)).map_err(system(what())),
            None => Ok(()),
        }
    }

    fn ids(&self) -> Result<Option<(u32, u32)>, ServerError> {
        let Some(user) = self.user else { return Ok(None) };
        let id = |flag| {
            let output = Command::new("id").args([flag, user]).output().map_err(system("id"))?;
            let number = String::from_utf8_lossy(&output.stdout).trim().parse();
            number.map_err(|_| find::missing("postgres", "postgresql"))
        };
        Ok(Some((id("-u")?, id("-g")?)))
    }

    fn init(&self) -> Result<(), ServerError> {
        let file = find::of_postgres("initdb")?;
        let password = self.password_file();
        let mut args = vec![
            format!("--pgdata={}", self.data().display()),
            format!("--username={NAME}"),
            format!("--pwfile={}", password.display()),
            "--auth=scram-sha-256".into(),
            "--encoding=UTF8".into(),
            "--no-locale".into(),
        ];
        if !self.place.stays() {
            args.push("--no-sync".into());
        }
        let output = self.command("initdb", &file, args).command()?.output();
        let output = output.map_err(system("starting initdb"))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ServerError::NotUp { program: "initdb", cause: output.status.to_string(), log })
    }

    fn settings(&self) -> impl Iterator<Item = String> {
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            // The default directory of its sockets belongs to Debian's own server.
            "unix_socket_directories=".into(),
            format!("fsync={}", if self.place.stays() { "on" } else { "off" }),
            "shared_buffers=32MB".into(),
        ];
        let path = |ending| self.certificate(ending).display().to_string();
        let encrypted = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", path("crt")),
            format!("ssl_key_file={}", path("key")),
            format!("ssl_ca_file={}", path("authority")),
        ];
        settings.into_iter().chain(encrypted.into_iter().filter(|_| self.secure))
    }

    fn command<'a>(&self, program: &'static str, file: &'a Path, args: Vec<String>) -> Run<'a> {
        Run {
            program,
            file,
            args,
            log: self.place.path().join("postgres.log"),
            // A fast shutdown if the data stays, an immediate one if not.
            end: if self.place.stays() { Signal::INT } else { Signal::QUIT },
            // SIGKILL would leave the processes of its sessions behind.
            crash: (Signal::QUIT, "QUIT"),
            hidden: "PG",
            user: self.user,
        }
    }
}

impl Setup for PostgresSetup {
    fn place(&self) -> &DataFolder {
        &self.place
    }

    fn spawn(&self) -> Result<Running, ServerError> {
        let file = find::of_postgres("postgres")?;
        let mut args = vec!["-D".to_owned(), self.data().display().to_string()];
        args.extend(self.settings().flat_map(|setting| ["-c".into(), setting]));
        self.command("postgres", &file, args).start()
    }

    /// The file may still be that of the previous run, so the process id is compared.
    fn is_ready(&self, running: &Running) -> bool {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines().map(str::trim);
        lines.next().is_some_and(|pid| pid.parse() == Ok(running.pid()))
            && lines.next_back() == Some("ready")
    }
}
