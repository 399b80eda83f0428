//! What each role may send between processes: a closed list. The links check every message against
//! it where they read the frame. A gateway speaks for its own sessions and for nothing else.
//!
//! | message | node | gateway |
//! |---|---|---|
//! | an input of a session: `Enter`, `Client`, `Hold`, `Release`, `Resync`, `Present`, `Elsewhere`, `Disconnected`, `Resume` | yes | of its own sessions |
//! | any other input for a region | yes | no |
//! | `Frames`, `Notice`, `Busy`, `CommandResult` | yes | no |
//! | `Gone`, claims of sessions | of its own sessions | of its own sessions |
//! | `Suspect`, `Ask`, `Answered` | yes | yes |
//! | `Marked` | yes | its own mark |
//! | any other step of a migration | yes | no |
//! | a question to a logic worker | its own | its own |
//! | that it has logic workers, what they answer and command | its own workers | no: it has none |
//! | anything else of logic workers, private planes | yes | no |
//!
//! A node passes inputs of sessions on for players that have moved, so it may name any session.

use super::messages::{MoveMsg, PeerMsg};
use super::query::{Question, SubjectClaim};
use super::workers::WorkerMsg;
use crate::scene::SessionId;
use crate::scene::messages::{Input, Spawn};

/// Most logic workers of a process.
pub const MAX_WORKERS: usize = 1_024;

/// The role of a process in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It may own regions; it may also hold sessions.
    Node,
    /// It holds sessions.
    Gateway,
}

/// The process at the other end of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// Its number.
    pub process: u64,
    /// Its role.
    pub role: Role,
}

/// Why a process may not send a message. No part of it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// Only nodes send this.
    #[error("{kind} is sent by nodes only, and the sender is a gateway")]
    NodesOnly {
        /// The kind of the message.
        kind: &'static str,
    },
    /// The message speaks for a session, entity, worker, question or mark of another process.
    #[error("{kind} speaks for process {of}; a process speaks only for itself")]
    Foreign {
        /// The kind of the message.
        kind: &'static str,
        /// The process whose name it uses.
        of: u64,
    },
    /// A session brings an entity that names no session.
    #[error("Enter without a session; a gateway brings only the players of its sessions")]
    NoSession,
    /// The process has too many logic workers.
    #[error("a process with {0} logic workers; at most {MAX_WORKERS} are allowed")]
    TooManyWorkers(usize),
}

impl Sender {
    /// Checks whether the process may send a message.
    ///
    /// # Errors
    /// [`Forbidden`].
    pub fn check(self, message: &PeerMsg) -> Result<(), Forbidden> {
        match message {
            PeerMsg::Region { input, .. } => self.input(input),
            PeerMsg::Frames { .. } => self.node("Frames"),
            PeerMsg::Notice { .. } => self.node("Notice"),
            PeerMsg::Busy { .. } => self.node("Busy"),
            PeerMsg::CommandResult(_) => self.node("CommandResult"),
            PeerMsg::Gone(sessions) => {
                sessions.iter().try_for_each(|session| self.session("Gone", *session))
            }
            PeerMsg::Suspect(_) => Ok(()),
            PeerMsg::Ask { question, .. } => match question {
                Question::Players | Question::Entity(_) | Question::Lines | Question::Clock => {
                    Ok(())
                }
                Question::Claims(claims) => self.claims(claims),
                Question::Loads => self.node("Loads"),
                Question::Balance => Ok(()),
            },
            PeerMsg::Answered { answer, .. } => self.claims(&answer.claims),
            PeerMsg::Move(msg) => self.step(msg),
            PeerMsg::Worker(msg) => self.worker(msg),
        }
    }

