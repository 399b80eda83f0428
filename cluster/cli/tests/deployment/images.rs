//! The images that the compose file names. The project's own are built from its Dockerfiles and the program that was
//! tested; those of third parties, which no registry can give here, from Debian's packages under the same names.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::engine::Engine;
use super::missing::{Missing, kept, program, root, run};

/// The packages from which the images of third parties are made.
const PACKAGES: &str = "etcd-server,etcd-client,postgresql-15,haproxy,prometheus,python3";

/// The images of third parties, and their files in `images/`.
const OTHERS: [(&str, &str); 5] = [
    ("quay.io/coreos/etcd:v3.5.17", "etcd"),
    ("postgres:15", "postgres"),
    ("haproxy:2.6", "haproxy"),
    ("prom/prometheus:v2.42.0", "prometheus"),
    ("python:3.11-slim-bookworm", "python"),
];

/// A root file system of Debian 12 with these packages, kept from run to run.
///
/// # Errors
/// There is no `mmdebstrap`, or it fails.
pub fn debian(packages: &str) -> Result<PathBuf, Missing> {
    program("mmdebstrap")?;
    let mut hash = DefaultHasher::new();
    packages.hash(&mut hash);
    let file = kept().join(format!("debian-{:016x}.tar", hash.finish()));
    if file.exists() {
        return Ok(file);
    }
    let part = file.with_file_name(format!("part-{}.tar", std::process::id()));
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=minbase"]);
    if !packages.is_empty() {
        command.arg(format!("--include={packages}"));
    }
    run(command.arg("bookworm").arg(&part)).map_err(Missing)?;
    std::fs::rename(&part, &file).unwrap();
    Ok(file)
}

/// The programs that this build made: `purview`, `purview-lab`.
pub fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_purview")).with_file_name(name);
    assert!(
        path.is_file(),
        "{} is missing: cargo build -p purview-cli -p purview-lab",
        path.display()
    );
    path
}

/// A stripped copy of a program in a folder, under this name.
pub fn stripped(program: &Path, folder: &Path, name: &str) -> PathBuf {
    let copy = folder.join(name);
    run(Command::new("strip").arg("-o").arg(&copy).arg(program)).unwrap();
    copy
}

impl Engine {
    /// Makes every image that the compose file names.
    ///
    /// # Errors
    /// A root file system cannot be made here.
    pub fn make_images(&self) -> Result<(), Missing> {
        self.import(&debian("")?, "debian:bookworm-slim");
        self.import(&debian(PACKAGES)?, "purview-test/packages:latest");
        let images = root().join("cluster/cli/tests/deployment/images");
        let context = kept().join("images");
        run(Command::new("cp").arg("-r").arg(&images).arg(kept())).unwrap();
        python_modules(&context.join("modules"))?;
        for (name, file) in OTHERS {
            self.build(name, &images.join(format!("{file}.Dockerfile")), &context);
        }
        for name in ["purview", "purview-lab"] {
            self.make_image(&built(name), name, name);
        }
        self.build(
            "purview-hunt-worker",
            &root().join("deploy/compose/Dockerfile.worker"),
            &worker_context(),
        );
        Ok(())
    }

    /// Packs a program under this name into an image.
    pub fn make_image(&self, program: &Path, name: &str, image: &str) {
        let folder = tempfile::tempdir().unwrap();
        stripped(program, folder.path(), name);
        self.build(image, &root().join("deploy/Dockerfile"), folder.path());
    }

    /// Imports a root file system, unless the engine has it from an earlier run.
    fn import(&self, tar: &Path, name: &str) {
        let mark = tar.file_name().unwrap().to_string_lossy().into_owned();
        let of = self.docker(&["inspect", "--format", "{{.Comment}}", name]).unwrap_or_default();
        if of.trim() != mark {
            let tar = tar.to_str().unwrap();
            self.docker(&["import", "--message", &mark, tar, name]).unwrap();
        }
    }

    fn build(&self, name: &str, file: &Path, context: &Path) {
        let (file, context) = (file.to_str().unwrap(), context.to_str().unwrap());
        self.docker(&["build", "-q", "-t", name, "-f", file, context]).unwrap();
    }
}

/// The Python packages of the worker, for the Python of Debian 12; kept from run to run.
fn python_modules(folder: &Path) -> Result<(), Missing> {
    let list = root().join("examples/hunt/python/requirements.txt");
    let (wanted, done) = (std::fs::read(&list).unwrap(), folder.join("installed.txt"));
    if std::fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    drop(std::fs::remove_dir_all(folder));
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--python-version=3.11",
    ]);
    pip.args(["--only-binary=:all:", "--target"]).arg(folder).arg("--requirement").arg(&list);
    run(&mut pip).map_err(Missing)?;
    std::fs::write(done, wanted).unwrap();
    Ok(())
}

/// What the worker's image is built from: a part of the project, so that no build output is sent to the engine.
fn worker_context() -> PathBuf {
    let folder = kept().join("worker-context");
    drop(std::fs::remove_dir_all(&folder));
    for part in ["proto", "clients/python", "examples/hunt/python", "deploy/compose"] {
        let to = folder.join(part);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        run(Command::new("cp").arg("-r").arg(root().join(part)).arg(&to)).unwrap();
    }
    folder
}
