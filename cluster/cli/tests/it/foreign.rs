//! Examples in other languages, which tests install below `target` and run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a program, and gives the lines that it prints.
pub fn run(folder: &Path, program: impl AsRef<OsStr>, args: &[&str]) -> Vec<String> {
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

/// A folder below `target` with copies of an example's files.
pub struct Workshop {
    folder: PathBuf,
    list: &'static str,
}

impl Workshop {
    /// Copies the files of an example, by their paths from its folder; `list` names its packages.
    pub fn of(example: &str, files: &[&str], list: &'static str) -> Workshop {
        let folder = root().join("target").join(example);
        std::fs::create_dir_all(&folder).unwrap();
        for file in files {
            let name = Path::new(file).file_name().unwrap();
            std::fs::copy(root().join(example).join(file), folder.join(name)).unwrap();
        }
        Workshop { folder, list }
    }

    /// Installs the packages, unless those of the list are there. Gives the folder.
    pub fn install(self, install: impl FnOnce(&Path)) -> PathBuf {
        let Workshop { folder, list } = self;
        let wanted = std::fs::read(folder.join(list)).unwrap();
        if std::fs::read(folder.join("installed")).ok() != Some(wanted) {
            install(&folder);
            std::fs::copy(folder.join(list), folder.join("installed")).unwrap();
        }
        folder
    }
}

/// The folder of an example in Python with generated code, and its interpreter.
pub fn python_with(example: &str, files: &[&str], proto: &str) -> (PathBuf, PathBuf) {
    let list = "requirements.txt";
    let files: Vec<&str> = files.iter().copied().chain([list]).collect();
    let folder = Workshop::of(example, &files, list).install(|folder| {
        run(folder, "python3", &["-m", "venv", "--clear", "venv"]);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list];
        run(folder, folder.join("venv/bin/python"), &pip);
    });
    let python = folder.join("venv/bin/python");
    let protos = root().join("proto");
    let include = protos.to_str().unwrap();
    let generate =
        ["-m", "grpc_tools.protoc", "-I", include, "--python_out=.", "--grpc_python_out=.", proto];
    run(&folder, &python, &generate);
    (folder, python)
}
