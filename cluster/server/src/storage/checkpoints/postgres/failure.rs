//! What went wrong with a request to PostgreSQL, and what to do about it.

use tokio_postgres::Error;

use crate::storage::CheckpointError;

/// Why a request failed.
#[derive(Debug)]
pub enum Failed {
    /// It may succeed later.
    Unreachable(String),
    /// The server takes no writes: every connection to it is of no use.
    ReadOnly(String),
    /// The connection ended before the answer.
    Closed(String),
    /// A table is missing: the database is another one than before.
    NoTable(String),
    /// It fails again however often it is asked.
    Refused(String),
}

impl Failed {
    pub fn told(self, store: &str, asked: &'static str) -> CheckpointError {
        let store = store.to_owned();
        match self {
            Failed::Unreachable(cause) | Failed::Closed(cause) | Failed::NoTable(cause) => {
                CheckpointError::Unreachable { store, asked, cause }
            }
            Failed::ReadOnly(cause) => {
                let cause = format!("{cause}; want the server that takes writes (the primary)");
                CheckpointError::Unreachable { store, asked, cause }
            }
            Failed::Refused(cause) => CheckpointError::Refused { store, asked, cause },
        }
    }
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Failed {
        let Some(said) = error.as_db_error() else {
            let cause = whole(error);
            return match error.is_closed() {
                true => Failed::Closed(cause),
                false => Failed::Unreachable(cause),
            };
        };
        let code = said.code().code();
        let cause = format!("{} ({code})", said.message());
        // By class: connection, rolled back, resources, in use, ended by the operator, system.
        let passes = ["08", "40", "53", "55", "57", "58"];
        match code {
            // read_only_sql_transaction
            "25006" => Failed::ReadOnly(cause),
            // undefined_table
            "42P01" => Failed::NoTable(cause),
            // admin_shutdown, crash_shutdown
            "57P01" | "57P02" => Failed::Closed(cause),
            _ if passes.iter().any(|class| code.starts_with(class)) => Failed::Unreachable(cause),
            _ => Failed::Refused(cause),
        }
    }
}

/// An error with its causes.
pub fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        text = format!("{text}: {e}");
        cause = e.source();
    }
    text
}
