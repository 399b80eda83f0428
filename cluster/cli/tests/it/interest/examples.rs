//! The examples in Rust, Python and TypeScript say the same of the same world.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Service, runtime};

#[path = "../../../../../examples/interest_service.rs"]
#[allow(dead_code)]
mod interest_service;

/// What every example tells.
const TOLD: [&str; 10] = [
    "tick 1: 1 sees 900",
    "tick 1: 900 sees 1",
    "refused: no entity has the id 77",
    "tick 2: 2 sees 900",
    "tick 2: 900 sees 2",
    "resumed: the service has applied 2 batches",
    "tick 3: 1 no longer sees 900",
    "tick 3: 2 no longer sees 900",
    "tick 3: 900 no longer sees 1",
    "tick 3: 900 no longer sees 2",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a program, and gives the lines that it prints.
fn run(folder: &Path, program: impl AsRef<OsStr>, args: &[&str]) -> Vec<String> {
    let program = program.as_ref();
    let mut command = Command::new(program);
    command.current_dir(folder).args(args);
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}: {error}; `bash .ci/test` installs what is missing", program.display())
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{} {args:?}: {out}{error}", program.display());
    out.lines().map(str::to_owned).collect()
}

/// A folder below `target` with copies of an example's files, and whether what is installed there
/// belongs to its `list` of packages.
fn workshop(name: &str, files: &[&str], list: &str) -> (PathBuf, bool) {
    let folder = root().join("target/interest-examples").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let from = root().join("examples/interest-service").join(name);
    for file in files {
        std::fs::copy(from.join(file), folder.join(file)).unwrap();
    }
    let wanted = std::fs::read(folder.join(list)).unwrap();
    let installed = std::fs::read(folder.join("installed")).ok();
    (folder, installed == Some(wanted))
}

/// Remembers which packages are installed.
fn installed(folder: &Path, list: &str) {
    std::fs::copy(folder.join(list), folder.join("installed")).unwrap();
}

#[test]
fn rust() {
    let service = Service::start(&[]);
    let told = runtime().block_on(interest_service::run(&service.address())).unwrap();
    assert_eq!(told, TOLD);
}

#[test]
fn python() {
    let list = "requirements.txt";
    let (folder, is_installed) = workshop("python", &["client.py", list], list);
    let python = folder.join("venv/bin/python");
    if !is_installed {
        run(&folder, "python3", &["-m", "venv", "--clear", "venv"]);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list];
        run(&folder, &python, &pip);
        installed(&folder, list);
    }
    let proto = root().join("proto");
    let (proto, file) = (proto.to_str().unwrap(), "purview/interest/v1/interest.proto");
    let generate =
        ["-m", "grpc_tools.protoc", "-I", proto, "--python_out=.", "--grpc_python_out=.", file];
    run(&folder, &python, &generate);
    let service = Service::start(&[]);
    let address = service.ready.listen.unwrap().to_string();
    assert_eq!(run(&folder, &python, &["client.py", &address]), TOLD);
}

#[test]
fn typescript() {
    let list = "package-lock.json";
    let files = ["client.ts", "package.json", "tsconfig.json", ".npmrc", list];
    let (folder, is_installed) = workshop("typescript", &files, list);
    if !is_installed {
        run(&folder, "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        installed(&folder, list);
    }
    run(&folder, "npm", &["run", "build"]);
    let service = Service::start(&[]);
    let (address, proto) = (service.ready.listen.unwrap().to_string(), root().join("proto"));
    let args = ["dist/client.js", &address, proto.to_str().unwrap()];
    assert_eq!(run(&folder, "node", &args), TOLD);
}
