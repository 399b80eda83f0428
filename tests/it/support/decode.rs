//! Decodes the bytes of frames as clients do.

use purview::scene::Kind;
use purview::scene::messages::FrameBatch;
use purview::wire::{EncodedBatch, ServerMsg};

use super::world::World;

impl World {
    /// Encodes every frame of a batch and has its client decode it: leaves first, then enters, and
    /// never more players in view than the cap.
    pub fn decode(&mut self, batch: &FrameBatch) {
        let encoded = EncodedBatch::new(batch.clone());
        for (i, part) in batch.sessions.iter().enumerate() {
            let Some(entity) = self.clients.get(&part.session).map(|c| c.entity) else { continue };
            let cap = self.cap_of(entity);
            let Some(client) = self.clients.get_mut(&part.session) else { continue };
            let mut bytes = Vec::new();
            encoded.write_frame(i, true, &mut bytes);
            client.sizes.push((batch.tick, bytes.len()));
            let Ok(ServerMsg::Frame(frame)) = ServerMsg::decode(&bytes) else {
                panic!("{}: these bytes are not a frame: {bytes:?}", client.entity);
            };
            if frame.resync {
                client.decoded.clear();
            }
            for id in &frame.leaves {
                client.decoded.remove(id);
            }
            for e in frame.enters.iter().filter(|e| e.kind == Kind::PLAYER) {
                client.decoded.insert(e.id);
                let shown = client.decoded.len();
                assert!(shown <= cap, "V2: {} is shown {shown} players, not {cap}", client.entity);
            }
            if self.remember {
                client.history.insert(frame.tick, client.decoded.clone());
            }
        }
    }
}
