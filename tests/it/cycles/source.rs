//! Reads a source: which paths its code has, what it imports, and what it defines.

use std::collections::BTreeSet;

/// A path of modules from the crate's root.
pub type Module = Vec<String>;

/// A path in the code, and in which line.
pub type Named = (usize, Vec<String>);

/// What one file says.
#[derive(Debug, Default)]
pub struct Source {
    pub file: String,
    /// Every path that its code has, as written: beginning with `crate`, `super`, `self` or a name.
    pub names: Vec<Named>,
    /// What a name means here that a `use` has brought, `*` for all of a module.
    pub imports: Vec<(String, Vec<String>)>,
    /// What is defined here.
    pub items: BTreeSet<String>,
    /// Modules that exist only in tests.
    pub only_tests: BTreeSet<String>,
}

/// The code without comments, texts and what stands under `#[cfg(test)]`, in pieces: words, `::` and signs, each
/// with its line. Gives the names of modules that are declared under `#[cfg(test)]`, too.
fn pieces(source: &str) -> (Vec<(usize, String)>, BTreeSet<String>) {
    without_tests(words(&blank(source)))
}

/// The source with comments, texts and characters made blank; lines stay.
fn blank(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < text.len() {
        let end = skipped(&text, at);
        if end == at {
            out.push(text[at]);
            at += 1;
        } else {
            out.extend(text[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where a comment, text or character that begins at `at` ends; `at` if none begins there.
fn skipped(text: &[char], at: usize) -> usize {
    let begins = |word: &str| text[at..].iter().copied().take(word.len()).eq(word.chars());
    let find = |from: usize, word: &str| {
        let word: Vec<char> = word.chars().collect();
        let found = text[from.min(text.len())..].windows(word.len()).position(|w| w == word);
        found.map_or(text.len(), |n| from + n + word.len())
    };
    let in_word = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    if begins("//") {
        return find(at, "\n") - 1;
    }
    if begins("/*") {
        return find(at, "*/");
    }
    if !in_word && (begins("r\"") || begins("r#") || begins("br\"") || begins("br#")) {
        let hashes =
            text[at..].iter().skip_while(|c| c.is_alphabetic()).take_while(|c| **c == '#').count();
        let quote = text[at..].iter().position(|c| !c.is_alphabetic() && *c != '#');
        if quote.is_some_and(|n| text[at + n] == '"') {
            return find(at + quote.unwrap() + 1, &format!("\"{}", "#".repeat(hashes)));
        }
        return at;
    }
    match text[at] {
        '"' => closing(text, at, '"'),
        '\'' if text.get(at + 1) == Some(&'\\') => closing(text, at, '\''),
        '\'' if text.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

/// Behind the closing quote of a text with escapes.
fn closing(text: &[char], at: usize, quote: char) -> usize {
    let mut end = at + 1;
    while end < text.len() && text[end] != quote {
        end += if text[end] == '\\' { 2 } else { 1 };
    }
    (end + 1).min(text.len())
}

fn words(source: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (n, line) in source.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let part = |c: char| c.is_alphanumeric() || c == '_';
            let len = match first {
                c if part(c) => rest.find(|c| !part(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            found.push((n + 1, rest[..len].to_owned()));
            rest = rest[len..].trim_start();
        }
    }
    found
}

fn without_tests(all: Vec<(usize, String)>) -> (Vec<(usize, String)>, BTreeSet<String>) {
    let (mut kept, mut modules) = (Vec::new(), BTreeSet::new());
    let mut at = 0;
    while at < all.len() {
        let test = ["#", "[", "cfg", "(", "test", ")", "]"];
        let is_test =
            all.len() - at >= test.len() && all[at..].iter().zip(test).all(|((_, w), t)| w == t);
        if !is_test {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        at += test.len();
        let item = at;
        at = item_end(&all, at);
        let words: Vec<&str> = all[item..at].iter().map(|(_, w)| w.as_str()).collect();
        let name = words.iter().position(|w| *w == "mod").and_then(|n| words.get(n + 1));
        modules.extend(name.filter(|_| words.last() == Some(&";")).map(|name| (*name).to_owned()));
    }
    (kept, modules)
}

/// Behind the item that begins at `at`: its `;`, or its closing brace.
fn item_end(all: &[(usize, String)], mut at: usize) -> usize {
    let mut depth = 0usize;
    while at < all.len() {
        match all[at].1.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                // `use a::{b};` goes on to its `;`.
                let ends = depth == 0 && all.get(at + 1).is_none_or(|(_, w)| w != ";");
                if ends {
                    return at + 1;
                }
            }
            ")" | "]" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Reads one file.
pub fn read(file: &str, text: &str) -> Source {
    let (all, only_tests) = pieces(text);
    let mut source = Source { file: file.into(), only_tests, ..Source::default() };
    let mut at = 0;
    while at < all.len() {
        let (line, word) = (all[at].0, all[at].1.as_str());
        let before = at.checked_sub(1).map(|n| all[n].1.as_str());
        if word == "use" {
            at = read_use(&all, at + 1, &mut source, line);
            continue;
        }
        let defines = ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "mod"];
        if before.is_some_and(|b| defines.contains(&b)) {
            source.items.insert(word.to_owned());
        }
        let begins = word.chars().all(|c| c.is_alphanumeric() || c == '_') && before != Some("::");
        if begins && all.get(at + 1).is_some_and(|(_, w)| w == "::") {
            let mut path = vec![word.to_owned()];
            while all.get(at + 1).is_some_and(|(_, w)| w == "::")
                && all
                    .get(at + 2)
                    .is_some_and(|(_, w)| w.chars().all(|c| c.is_alphanumeric() || c == '_'))
            {
                path.push(all[at + 2].1.clone());
                at += 2;
            }
            // A macro is named at the crate's root, wherever it stands.
            if all.get(at + 1).is_none_or(|(_, w)| w != "!") {
                source.names.push((line, path));
            }
        }
        at += 1;
    }
    source
}

/// Reads a tree of `use`, from behind the word to behind its `;`.
fn read_use(all: &[(usize, String)], at: usize, source: &mut Source, line: usize) -> usize {
    let end = (at..all.len()).find(|n| all[*n].1 == ";").unwrap_or(all.len());
    let tree: Vec<&str> = all[at..end].iter().map(|(_, w)| w.as_str()).collect();
    let mut leaves = Vec::new();
    let mut prefix: Vec<Vec<String>> = vec![Vec::new()];
    let (mut path, mut alias): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut n = 0;
    while n < tree.len() {
        match tree[n] {
            "::" => {}
            "{" => prefix.push(std::mem::take(&mut path)),
            "," | "}" => {
                if !path.is_empty() {
                    let whole: Vec<String> =
                        prefix.iter().flatten().cloned().chain(path.drain(..)).collect();
                    leaves.push((whole, alias.take()));
                }
                if tree[n] == "}" {
                    prefix.pop();
                }
            }
            "as" => {
                alias = tree.get(n + 1).map(|name| (*name).to_owned());
                n += 1;
            }
            word => path.push(word.to_owned()),
        }
        n += 1;
    }
    if !path.is_empty() {
        leaves.push((prefix.iter().flatten().cloned().chain(path).collect(), alias));
    }
    for (mut path, alias) in leaves {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        source.imports.push((name, path.clone()));
        source.names.push((line, path));
    }
    end + 1
}
