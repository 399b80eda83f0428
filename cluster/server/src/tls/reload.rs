//! Files that are reloaded when their content changes: certificates, keys and authorities.
//!
//! A thread compares the content once a second. New content takes effect for new handshakes; open
//! connections go on. Unusable content must never replace the content in use. The thread ends with
//! the last owner of the value.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;

use super::TlsError;

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A file, by the key of the configuration that names it.
pub(super) type Named = (&'static str, PathBuf);

/// What the files say: each one's bytes, in their order.
type Contents = Vec<Vec<u8>>;

/// Makes a value of the files' contents.
type Make<T> = Box<dyn Fn(&[Vec<u8>]) -> Result<T, TlsError> + Send>;

/// A value made of files, which is made again when the files change.
pub(super) struct Reloading<T>(RwLock<Arc<T>>);

impl<T: Send + Sync + 'static> Reloading<T> {
    /// Reads the files and follows their changes from now on.
    pub(super) fn start(
        files: Vec<Named>,
        make: impl Fn(&[Vec<u8>]) -> Result<T, TlsError> + Send + 'static,
    ) -> Result<Arc<Self>, TlsError> {
        let contents = read(&files)?;
        let this = Arc::new(Reloading(RwLock::new(Arc::new(make(&contents)?))));
        let follower = Follower { files, make: Box::new(make), used: contents, refused: None };
        let weak = Arc::downgrade(&this);
        let thread = std::thread::Builder::new().name("certificates".into());
        thread.spawn(move || follow(follower, &weak)).map_err(TlsError::Thread)?;
        Ok(this)
    }

    pub(super) fn current(&self) -> Arc<T> {
        self.0.read().clone()
    }
}

fn read(files: &[Named]) -> Result<Contents, TlsError> {
    let one = |(key, path): &Named| {
        let unreadable = |source| TlsError::Unreadable { key, path: path.clone(), source };
        std::fs::read(path).map_err(unreadable)
    };
    files.iter().map(one).collect()
}

fn follow<T>(mut follower: Follower<T>, value: &Weak<Reloading<T>>) {
    loop {
        std::thread::sleep(CHECK_INTERVAL);
        let Some(value) = value.upgrade() else { return };
        match follower.check() {
            Checked::Same => {}
            Checked::New(new) => {
                *value.0.write() = Arc::new(new);
                tracing::info!(files = ?follower.paths(), "new certificates are in use");
            }
            Checked::Unfit(error) => {
                tracing::error!(%error, "the changed certificates are unusable; the old ones stay in use");
            }
        }
    }
}

struct Follower<T> {
    files: Vec<Named>,
    make: Make<T>,
    /// What the value in use was made of.
    used: Contents,
    /// What could not be used at the last look, and whether that was told.
    refused: Option<(Refused, bool)>,
}

/// Contents that cannot be used.
#[derive(PartialEq)]
enum Refused {
    Contents(Contents),
    Unreadable(String),
}

enum Checked<T> {
    /// Nothing new, or nothing that is certain by now.
    Same,
    New(T),
    /// The same at two looks: not just files between two writes. Told once.
    Unfit(TlsError),
}

impl<T> Follower<T> {
    fn paths(&self) -> Vec<&PathBuf> {
        self.files.iter().map(|(_, path)| path).collect()
    }

    fn check(&mut self) -> Checked<T> {
        let (refused, error) = match read(&self.files) {
            Ok(contents) if contents == self.used => {
                self.refused = None;
                return Checked::Same;
            }
            Ok(contents) => match (self.make)(&contents) {
                Ok(new) => {
                    (self.used, self.refused) = (contents, None);
                    return Checked::New(new);
                }
                Err(error) => (Refused::Contents(contents), error),
            },
            Err(error) => (Refused::Unreadable(error.to_string()), error),
        };
        match &mut self.refused {
            Some((known, told)) if *known == refused => match std::mem::replace(told, true) {
                true => Checked::Same,
                false => Checked::Unfit(error),
            },
            _ => {
                self.refused = Some((refused, false));
                Checked::Same
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follower(files: &[PathBuf]) -> Follower<String> {
        let files: Vec<Named> = files.iter().map(|path| ("key", path.clone())).collect();
        let make = |contents: &[Vec<u8>]| {
            let text = contents.concat();
            let unfit = |cause: std::string::FromUtf8Error| TlsError::Unfit {
                key: "key",
                path: PathBuf::new(),
                cause: cause.to_string(),
                want: "text",
            };
            String::from_utf8(text).map_err(unfit)
        };
        let used = read(&files).unwrap();
        Follower { files, make: Box::new(make), used, refused: None }
    }

    fn word(check: Checked<String>) -> String {
        match check {
            Checked::Same => "same".into(),
            Checked::New(new) => format!("new {new}"),
            Checked::Unfit(_) => "unfit".into(),
        }
    }

    #[test]
    fn changed_files_are_used_and_unfit_ones_are_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&a, "1").unwrap();
        std::fs::write(&b, "2").unwrap();
        let mut follower = follower(&[a.clone(), b.clone()]);
        let mut check = || word(follower.check());
        assert_eq!(check(), "same");
        std::fs::write(&a, "3").unwrap();
        assert_eq!([check(), check()], ["new 32", "same"]);
        // Files between two writes are no news; those that stay so are, once.
        std::fs::write(&a, [0xff]).unwrap();
        assert_eq!([check(), check(), check()], ["same", "unfit", "same"]);
        std::fs::write(&a, [0xfe]).unwrap();
        assert_eq!([check(), check(), check()], ["same", "unfit", "same"]);
        std::fs::remove_file(&a).unwrap();
        assert_eq!([check(), check(), check()], ["same", "unfit", "same"]);
        std::fs::write(&a, "3").unwrap();
        assert_eq!(check(), "same");
        std::fs::write(&a, "4").unwrap();
        assert_eq!([check(), check()], ["new 42", "same"]);
    }
}
