//! Modules have no import cycles: at every level of the tree, the modules side by side can be ordered
//! so that each uses only those below it. Read from the sources of the library.
//!
//! A module and its own children may use each other. Re-exports are followed to where a name is
//! defined. Tests at the end of a file and modules that are only for tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::{files, root};

/// A module's path, from the crate's root.
type Path = Vec<String>;

/// Levels whose cycles are known and are still to be cut.
const KNOWN: [&str; 1] = ["scene::region"];

/// The code of a file without comments, texts and tests.
fn code(source: &str) -> String {
    let end = source.find("\n#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    let mut code = String::new();
    let mut for_tests = false;
    for line in source[..end].lines() {
        let line = line.split("//").next().unwrap_or_default();
        if !for_tests {
            let pieces: Vec<&str> = line.split('"').step_by(2).collect();
            code.push_str(&pieces.join("\"\""));
            code.push('\n');
        }
        for_tests = line.trim() == "#[cfg(test)]" || line.trim() == "#[cfg(any(test, doc))]";
    }
    code
}

/// The paths that a `use` tree names, each with the name that it has here.
fn leaves(prefix: &[String], tree: &str, found: &mut Vec<(Path, String)>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut inner = prefix.to_vec();
        inner.extend(
            tree[..open].split("::").map(str::trim).filter(|s| !s.is_empty()).map(Into::into),
        );
        let body = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        let (mut depth, mut from) = (0, 0);
        for (at, c) in body.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    leaves(&inner, &body[from..at], found);
                    from = at + 1;
                }
                _ => {}
            }
        }
        return leaves(&inner, &body[from..], found);
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(p, a)| (p, Some(a.trim())));
    let mut all = prefix.to_vec();
    all.extend(
        path.split("::").map(|s| s.trim().to_string()).filter(|s| !s.is_empty() && s != "self"),
    );
    let Some(last) = all.last().cloned() else { return };
    let first = if path.trim_start().starts_with("self::") && prefix.is_empty() {
        Some("self")
    } else {
        None
    };
    if let Some(first) = first {
        all.insert(0, first.into());
    }
    found.push((all, alias.map_or(last, Into::into)));
}

/// The modules of a crate, and what each imports.
struct Modules {
    paths: BTreeSet<Path>,
    /// By module and name: the path, from the crate's root, that the name stands for.
    names: BTreeMap<(Path, String), Path>,
    uses: BTreeMap<Path, BTreeSet<Path>>,
}

impl Modules {
    fn read(sources: impl Iterator<Item = (Path, String)>) -> Modules {
        let sources: Vec<(Path, String)> = sources.collect();
        let paths: BTreeSet<Path> = sources.iter().map(|(path, _)| path.clone()).collect();
        let mut modules = Modules { paths, names: BTreeMap::new(), uses: BTreeMap::new() };
        let mut written: Vec<(Path, Path)> = Vec::new();
        for (module, source) in &sources {
            for tree in source.split(';').filter_map(|statement| split_use(statement).1) {
                let mut found = Vec::new();
                leaves(&[], tree, &mut found);
                for (path, name) in found {
                    if let Some(path) = modules.absolute(module, &path) {
                        written.push((module.clone(), path.clone()));
                        modules.names.insert((module.clone(), name), path);
                    }
                }
            }
        }
        for (module, source) in &sources {
            for path in inline_paths(source) {
                if let Some(path) = modules.absolute(module, &path) {
                    written.push((module.clone(), path));
                } else if let Some(start) = modules.names.get(&(module.clone(), path[0].clone())) {
                    let whole = start.iter().chain(&path[1..]).cloned().collect();
                    written.push((module.clone(), whole));
                }
            }
        }
        for (module, path) in written {
            let target = modules.defined_in(&path, 0);
            if target != module {
                modules.uses.entry(module).or_default().insert(target);
            }
        }
        modules
    }

