//! What the package consists of, and that its compiled files are those of its sources.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::foreign::{root, run};

const PACKAGE: &str = "clients/typescript";

/// The files below a folder by their paths from it, without installed packages.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap().flatten() {
            let path = entry.path();
            if path.is_file() {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, std::fs::read(&path).unwrap());
            } else if !path.ends_with("node_modules") {
                folders.push(path);
            }
        }
    }
    found
}

/// A copy of the package below `target`, with the packages that its tests need. Tests are processes
/// of their own: one makes the copy while the others wait.
pub fn copy() -> PathBuf {
    let folder = root().join("target").join(PACKAGE);
    std::fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    // Dropping the file unlocks it, also in a test that fails.
    lock.lock().unwrap();
    for (name, content) in files(&root().join(PACKAGE)) {
        let to = folder.join(name);
        if std::fs::read(&to).ok().as_ref() != Some(&content) {
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(&to, content).unwrap();
        }
    }
    install(&folder);
    folder
}

/// Node.js 22, below the same folder.
pub fn node22() -> PathBuf {
    let folder = copy().join("test/node22");
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    install(&folder);
    let all = std::fs::read_dir(folder.join("node_modules")).unwrap().flatten();
    let mut programs = all.map(|package| package.path().join("bin/node"));
    programs.find(|program| program.is_file()).expect("the package for this machine")
}

/// Installs the packages that a folder lists, unless they are there.
fn install(folder: &Path) {
    let list = std::fs::read(folder.join("package-lock.json")).unwrap();
    let installed = folder.join("installed");
    if std::fs::read(&installed).ok().as_ref() != Some(&list) {
        run(folder, "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        std::fs::write(&installed, list).unwrap();
    }
}

#[test]
fn the_committed_files_are_those_that_the_sources_compile_to() {
    let folder = copy();
    let made = folder.join("made");
    run(&folder, "node", &["tools/build.mjs", made.to_str().unwrap()]);
    let (made, committed) = (files(&made), files(&root().join(PACKAGE).join("dist")));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&made), names(&committed), "npm run build in {PACKAGE}");
    for (name, content) in &made {
        let is = content == &committed[name];
        assert!(is, "{}: npm run build in {PACKAGE}", name.display());
    }
}

#[test]
fn the_tests_of_the_package_pass() {
    let folder = copy();
    let tests = ["wire", "movement", "display", "view", "session", "transport", "size", "types"];
    let mut command = Command::new("node");
    command.current_dir(&folder).env("PURVIEW_REPOSITORY", root()).arg("--test");
    command.args(tests.map(|name| format!("test/{name}.test.mjs")));
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("# fail 0") && !told.contains("# pass 0\n"), "{told}");
    let known = files(&folder.join("test")).into_keys();
    let known = known.filter(|name| name.to_string_lossy().ends_with(".test.mjs"));
    assert_eq!(known.count(), tests.len(), "every file of tests is named here");
}

#[test]
fn the_package_has_the_version_of_the_workspace_and_no_dependency() {
    let text = std::fs::read_to_string(root().join(PACKAGE).join("package.json")).unwrap();
    let package: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(package.get("dependencies"), None);
    let lock = |name| std::fs::read_to_string(root().join(PACKAGE).join(name)).unwrap();
    let node22 = lock("test/node22/package-lock.json");
    assert!(!node22.contains("\"resolved\""), "the list of packages names no address");
    let lock = lock("package-lock.json");
    assert!(!lock.contains("\"resolved\""), "the list of packages names no address");
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    assert_eq!(lock["version"], package["version"]);
}

#[test]
fn the_package_contains_the_compiled_files_and_its_page_alone() {
    let folder = copy();
    let told = run(&folder, "npm", &["pack", "--dry-run", "--json"]).join("\n");
    let pack: serde_json::Value = serde_json::from_str(&told).unwrap();
    let listed = pack[0]["files"].as_array().unwrap().iter();
    let mut packed: Vec<_> = listed.map(|f| f["path"].as_str().unwrap().to_owned()).collect();
    packed.sort();
    let mut want = vec!["README.md".to_owned(), "package.json".to_owned()];
    let dist = files(&root().join(PACKAGE).join("dist"));
    want.extend(dist.keys().map(|name| format!("dist/{}", name.display())));
    want.sort();
    assert_eq!(packed, want);
}
