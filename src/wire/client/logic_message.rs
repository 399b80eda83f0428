//! Messages of the game's logic, as a client is told them.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::scene::messages::{LogicMessage, MessageKind};
use crate::scene::pieces::{array, bin, uint};

/// A message of the game's logic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// 0: to this player; 1: to all who share a bond with it; 2: to its plane or scene.
    pub kind: u8,
    /// What it says; opaque.
    pub payload: ByteBuf,
}

fn number(kind: MessageKind) -> u8 {
    match kind {
        MessageKind::Tell => 0,
        MessageKind::Bond => 1,
        MessageKind::Announcement => 2,
    }
}

/// Writes [`Message`]s.
pub(super) fn messages(out: &mut Vec<u8>, all: &[LogicMessage]) {
    array(out, all.len());
    for told in all {
        array(out, 2);
        uint(out, number(told.kind).into());
        bin(out, &told.payload);
    }
}

impl From<&LogicMessage> for Message {
    fn from(told: &LogicMessage) -> Message {
        let payload = ByteBuf::from(told.payload.to_vec());
        Message { kind: number(told.kind), payload }
    }
}