    /// A path as from the crate's root; `None` where it leads out of the crate.
    fn absolute(&self, module: &Path, path: &[String]) -> Option<Path> {
        let mut at = module.clone();
        let rest = match path.first()?.as_str() {
            "crate" => {
                at.clear();
                &path[1..]
            }
            "self" => &path[1..],
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                at.truncate(at.len().checked_sub(up)?);
                &path[up..]
            }
            first => {
                let child: Path = module.iter().cloned().chain([first.to_string()]).collect();
                self.paths.contains(&child).then_some(path)?
            }
        };
        at.extend(rest.iter().cloned());
        Some(at)
    }

    /// The module in which what the path names is defined.
    fn defined_in(&self, path: &[String], depth: usize) -> Path {
        let known = (0..=path.len()).rev().find(|n| self.paths.contains(&path[..*n]));
        let (module, rest) = path.split_at(known.unwrap_or(0));
        let next = rest.first().and_then(|name| {
            let stands_for = self.names.get(&(module.to_vec(), name.clone()))?;
            (depth < 8 && stands_for[..] != *path).then_some(stands_for)
        });
        match next {
            Some(next) => {
                let whole: Path = next.iter().chain(&rest[1..]).cloned().collect();
                self.defined_in(&whole, depth + 1)
            }
            None => module.to_vec(),
        }
    }

    /// For each level (a module with children) which child uses which.
    fn levels(&self) -> BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> {
        let mut levels: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, targets) in &self.uses {
            for to in targets {
                let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                    let level = levels.entry(from[..shared].to_vec()).or_default();
                    level.entry(a.clone()).or_default().insert(b.clone());
                }
            }
        }
        levels
    }
}

/// A statement without its `use`, and the tree of that.
fn split_use(statement: &str) -> (&str, Option<&str>) {
    let is_word = |at: &usize| {
        let before = statement[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    match statement.rfind("use ").filter(is_word) {
        Some(at) => (&statement[..at], Some(&statement[at + 4..])),
        None => (statement, None),
    }
}

/// Paths of two or more parts in the code, `use` statements left out.
fn inline_paths(source: &str) -> Vec<Path> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let code = source.split(';').map(|statement| split_use(statement).0);
    let words = code.flat_map(|code| code.split(move |c| !part(c)));
    words
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").filter(|s| !s.is_empty()).map(Into::into).collect::<Path>())
        .filter(|path| path.len() > 1)
        .collect()
}

/// The modules that stand in a cycle: those that are left when modules are taken away which use none of
/// the rest, and then those that none of the rest uses.
fn in_cycles(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut left: BTreeSet<String> = uses.keys().cloned().collect();
    loop {
        let used_by_left = |name: &String| left.iter().any(|other| uses[other].contains(name));
        let uses_left = |name: &String| uses[name].iter().any(|other| left.contains(other));
        let next: BTreeSet<String> =
            left.iter().filter(|name| used_by_left(name) && uses_left(name)).cloned().collect();
        if next.len() == left.len() {
            return left;
        }
        left = next;
    }
}

fn library() -> Modules {
    let src = root().join("src");
    let sources = files("src", ".rs").into_iter().filter_map(|file| {
        let inside = file.strip_prefix(&src).ok()?.with_extension("");
        let mut path: Path = inside.iter().map(|p| p.to_string_lossy().into_owned()).collect();
        path.pop_if(|last| last == "mod" || last == "lib");
        if path.iter().any(|part| part == "tests") {
            return None;
        }
        Some((path, code(&std::fs::read_to_string(&file).ok()?)))
    });
    Modules::read(sources)
}

#[test]
fn modules_have_no_import_cycles() {
    let mut found = Vec::new();
    for (level, uses) in library().levels() {
        let name = level.join("::");
        let cycle = in_cycles(&uses);
        if !cycle.is_empty() && !KNOWN.contains(&name.as_str()) {
            let edges = cycle.iter().map(|a| {
                let to: Vec<_> = uses[a].intersection(&cycle).cloned().collect();
                format!("    {a} -> {}", to.join(", "))
            });
            found.push(format!("in {name}:\n{}", edges.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(found.is_empty(), "import cycles {}", found.join("\n"));
}

#[test]
fn a_cycle_is_found_through_a_re_export_and_a_child_may_use_its_parent() {
    let file = |path: &str, source: &str| {
        (path.split("::").filter(|p| !p.is_empty()).map(Into::into).collect(), code(source))
    };
    let sources = [
        file("", "pub mod a;\npub mod b;\npub mod c;\npub use a::Thing;"),
        file("a", "use crate::b::{self, Other as Alias};\npub struct Thing;"),
        file("b", "use super::Thing;\nmod d;"),
        file("b::d", "use super::Other;"),
        file(
            "c",
            "// use crate::a;\nfn f() { crate::a::go() }\n#[cfg(test)]\nmod tests {\nuse crate::b;}",
        ),
    ];
    let levels = Modules::read(sources.into_iter()).levels();
    assert_eq!(levels.len(), 1, "{levels:?}");
    let cycle: Vec<String> = in_cycles(&levels[&Vec::new()]).into_iter().collect();
    assert_eq!(cycle, ["a", "b"]);
}
