//! The names of kinds of messages. Every match is exhaustive: a new kind needs a sample, too.

use purview::scene::messages::{Input, Notice};
use purview::wire::peer::query::Question;
use purview::wire::peer::{MoveMsg, PeerMsg};

use super::workers;

/// The name of an input's kind. The match is exhaustive: a new kind needs a sample, too.
pub fn kind(input: &Input) -> &'static str {
    match input {
        Input::Enter(_) => "Enter",
        Input::Leave(_) => "Leave",
        Input::Client { .. } => "Client",
        Input::Bonds { .. } => "Bonds",
        Input::Tell { .. } => "Tell",
        Input::Group(_) => "Group",
        Input::Hold { .. } => "Hold",
        Input::Release { .. } => "Release",
        Input::Resync { .. } => "Resync",
        Input::Border(_) => "Border",
        Input::BorderLost(_) => "BorderLost",
        Input::BorderRound(_) => "BorderRound",
        Input::View(_) => "View",
        Input::Handoff(_) => "Handoff",
        Input::Present(_) => "Present",
        Input::Elsewhere { .. } => "Elsewhere",
        Input::Disconnected { .. } => "Disconnected",
        Input::Kicked { .. } => "Kicked",
        Input::Resume(_) => "Resume",
        Input::Recovered(_) => "Recovered",
        Input::Claims(_) => "Claims",
        Input::Map(_) => "Map",
        Input::Scene(_) => "Scene",
        Input::Command(_) => "Command",
        Input::Locate(_) => "Locate",
        Input::CommandResult(_) => "CommandResult",
    }
}

/// The name of a notice's kind, in the same way.
pub fn notice_kind(notice: &Notice) -> &'static str {
    match notice {
        Notice::Route { .. } => "Route",
        Notice::Left { .. } => "Left",
        Notice::Bonds { .. } => "Bonds",
        Notice::Present { .. } => "Present",
        Notice::Resumed(_) => "Resumed",
        Notice::Nowhere { .. } => "Nowhere",
        Notice::Replaced => "Replaced",
        Notice::Refused(_) => "Refused",
        Notice::Kicked => "Kicked",
        Notice::Stays { .. } => "Stays",
        Notice::OtherSubject => "OtherSubject",
    }
}

/// The name of a message's kind with all that decides who may send it, in the same way.
pub fn kind_of(message: &PeerMsg) -> String {
    let inner = match message {
        PeerMsg::Region { input, .. } => kind(input),
        PeerMsg::Notice { notice, .. } => notice_kind(notice),
        PeerMsg::Move(msg) => move_kind(msg),
        PeerMsg::Worker(msg) => workers::kind(msg),
        PeerMsg::Ask { question, .. } => match question {
            Question::Players => "Players",
            Question::Entity(_) => "Entity",
            Question::Lines => "Lines",
            Question::Clock => "Clock",
            Question::Claims(_) => "Claims",
            Question::Loads => "Loads",
            Question::Balance => "Balance",
        },
        PeerMsg::Frames { .. }
        | PeerMsg::Gone(_)
        | PeerMsg::CommandResult(_)
        | PeerMsg::Busy { .. }
        | PeerMsg::Suspect(_)
        | PeerMsg::Answered { .. } => "",
    };
    format!("{} {inner}", message_kind(message)).trim().to_owned()
}

/// The name of a message's kind, in the same way.
pub fn message_kind(message: &PeerMsg) -> &'static str {
    match message {
        PeerMsg::Region { .. } => "Region",
        PeerMsg::Frames { .. } => "Frames",
        PeerMsg::Notice { .. } => "Notice",
        PeerMsg::Gone(_) => "Gone",
        PeerMsg::CommandResult(_) => "CommandResult",
        PeerMsg::Worker(_) => "Worker",
        PeerMsg::Move(_) => "Move",
        PeerMsg::Busy { .. } => "Busy",
        PeerMsg::Suspect(_) => "Suspect",
        PeerMsg::Ask { .. } => "Ask",
        PeerMsg::Answered { .. } => "Answered",
    }
}

/// The name of a migration message's kind, in the same way.
pub fn move_kind(msg: &MoveMsg) -> &'static str {
    match msg {
        MoveMsg::Prepare { .. } => "Prepare",
        MoveMsg::Ready { .. } => "Ready",
        MoveMsg::Cargo { .. } => "Cargo",
        MoveMsg::Moved { .. } => "Moved",
        MoveMsg::Marked { .. } => "Marked",
        MoveMsg::Passed { .. } => "Passed",
    }
}
