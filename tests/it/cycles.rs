//! No import cycles between modules of a crate, checked by reading the sources.
//!
//! **What counts.** A crate is a tree of modules: a folder is a module, and its face is `mod.rs` (or the file
//! beside it with the folder's name). One module *names* another where its code has a path to it: `use`,
//! `crate::…`, `super::…`, `self::…`. Two modules that are next to each other under one parent, each with
//! everything below it, must not name each other, neither directly nor by way of others next to them. So at each
//! level the children of a module can be read in one order, each knowing only those before it.
//!
//! **What does not count.** A module and those below it are one part: its face names its children, and they name
//! what the face itself defines. But what a face only re-exports (`pub use`) is followed to where it is defined,
//! so that a face hides no cycle of its children. Comments, texts and code under `#[cfg(test)]` do not count.
//!
//! A cycle is cut by moving what both modules need to a module that both may name, or by passing it as an argument.

mod source;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::house::{files, root, short};
use source::{Module, Source, read};

/// Names of siblings by siblings below one parent, each with a place in the sources.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// All modules of a crate.
struct Tree(BTreeMap<Module, Source>);

impl Tree {
    /// Reads the crate below a folder.
    fn of(folder: &Path) -> Tree {
        let shown = folder.strip_prefix(root()).unwrap_or(folder).display().to_string();
        let mut all = BTreeMap::new();
        for file in files(&shown, ".rs") {
            let module = module_of(file.strip_prefix(folder).unwrap());
            let text = std::fs::read_to_string(&file).unwrap();
            all.insert(module, read(&short(&file), &text));
        }
        Tree::new(all)
    }

    fn new(mut all: BTreeMap<Module, Source>) -> Tree {
        let tests: Vec<Module> = all
            .iter()
            .flat_map(|(module, source)| {
                source
                    .only_tests
                    .iter()
                    .map(|t| [module.as_slice(), std::slice::from_ref(t)].concat())
            })
            .collect();
        all.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Tree(all)
    }

    /// The module in which a path ends that is written in `from`. `None`: not in this crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (mut at, rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|word| *word == "super").count();
                (from[..from.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            _ => return self.lookup(from, path, depth),
        };
        if rest.is_empty() {
            return Some(at);
        }
        match self.lookup(&at, rest, depth) {
            Some(found) => Some(found),
            None => {
                while !self.0.contains_key(&at) && !at.is_empty() {
                    at.pop();
                }
                Some(at)
            }
        }
    }

    /// The same of a path whose first word is a name in `at`.
    fn lookup(&self, at: &Module, path: &[String], depth: usize) -> Option<Module> {
        let source = self.0.get(at)?;
        let Some((first, rest)) = path.split_first() else { return Some(at.clone()) };
        let child = [at.as_slice(), std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return Some(self.lookup(&child, rest, depth).unwrap_or(child));
        }
        if source.items.contains(first) {
            return Some(at.clone());
        }
        if depth == 0 {
            return None;
        }
        for (name, import) in &source.imports {
            if name == first && import.as_slice() != path {
                let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                return self.resolve(at, &whole, depth - 1);
            }
        }
        let globs = source.imports.iter().filter(|(name, _)| name == "*");
        globs.into_iter().find_map(|(_, import)| {
            let of = self.resolve(at, &import[..import.len() - 1], depth - 1)?;
            self.lookup(&of, path, depth - 1)
        })
    }

    /// Who names whom, below each parent.
    fn edges(&self) -> BTreeMap<Module, Edges> {
        let mut all: BTreeMap<Module, Edges> = BTreeMap::new();
        for (from, source) in &self.0 {
            for (line, path) in &source.names {
                let Some(to) = self.resolve(from, path, 8) else { continue };
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                let (Some(a), Some(b)) = (from.get(common), to.get(common)) else { continue };
                let place = format!("{}:{line}", source.file);
                let edges = all.entry(from[..common].to_vec()).or_default();
                edges.entry(a.clone()).or_default().entry(b.clone()).or_insert(place);
            }
        }
        all
    }
}

/// Which module a file is, by its path from the crate's folder.
fn module_of(file: &Path) -> Module {
    let mut module: Module =
        file.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    let last = module.last().map(String::as_str);
    if matches!(last, Some("mod" | "lib" | "main")) && (last == Some("mod") || module.len() == 1) {
        module.pop();
    }
    module
}

/// The shortest way from one to another.
fn way(edges: &Edges, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for found in edges.get(at).into_iter().flat_map(BTreeMap::keys) {
            if found == to {
                let mut way = vec![to, at];
                while let Some(at) =
                    before.get(way[way.len() - 1]).filter(|_| way[way.len() - 1] != from)
                {
                    way.push(at);
                }
                return Some(way.into_iter().rev().map(str::to_owned).collect());
            }
            if found != from && !before.contains_key(found.as_str()) {
                before.insert(found, at);
                next.push_back(found);
            }
        }
    }
    None
}

