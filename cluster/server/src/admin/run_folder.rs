//! The folder of the tokens that are made at each start. `access` writes and reads them there.
//!
//! | folder | when |
//! |---|---|
//! | `$RUNTIME_DIRECTORY`, `$XDG_RUNTIME_DIR` | set, and private |
//! | `purview-UID` in the temporary folder | made here, and private |
//! | `.local/state/purview` in `$HOME` | made here, and private |
//! | a new folder with a random name in the temporary folder | none of these; the log names it |
//!
//! The temporary folder belongs to all users of the machine. A file that another user has put there
//! must neither stop a start nor be taken for a token: only private folders count.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

pub struct Places {
    /// Folders that the system makes for the user.
    given: Vec<PathBuf>,
    home: Option<PathBuf>,
    temp: PathBuf,
}

impl Places {
    pub fn of_process() -> Places {
        Places::of(|name| std::env::var_os(name), std::env::temp_dir())
    }

    fn of(var: impl Fn(&str) -> Option<OsString>, temp: PathBuf) -> Places {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        // systemd lists several folders with colons.
        let first = |value: OsString| std::env::split_paths(&value).next();
        let given = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"];
        let given = given.into_iter().filter_map(|name| first(set(name)?)).collect();
        Places { given, home: set("HOME").map(PathBuf::from), temp }
    }

    fn to_be_made(&self) -> impl Iterator<Item = PathBuf> {
        let uid = geteuid().as_raw();
        let shared = self.temp.join(format!("purview-{uid}"));
        let own = self.home.iter().map(|home| home.join(".local/state/purview"));
        [shared].into_iter().chain(own)
    }

    pub fn to_write(&self) -> io::Result<PathBuf> {
        if let Some(given) = self.given.iter().find(|folder| is_private(folder)) {
            return Ok(given.clone());
        }
        let make =
            |folder: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        // It may be there already.
        let made = self.to_be_made().find(|folder| make(folder).is_ok() && is_private(folder));
        match made {
            Some(folder) => Ok(folder),
            None => {
                let private = std::fs::Permissions::from_mode(0o700);
                let mut made = tempfile::Builder::new();
                Ok(made.prefix("purview-").permissions(private).tempdir_in(&self.temp)?.keep())
            }
        }
    }

    /// The file of this name, in the first private folder that has it.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = self.given.iter().cloned().chain(self.to_be_made());
        let mut private = folders.filter(|folder| is_private(folder));
        private.find_map(|folder| Some(folder.join(name)).filter(|file| file.exists()))
    }
}

/// Whether only this user can change what is in a folder.
fn is_private(folder: &Path) -> bool {
    let Ok(found) = std::fs::symlink_metadata(folder) else { return false };
    found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(temp: &Path, vars: &[(&str, &Path)]) -> Places {
        let var = |name: &str| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        };
        Places::of(var, temp.to_owned())
    }

    fn make(folder: PathBuf, mode: u32) -> PathBuf {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn a_private_folder_of_the_system_is_used_first() {
        let place = tempfile::tempdir().unwrap();
        let run = make(place.path().join("run"), 0o755);
        let shared = make(place.path().join("shared"), 0o777);
        let vars = [("RUNTIME_DIRECTORY", &*shared), ("XDG_RUNTIME_DIR", &*run)];
        let places = places(place.path(), &vars);
        assert_eq!(places.to_write().unwrap(), run);
        std::fs::write(run.join("t"), "").unwrap();
        assert_eq!((places.find("t"), places.find("u")), (Some(run.join("t")), None));
    }

    #[test]
    fn what_another_user_puts_into_the_temporary_folder_stops_nothing_and_is_no_token() {
        let place = tempfile::tempdir().unwrap();
        let (temp, home) = (place.path().join("tmp"), place.path().join("home"));
        let temp = make(temp, 0o1777);
        let own = temp.join(format!("purview-{}", geteuid().as_raw()));
        let places = places(&temp, &[("HOME", &home)]);
        assert_eq!(places.to_write().unwrap(), own);
        assert_eq!(own.metadata().unwrap().mode() & 0o777, 0o700);
        // Somebody else was first: a folder that others can write to, a file, a link.
        let squats: [&dyn Fn(); 3] =
            [&|| drop(make(own.clone(), 0o777)), &|| std::fs::write(&own, "").unwrap(), &|| {
                std::os::unix::fs::symlink(&home, &own).unwrap()
            }];
        for squat in squats {
            std::fs::remove_dir_all(&own).or_else(|_| std::fs::remove_file(&own)).unwrap();
            squat();
            if own.is_dir() && !own.is_symlink() {
                std::fs::write(own.join("t"), "planted").unwrap();
            }
            assert_eq!(places.find("t"), None);
            assert_eq!(places.to_write().unwrap(), home.join(".local/state/purview"));
        }
        let nowhere = Places { home: None, ..places };
        let random = nowhere.to_write().unwrap();
        assert!(random.starts_with(&temp) && random != own && is_private(&random));
    }
}
