//! Starts PostgreSQL on this machine.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::child::{Run, Running};
use super::{Place, STARTS_MAX, ServerError, find, free_port, system};
use crate::tls::TlsSettings;

/// The user and the database of the cluster's checkpoints.
const NAME: &str = "purview";

/// The user that runs PostgreSQL when this process runs as root, which PostgreSQL refuses.
const USER: &str = "postgres";

/// A PostgreSQL of this machine; ended when it is dropped.
pub struct PostgresServer {
    running: Running,
    setup: Setup,
}

struct Setup {
    place: Place,
    port: u16,
    user: Option<&'static str>,
    password: String,
    /// Whether clients must show a certificate of their user.
    secure: bool,
}

impl PostgresServer {
    /// Starts one and waits until it is ready. It keeps its data below `dir` and brings them safely
    /// to the disk, or throws them away. Started by root it runs as the user `postgres`, who then
    /// owns `dir` and must be able to reach it.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(dir: Option<&Path>) -> Result<PostgresServer, ServerError> {
        PostgresServer::start_as(dir, None)
    }

    /// The same over TLS alone, for who shows a certificate whose common name is
    /// [`crate::tls::make::USER`], and knows the password.
    ///
    /// # Errors
    /// [`ServerError`].
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
        let mut setup = Setup::new(dir)?;
        if let Some(tls) = tls {
            setup.secure(tls)?;
        }
        let mut tries = 1;
        loop {
            setup.port = free_port()?;
            match setup.run() {
                Ok(running) => return Ok(PostgresServer { running, setup }),
                Err(ServerError::NotUp { .. }) if tries < STARTS_MAX => tries += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// Where it is reached: `postgres://purview:password@127.0.0.1:port/postgres`.
    pub fn url(&self) -> String {
        let Setup { port, password, .. } = &self.setup;
        format!("postgres://{NAME}:{password}@127.0.0.1:{port}/postgres")
    }

    /// Where it is reached, without the password: `postgres://purview@127.0.0.1:port/postgres`.
    pub fn address(&self) -> String {
        format!("postgres://{NAME}@127.0.0.1:{}/postgres", self.setup.port)
    }

    /// The file with the password.
    pub fn password_file(&self) -> PathBuf {
        self.setup.password_file()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Where its data and what it says are.
    pub fn dir(&self) -> &Path {
        self.setup.place.path()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&self) {
        self.running.crash();
    }

    /// Stops it without ending it: whoever connects is not answered. Connections that it has
    /// already are served by processes of their own, which go on.
    pub fn pause(&self) {
        self.running.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.running.signal(Signal::CONT);
    }

    /// Starts it again where it was, if it has ended, and waits until it is ready.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.running.crash();
        self.running = self.setup.run()?;
        Ok(())
    }
}

impl Setup {
    fn new(dir: Option<&Path>) -> Result<Setup, ServerError> {
        let root = rustix::process::geteuid().is_root();
        let mut setup = Setup {
            place: Place::new(dir)?,
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

    /// The password of a database that is there already, or a new one.
    fn password(&self) -> Result<String, ServerError> {
        let path = self.password_file();
        let what = || path.display().to_string();
        if let Ok(password) = std::fs::read_to_string(&path) {
            return Ok(password);
        }
        let mut bytes = [0; 16];
        File::open("/dev/urandom")
            .and_then(|mut random| std::io::Read::read_exact(&mut random, &mut bytes))
            .map_err(system("/dev/urandom"))?;
        let password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
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
        // Its common name must be the user's.
        let rule = "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n";
        self.write(&self.data().join("pg_hba.conf"), rule.as_bytes())
    }

    fn certificate(&self, ending: &str) -> PathBuf {
        self.place.path().join(format!("server.{ending}"))
    }

    /// Writes a file that only the user may read that it runs as.
    fn write(&self, path: &Path, text: &[u8]) -> Result<(), ServerError> {
        let what = || path.display().to_string();
        let file = File::options().create(true).truncate(true).write(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(text)).map_err(system(what()))?;
        match self.ids()? {
            Some((user, group)) => chown(path, Some(user), Some(group)).map_err(system(what())),
            None => Ok(()),
        }
    }

    /// The numbers of the user that it runs as, and of its group.
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

    fn run(&self) -> Result<Running, ServerError> {
        let file = find::of_postgres("postgres")?;
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            // Its sockets would lie in folders that only Debian's own server may write to.
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
        let settings = settings.into_iter().chain(encrypted.into_iter().filter(|_| self.secure));
        let mut args = vec!["-D".to_owned(), self.data().display().to_string()];
        args.extend(settings.flat_map(|setting| ["-c".into(), setting]));
        // What it wrote when it ran last.
        let ready = self.data().join("postmaster.pid");
        let running = self.command("postgres", &file, args).start()?;
        let pid = running.pid().to_string();
        running.wait_ready(|| {
            let text = std::fs::read_to_string(&ready).unwrap_or_default();
            let mut lines = text.lines().map(str::trim);
            lines.next() == Some(&pid) && lines.next_back() == Some("ready")
        })?;
        Ok(running)
    }

    fn command<'a>(&self, program: &'static str, file: &'a Path, args: Vec<String>) -> Run<'a> {
        Run {
            program,
            file,
            args,
            log: self.place.path().join("postgres.log"),
            // It ends its sessions, and writes everything down if that is worth it.
            end: if self.place.stays() { Signal::INT } else { Signal::QUIT },
            // Killed alone it would leave its sessions behind.
            crash: (Signal::QUIT, "QUIT"),
            hidden: "PG",
            user: self.user,
        }
    }
}
