//! The section of logic workers, `[logic]`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keys;
use super::read::{Section, time};
use super::settings::listener_tls;
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

/// Logic workers: who may connect, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicSettings {
    /// The address for workers; `None`: there are none.
    pub listen: Option<SocketAddr>,
    /// The file with the token that workers must show.
    pub token_file: Option<PathBuf>,
    /// The certificate that workers are shown; `None`: no TLS.
    pub tls: Option<CertificateSettings>,
    /// How long a session without a stream can be resumed.
    pub resume: Duration,
    /// After how long without a stream, or without an answer, the regions of a worker go to others.
    pub takeover: Duration,
    /// Most workers of a process.
    pub workers: usize,
    /// Which players workers are asked about.
    pub ask: AskAbout,
    /// How long an answer may take.
    pub answer_within: Duration,
    /// Whether a player may come if there is no answer.
    pub admits_unanswered: bool,
}

impl Default for LogicSettings {
    fn default() -> LogicSettings {
        LogicSettings {
            listen: None,
            token_file: None,
            tls: None,
            resume: Duration::from_secs(10),
            takeover: Duration::from_secs(1),
            workers: 64,
            ask: AskAbout::Nobody,
            answer_within: Duration::from_millis(500),
            admits_unanswered: true,
        }
    }
}

/// The words of `logic.ask`, in their order.
pub(super) const ASKS: [AskAbout; 4] =
    [AskAbout::Nobody, AskAbout::Joins, AskAbout::Jumps, AskAbout::Both];

pub(super) fn read(root: &mut Section<'_>, folder: &Path) -> LogicSettings {
    let mut s = root.section("logic");
    let d = LogicSettings::default();
    let settings = LogicSettings {
        listen: s.address(&keys::LOGIC_LISTEN, d.listen),
        token_file: s.path(&keys::LOGIC_TOKEN_FILE, folder),
        resume: time(&mut s, &keys::LOGIC_RESUME, d.resume),
        takeover: time(&mut s, &keys::LOGIC_TAKEOVER, d.takeover),
        workers: s.count(&keys::LOGIC_WORKERS, d.workers as i64) as usize,
        ask: ASKS[s.choice(&keys::LOGIC_ASK, 0)],
        answer_within: time(&mut s, &keys::LOGIC_ANSWER, d.answer_within),
        admits_unanswered: s.choice(&keys::LOGIC_NO_ANSWER, 0) == 0,
        tls: listener_tls(&mut s, folder),
    };
    s.forbid(
        "token",
        "a token must not be in the configuration; put it into a file and name that file in \
         logic.token_file",
    );
    if settings.resume < settings.takeover {
        let rule = "must be at least logic.takeover".to_owned();
        s.unfit(&keys::LOGIC_RESUME, &format!("{:?}", settings.resume), rule);
    }
    root.close(s);
    settings
}

#[cfg(test)]
mod tests {
    use crate::config::{AskAbout, Config};

    #[test]
    fn the_section_is_read_and_printed_back() {
        let text = "[logic]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"logic.token\"\nresume = \"20s\"\n\
                    takeover = \"500ms\"\nworkers = 3\nask = \"both\"\nanswer_within = \"200ms\"\nno_answer = \"refuse\"\n\
                    [logic.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
        let config = Config::parse(text).unwrap();
        let logic = &config.logic;
        assert_eq!((logic.resume.as_secs(), logic.takeover.as_millis()), (20, 500));
        assert_eq!((logic.ask, logic.admits_unanswered), (AskAbout::Both, false));
        assert!(logic.listen.is_some() && logic.tls.is_some() && logic.workers == 3);
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        assert_eq!(Config::parse("").unwrap().logic.listen, None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("resume = \"500ms\"\ntakeover = \"2s\"", "at least logic.takeover"),
            ("token = \"abc\"", "logic.token_file"),
            ("workers = 0", "between 1 and 1024"),
            ("listen = \"here\"", "an address and port"),
        ] {
            let said = Config::parse(&format!("[logic]\n{text}\n")).unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
