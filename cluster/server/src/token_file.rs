//! Tokens in files of their own, which callers show as `Authorization: Bearer TOKEN`: to the console, and to gRPC
//! services. A token must never appear in a log line or an error.

use std::path::{Path, PathBuf};

/// Shortest token, in bytes.
pub const TOKEN_MIN: usize = 32;

/// Largest token file, in bytes.
const FILE_MAX: u64 = 4_096;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{key} = {path:?}: {source}")]
    File { key: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{key} = {path:?}: has {bytes} bytes; write {TOKEN_MIN} to {FILE_MAX} bytes")]
    Length {
        key: &'static str,
        path: PathBuf,
        /// Its length, without white space at both ends.
        bytes: u64,
    },
}

/// The token in the file that a key of the configuration, or an option, names.
pub fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TokenError> {
    let wrong = |source| TokenError::File { key, path: path.into(), source };
    let length = |bytes| TokenError::Length { key, path: path.into(), bytes };
    let bytes = std::fs::metadata(path).map_err(wrong)?.len();
    if bytes > FILE_MAX {
        return Err(length(bytes));
    }
    let token = std::fs::read(path).map_err(wrong)?.trim_ascii().to_vec();
    if token.len() < TOKEN_MIN { Err(length(token.len() as u64)) } else { Ok(token) }
}

/// The token in the value of the header or metadata `authorization`.
pub fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_32_bytes_or_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read("--token-file", file.path()).unwrap_err().to_string()
        };
        assert!(told("short\n").ends_with("has 5 bytes; write 32 to 4096 bytes"));
        assert!(told(&"x".repeat(5_000)).ends_with("has 5000 bytes; write 32 to 4096 bytes"));
        let missing = read("--token-file", Path::new("/no/such")).unwrap_err().to_string();
        assert!(missing.starts_with("--token-file = \"/no/such\": "), "{missing}");
    }
}
