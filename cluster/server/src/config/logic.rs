//! The section of logic workers, `[logic]`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::keys::{PATH, settings};
use super::read::Section;
use super::settings::{TLS, listener_tls};
use crate::tls::CertificateSettings;

/// Which players the workers are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskAbout {
    /// None.
    #[default]
    Nobody,
    /// Those that join.
    Joins,
    /// Those that go elsewhere.
    Jumps,
    /// All.
    Both,
}

settings! {
    /// Logic workers: who may connect, and what they may do.
    pub struct LogicSettings {
        /// The address on which logic workers connect: programs with the rules of the game, over gRPC. A gateway does not
        /// listen there; it asks the workers of the nodes about its players.
        pub listen: Option<SocketAddr> = None, address_or_off();
        /// File with the token that logic workers must show, at least 32 bytes. Default: none; needed beyond this machine.
        pub token_file: Option<PathBuf> = None, path(PATH, "logic.token");
        /// How long an answer of a logic worker may take before its regions go to others.
        pub takeover: Duration = Duration::from_secs(1), time(100, 60_000);
        /// About which players logic workers are asked whether they may come: those that join, those that clients take
        /// elsewhere, or both.
        pub ask: AskAbout = AskAbout::Nobody, choice(&ASKS);
        /// How long the answer of a logic worker may take.
        pub answer_within: Duration = Duration::from_millis(500), time(10, 60_000);
        /// What becomes of a player about which no logic worker answers.
        pub no_answer: NoAnswer = NoAnswer::Admit,
            choice(&[(NoAnswer::Admit, "admit"), (NoAnswer::Refuse, "refuse")]);
        /// Most logic workers that are connected to a process.
        pub workers: usize = 64, count(1, 1_024);
        /// The certificate that clients are shown. Without this section connections are not encrypted.
        pub tls: Option<CertificateSettings> = None, optional(TLS, false, listener_tls);
    }
}

const ASKS: [(AskAbout, &str); 4] = [
    (AskAbout::Nobody, "nobody"),
    (AskAbout::Joins, "joins"),
    (AskAbout::Jumps, "jumps"),
    (AskAbout::Both, "both"),
];

/// What becomes of a player about which no worker answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// It may come.
    Admit,
    /// It may not.
    Refuse,
}

pub(super) fn check(s: &mut Section<'_>) {
    s.forbid(
        "token",
        "a token must not be in the configuration; put it into a file and name that file in \
         logic.token_file",
    );
}

#[cfg(test)]
mod tests {
    use crate::config::{AskAbout, Config, NoAnswer};

    #[test]
    fn the_section_is_read_and_printed_back() {
        let text = "[logic]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"logic.token\"\n\
                    takeover = \"500ms\"\nworkers = 3\nask = \"both\"\nanswer_within = \"200ms\"\nno_answer = \"refuse\"\n\
                    [logic.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
        let config = Config::parse(text).unwrap();
        let logic = &config.logic;
        assert_eq!(logic.takeover.as_millis(), 500);
        assert_eq!((logic.ask, logic.no_answer), (AskAbout::Both, NoAnswer::Refuse));
        assert!(logic.listen.is_some() && logic.tls.is_some() && logic.workers == 3);
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        assert_eq!(Config::parse("").unwrap().logic.listen, None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("takeover = \"50ms\"", "takeover"),
            ("token = \"abc\"", "logic.token_file"),
            ("workers = 0", "between 1 and 1024"),
            ("listen = \"here\"", "an address and port"),
        ] {
            let said = Config::parse(&format!("[logic]\n{text}\n")).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