    /// An input for a region.
    fn input(self, input: &Input) -> Result<(), Forbidden> {
        let kind = match input {
            Input::Enter(spawn) => return self.enter(spawn),
            Input::Client { session, .. } => return self.session_of_gateway("Client", *session),
            Input::Hold { session, .. } => return self.session_of_gateway("Hold", *session),
            Input::Release { session, .. } => return self.session_of_gateway("Release", *session),
            Input::Resync { session, .. } => return self.session_of_gateway("Resync", *session),
            Input::Present(player) => return self.session_of_gateway("Present", player.session),
            Input::Elsewhere { session, .. } => {
                return self.session_of_gateway("Elsewhere", *session);
            }
            Input::Disconnected { session, .. } => {
                return self.session_of_gateway("Disconnected", *session);
            }
            Input::Kicked { session, .. } => {
                return self.session_of_gateway("Kicked", *session);
            }
            Input::Resume(resume) => return self.session_of_gateway("Resume", resume.session),
            Input::Leave(_) => "Leave",
            Input::Bonds { .. } => "Bonds",
            Input::Tell { .. } => "Tell",
            Input::Group(_) => "Group",
            Input::Border(_) => "Border",
            Input::BorderLost(_) => "BorderLost",
            Input::BorderRound(_) => "BorderRound",
            Input::View(_) => "View",
            Input::Handoff(_) => "Handoff",
            Input::Recovered(_) => "Recovered",
            Input::Claims(_) => "Claims",
            Input::Map(_) => "Map",
            Input::Scene(_) => "Scene",
            Input::Command(_) => "Command",
            Input::Locate(_) => "Locate",
            Input::CommandResult(_) => "CommandResult",
        };
        self.node(kind)
    }

    /// A step of a region's migration.
    fn step(self, msg: &MoveMsg) -> Result<(), Forbidden> {
        match msg {
            MoveMsg::Prepare { .. } => self.node("Prepare"),
            MoveMsg::Ready { .. } => self.node("Ready"),
            MoveMsg::Cargo { .. } => self.node("Cargo"),
            MoveMsg::Moved { .. } => self.node("Moved"),
            MoveMsg::Passed { .. } => self.node("Passed"),
            // The region's former owner passes the marks of others on.
            MoveMsg::Marked { mark, .. } => match self.role {
                Role::Node => Ok(()),
                Role::Gateway => self.own("Marked", mark.process),
            },
        }
    }

    /// A message about logic workers.
    fn worker(self, msg: &WorkerMsg) -> Result<(), Forbidden> {
        let of = |worker: u64| SessionId(worker).process();
        match msg {
            // A gateway says which private planes it knows.
            WorkerMsg::Here { workers, .. } if workers.is_empty() => Ok(()),
            WorkerMsg::Here { workers, .. } => {
                self.node("Here")?;
                if workers.len() > MAX_WORKERS {
                    return Err(Forbidden::TooManyWorkers(workers.len()));
                }
                workers.iter().try_for_each(|notice| self.own("Here", of(notice.worker)))
            }
            WorkerMsg::Planes(_) => self.node("Planes"),
            WorkerMsg::Told(_) => self.node("Told"),
            WorkerMsg::Ended { .. } => self.node("Ended"),
            WorkerMsg::Refused { .. } => self.node("Refused"),
            WorkerMsg::Answer(answer) => {
                self.node("Answer")?;
                self.own("Answer", of(answer.worker))
            }
            WorkerMsg::Got(got) => {
                self.node("Got")?;
                self.own("Got", of(got.worker))
            }
            // The answer goes to the process that the question's number names.
            WorkerMsg::Ask(asked) => self.own("Ask", of(asked.question)),
            WorkerMsg::Verdict { worker, .. } => {
                self.node("Verdict")?;
                self.own("Verdict", of(*worker))
            }
        }
    }

    fn claims(self, claims: &[SubjectClaim]) -> Result<(), Forbidden> {
        claims.iter().try_for_each(|claim| self.session("a claim", claim.stamp.session))
    }

    fn node(self, kind: &'static str) -> Result<(), Forbidden> {
        match self.role {
            Role::Node => Ok(()),
            Role::Gateway => Err(Forbidden::NodesOnly { kind }),
        }
    }

    fn session(self, kind: &'static str, session: SessionId) -> Result<(), Forbidden> {
        self.own(kind, session.process())
    }

    /// What a session says. A node may pass it on.
    fn session_of_gateway(self, kind: &'static str, session: SessionId) -> Result<(), Forbidden> {
        match self.role {
            Role::Node => Ok(()),
            Role::Gateway => self.session(kind, session),
        }
    }

    /// A player of a gateway's session has an id of the same process. Nodes spawn and pass on.
    fn enter(self, spawn: &Spawn) -> Result<(), Forbidden> {
        if self.role == Role::Node {
            return Ok(());
        }
        self.session("Enter", spawn.session.ok_or(Forbidden::NoSession)?)?;
        self.own("Enter", spawn.id.process())
    }

    fn own(self, kind: &'static str, of: u64) -> Result<(), Forbidden> {
        if of == self.process { Ok(()) } else { Err(Forbidden::Foreign { kind, of }) }
    }
}
