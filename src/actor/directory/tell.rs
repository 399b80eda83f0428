//! Messages of the game's logic to clients: for groups, planes and scenes. A message for one player is an
//! input for its region: [`Input::Tell`].

use std::sync::PoisonError;

use bytes::Bytes;

use super::Directory;
use crate::actor::address::ToRegion;
use crate::scene::messages::{GroupMessage, Input, MAX_MESSAGE_BYTES, MessageId, Recipients};
use crate::scene::{RegionId, SceneId};

/// Why a message was not sent to all for whom it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TellError {
    /// The message is too long. No region was told.
    #[error("a message of {0} bytes; at most {MAX_MESSAGE_BYTES} are allowed")]
    TooLong(usize),
    /// No scene has the number. No region was told.
    #[error("there is no scene {0}")]
    NoScene(SceneId),
    /// Regions could not be told now: they are too busy, or it is not known where they are. All others
    /// were told. To send the message again would tell it twice.
    #[error("regions {0:?} could not be told; the others were told")]
    Missed(Vec<RegionId>),
}

impl Directory {
    /// Tells all clients of a group, of a plane or of a scene something, wherever their players are. The
    /// messages of one process arrive in the order in which they were sent.
    ///
    /// # Errors
    /// [`TellError`], which says whether any region was told.
    pub fn tell_group(&self, to: Recipients, payload: Bytes) -> Result<(), TellError> {
        if payload.len() > MAX_MESSAGE_BYTES {
            return Err(TellError::TooLong(payload.len()));
        }
        let regions = match to {
            Recipients::Bond(_) => self.known_regions(),
            Recipients::Plane(scene, _) | Recipients::Scene(scene) => {
                self.regions_with_players(scene).ok_or(TellError::NoScene(scene))?
            }
        };
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *messages;
        *messages += 1;
        let id = MessageId { sender: self.sender, number };
        let message = GroupMessage { id, to, payload, sent_ms: self.tick_now(1).0 };
        let missed = |region: &RegionId| {
            let input = Input::Group(Box::new(message.clone()));
            self.send(*region, ToRegion { input, client: None }).is_err()
        };
        let missed: Vec<RegionId> = regions.into_iter().filter(missed).collect();
        if missed.is_empty() { Ok(()) } else { Err(TellError::Missed(missed)) }
    }
}
