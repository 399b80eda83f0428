//! Examples in other languages, which tests install below `target` and run.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

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

/// A folder below `target` with copies of an example's files, the packages that it needs and what is
/// made of them. Tests are processes of their own: one prepares the folder while the others wait, and
/// it stays as it is while its contents are up to date, because another test may be running them.
pub struct Workshop<'a> {
    /// The example's folder, from the root of the repository.
    pub example: &'a str,
    /// Files of the example, by their paths from its folder.
    pub files: &'a [&'a str],
    /// The file that names the packages.
    pub list: &'a str,
    /// More files that `build` reads, by their paths from the root of the repository.
    pub sources: &'a [&'a str],
}

impl Workshop<'_> {
    /// Installs the packages if the list has changed, and builds if any file has. Gives the folder.
    pub fn prepare(&self, install: impl FnOnce(&Path), build: impl FnOnce(&Path)) -> PathBuf {
        let folder = root().join("target").join(self.example);
        std::fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        // Dropping the file unlocks it, also in a test that fails.
        lock.lock().unwrap();
        let contents = self.contents();
        if std::fs::read(folder.join("built")).ok() == Some(contents.clone()) {
            return folder;
        }
        for file in self.files.iter().chain([&self.list]) {
            let name = Path::new(file).file_name().unwrap();
            std::fs::copy(root().join(self.example).join(file), folder.join(name)).unwrap();
        }
        let wanted = std::fs::read(folder.join(self.list)).unwrap();
        if std::fs::read(folder.join("installed")).ok() != Some(wanted) {
            install(&folder);
            std::fs::copy(folder.join(self.list), folder.join("installed")).unwrap();
        }
        build(&folder);
        std::fs::write(folder.join("built"), contents).unwrap();
        folder
    }

    /// Everything that the folder is made of.
    fn contents(&self) -> Vec<u8> {
        let example = root().join(self.example);
        let files = self.files.iter().chain([&self.list]).map(|file| example.join(file));
        let paths = files.chain(self.sources.iter().map(|source| root().join(source)));
        let mut contents = Vec::new();
        for path in paths {
            let text = std::fs::read(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            contents.extend(format!("{name} {}\n", text.len()).into_bytes());
            contents.extend(text);
        }
        contents
    }
}

/// The folder of an example in Python with code generated from a file below `proto`, and its
/// interpreter. The example's packages are those of its `requirements.txt`.
pub fn python_with(example: &str, files: &[&str], proto: &str) -> (PathBuf, PathBuf) {
    let list = "requirements.txt";
    let workshop = Workshop { example, files, list, sources: &[proto] };
    let install = |folder: &Path| {
        run(folder, "python3", &["-m", "venv", "--clear", "venv"]);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list];
        run(folder, folder.join("venv/bin/python"), &pip);
    };
    let build = |folder: &Path| {
        let protos = root().join("proto");
        let mut args = vec!["-m", "grpc_tools.protoc", "-I", protos.to_str().unwrap()];
        args.extend(["--python_out=.", "--grpc_python_out=.", proto.trim_start_matches("proto/")]);
        run(folder, folder.join("venv/bin/python"), &args);
    };
    let folder = workshop.prepare(install, build);
    let python = folder.join("venv/bin/python");
    (folder, python)
}

/// The folder of the example's rules in Python, with the library and its tests, and its interpreter.
pub fn python_worker() -> (PathBuf, PathBuf) {
    let library = ["purview_worker.py", "test_purview_worker.py"];
    let [library, tests] = library.map(|name| format!("../../../clients/python/{name}"));
    let files = &["hunt.py", "../../siege/python/siege.py", &library, &tests];
    python_with("examples/hunt/python", files, "proto/purview/logic/v1/logic.proto")
}

/// A logic worker in Python, with the rules of an example. Dropping it kills the process.
pub struct PythonWorker {
    child: Child,
    /// Stays open: a worker that connects again writes that it is ready once more.
    _out: BufReader<ChildStdout>,
}

impl PythonWorker {
    /// Starts the rules of `hunt.py` or `siege.py` for the server at `host:port`, with the further arguments of the
    /// program, and waits until they are ready.
    pub fn start(rules: &str, address: &str, more: &[&str]) -> PythonWorker {
        let (folder, python) = python_worker();
        let mut command = Command::new(python);
        command.current_dir(folder).args([rules, address]).args(more).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut line, mut out) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        PythonWorker { child, _out: out }
    }

    /// Suspends the process.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets a suspended process go on.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for PythonWorker {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
