//! Passwords of stores. A password is read from a file of its own; it must never be in the
//! configuration and must never be printed.

use std::fmt;
use std::path::{Path, PathBuf};

/// Largest password file, in bytes.
const FILE_MAX: u64 = 4_096;

/// A password. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(...)")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("{key} = {path:?}: cannot be read: {source}")]
    Unreadable { key: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{key} = {path:?}: holds {found}; write a password of 1 to {FILE_MAX} bytes, as text")]
    Unfit {
        key: &'static str,
        path: PathBuf,
        /// What the file holds instead, without quoting it.
        found: &'static str,
    },
}

impl Password {
    /// Reads the password file that `key` names. White space at both ends is ignored.
    pub fn read(key: &'static str, path: &Path) -> Result<Password, PasswordError> {
        let wrong = |source| PasswordError::Unreadable { key, path: path.into(), source };
        let unfit = |found| PasswordError::Unfit { key, path: path.into(), found };
        if std::fs::metadata(path).map_err(wrong)?.len() > FILE_MAX {
            return Err(unfit("more than that"));
        }
        let bytes = std::fs::read(path).map_err(wrong)?;
        let text = String::from_utf8(bytes).map_err(|_| unfit("bytes that are not UTF-8"))?;
        match text.trim() {
            "" => Err(unfit("nothing")),
            text if text.contains('\0') => Err(unfit("a zero byte")),
            text => Ok(Password(text.into())),
        }
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The PostgreSQL address with this password added, in the form of the address (URL or
    /// key=value).
    pub(crate) fn within(&self, address: &str) -> String {
        if !address.contains("://") {
            let quoted = self.0.replace('\\', "\\\\").replace('\'', "\\'");
            return format!("{address} password='{quoted}'");
        }
        let joined = if address.contains('?') { '&' } else { '?' };
        let bytes = self.0.bytes().map(|byte| format!("%{byte:02X}"));
        format!("{address}{joined}password={}", bytes.collect::<String>())
    }
}

/// What is wrong with the address of a PostgreSQL, without repeating it.
pub(crate) fn check_postgres(address: &str) -> Result<(), &'static str> {
    match address.parse::<tokio_postgres::Config>() {
        Ok(config) if config.get_password().is_some() => Err(
            "a password must not be in the configuration; put it into a file and name that file in \
             cluster.postgres_password_file",
        ),
        Ok(_) => Ok(()),
        Err(_) => Err("is not a PostgreSQL address; write one such as \
             \"postgres://purview@127.0.0.1:5432/purview\", without a password, or \"off\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Password, PasswordError> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("password");
        std::fs::write(&file, bytes).unwrap();
        Password::read("cluster.etcd_password_file", &file)
    }

    #[test]
    fn a_password_is_read_from_a_file_and_never_printed() {
        let password = read(b" hunter two \n").unwrap();
        assert_eq!(password.text(), "hunter two");
        assert_eq!(format!("{password:?}"), "Password(...)");
        for bytes in [&b""[..], b" \n", b"\xff\xfe", b"a\0b", &[b'x'; 5_000]] {
            let error = read(bytes).unwrap_err();
            assert!(matches!(error, PasswordError::Unfit { .. }), "{error}");
            assert!(error.to_string().starts_with("cluster.etcd_password_file = "), "{error}");
        }
        let missing = Password::read("cluster.postgres_password_file", Path::new("/no/such"));
        assert!(matches!(missing, Err(PasswordError::Unreadable { .. })));
    }

    #[test]
    fn any_password_goes_into_either_form_of_an_address() {
        for text in ["simple", "a b&c=d?e#f%41/@:", "it's \\ quoted'", "übergroß", "%"] {
            let password = Password(text.into());
            for address in [
                "postgres://purview@db.internal:5432/purview",
                "postgres://purview@a,b/purview?target_session_attrs=read-write",
                "host=db.internal user=purview dbname=purview",
            ] {
                let whole: tokio_postgres::Config = password.within(address).parse().unwrap();
                assert_eq!(whole.get_password(), Some(text.as_bytes()), "{address}");
                assert_eq!(whole.get_user(), Some("purview"));
                check_postgres(address).unwrap();
                assert!(check_postgres(&password.within(address)).is_err());
            }
        }
    }
}