/// Children that name each other, in groups, each with its shortest cycle.
fn knots(edges: &Edges) -> Vec<(BTreeSet<String>, Vec<String>)> {
    let mut found: Vec<(BTreeSet<String>, Vec<String>)> = Vec::new();
    for at in edges.keys() {
        if found.iter().any(|(knot, _)| knot.contains(at)) || way(edges, at, at).is_none() {
            continue;
        }
        let mutual = |to: &&String| way(edges, at, to).is_some() && way(edges, to, at).is_some();
        let knot: BTreeSet<String> = edges.keys().filter(mutual).cloned().collect();
        let cycles = knot.iter().filter_map(|at| way(edges, at, at));
        let shortest = cycles.min_by_key(Vec::len).unwrap_or_default();
        found.push((knot, shortest));
    }
    found
}

/// Every knot of a crate, and in words how it comes about.
fn cycles(tree: &Tree) -> Vec<(String, BTreeSet<String>, String)> {
    let mut found = Vec::new();
    for (parent, edges) in tree.edges() {
        for (knot, cycle) in knots(&edges) {
            let steps = cycle
                .windows(2)
                .map(|w| format!("    {} -> {}   {}", w[0], w[1], edges[&w[0]][&w[1]]));
            let words = steps.collect::<Vec<_>>().join("\n");
            found.push((parent.join("::"), knot, words));
        }
    }
    found
}

/// The crates of the project: every folder with sources beside a manifest.
fn crates() -> Vec<PathBuf> {
    let manifests = files("", "Cargo.toml").into_iter();
    let sources = manifests.filter_map(|manifest| manifest.parent().map(|at| at.join("src")));
    let mut all: Vec<PathBuf> = sources.filter(|at| at.is_dir()).collect();
    all.sort();
    all
}

#[test]
fn modules_import_each_other_in_one_direction() {
    let mut wrong = Vec::new();
    for folder in crates() {
        let name = short(&folder);
        for (parent, knot, words) in cycles(&Tree::of(&folder)) {
            let names: Vec<_> = knot.iter().map(String::as_str).collect();
            wrong.push(format!("{name}: {parent}: {names:?}\n{words}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A crate of files by their paths.
fn made_up(files: &[(&str, &str)]) -> Tree {
    Tree::new(
        files.iter().map(|(path, text)| (module_of(Path::new(path)), read(path, text))).collect(),
    )
}

/// The knots of a made-up crate, each as `parent: children`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let all = cycles(&made_up(files)).into_iter();
    all.map(|(parent, knot, _)| {
        format!("{parent}: {}", knot.into_iter().collect::<Vec<_>>().join(" "))
    })
    .collect()
}

#[test]
fn a_cycle_is_detected_and_told_with_its_places() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "//! Head.\nuse crate::b::{self, B};"),
        ("b/mod.rs", "mod inner;\npub use inner::B;"),
        ("b/inner.rs", "pub struct B(super::super::c::C);"),
        ("c.rs", "pub struct C;\nfn f() -> crate::a::A { todo!() }"),
        ("d.rs", "use crate::a::A;"),
    ];
    assert_eq!(found(&files), [": a b c"]);
    let words = "    a -> b   a.rs:2\n    b -> c   b/inner.rs:1\n    c -> a   c.rs:2";
    assert_eq!(cycles(&made_up(&files))[0].2, words);
}

#[test]
fn a_face_hides_no_cycle_of_its_children() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod x;\nmod y;\npub use x::X;\npub use y::*;"),
        ("a/x.rs", "use super::Y;\npub struct X;"),
        ("a/y.rs", "use crate::a::X;\npub struct Y;"),
    ];
    assert_eq!(found(&files), ["a: x y"]);
}

#[test]
fn what_a_face_defines_and_what_only_tests_and_comments_name_is_let_pass() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub struct Root;\nuse b::B;"),
        ("a/mod.rs", "mod x;\npub struct A(x::X);\n#[cfg(test)]\nmod tests;"),
        ("a/x.rs", "use super::A;\nuse crate::Root;\nuse crate::b::B;\npub struct X;"),
        ("a/tests.rs", "use crate::b::B;"),
        (
            "b.rs",
            "// crate::a::A\n/* crate::a::A */\nconst T: &str = \"crate::a::A\";\npub struct B;\n#[cfg(test)]\nuse crate::a::A;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
        ),
    ];
    assert_eq!(found(&files), Vec::<String>::new());
}
