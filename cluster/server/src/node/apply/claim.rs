//! Claims regions and starts granted ones.

use purview::scene::mutants::{self, Mutant};
use purview::scene::{Epoch, RegionId};

use super::Apply;
use super::start::{StartError, Started};
use crate::node::down::Next;
use crate::node::layout_change;
use crate::node::reconcile::Route;
use crate::storage::{Claim, RegionKey, View};

/// The store does not answer now: nothing more is claimed by this view.
struct Stop;

impl Apply {
    /// Claims these, one after the other, until the store does not answer.
    pub(super) async fn claim(&mut self, ids: Vec<RegionId>, view: &View) {
        for id in ids {
            if self.claim_one(id, view).await.is_err() {
                return;
            }
        }
    }

    async fn claim_one(&mut self, id: RegionId, view: &View) -> Result<(), Stop> {
        let Some(key) = self.handles.maps.key(id) else { return Ok(()) };
        if self.handles.local_regions.lock().epoch(id).is_some() || self.migrator.is_moving(id) {
            return Ok(());
        }
        match self.is_due(id).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                purview::log_limited!(warn, %error, region = %id, "cannot claim the region now");
                return Err(Stop);
            }
        }
        let stores = (&*self.handles.store, self.handles.checkpoints.as_deref());
        match self.downs.obey(stores, id, &key, view).await {
            Ok(Next::Start) => {}
            Ok(Next::Wait) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, region = %id, "cannot claim the region now");
                return Err(Stop);
            }
        }
        match self.store().claim(&self.handles.me, &key).await {
            // Taken over with all that lived there, which has not come. Gateways hold this epoch for its own: it goes
            // on from a checkpoint under another.
            Ok(Claim::Granted(grant)) if grant.lineage != grant.epoch => {
                self.give_up(&key, grant.epoch).await;
                Ok(())
            }
            Ok(Claim::Granted(grant)) => self.begin_granted(id, &key, grant.epoch).await,
            Ok(Claim::Refused(_)) => Ok(()),
            Err(error) => {
                purview::log_limited!(warn, %error, region = %id, "cannot claim the region now");
                Err(Stop)
            }
        }
    }

    /// Starts a region that was granted, or finds out what becomes of it.
    async fn begin_granted(
        &mut self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<(), Stop> {
        match self.start(id, key, epoch).await {
            Ok(()) => Ok(()),
            // The grant stays; it is tried again.
            Err(error @ StartError::NotNow(_)) => {
                purview::log_limited!(warn, %error, region = %id, "cannot start the region yet");
                Err(Stop)
            }
            // So does it here; no other process starts it.
            Err(error) if error.is_for_an_operator() => {
                let told = (&*self.handles.store, self.handles.me.node().name.as_str());
                self.downs.hold(told, id, epoch, error.to_string()).await;
                Ok(())
            }
            Err(error) => {
                purview::log_limited!(error, %error, region = %id, "a region cannot be started here");
                self.give_up(key, epoch).await;
                Ok(())
            }
        }
    }

    /// Starts a region that was granted: empty if it never ran, else from its last checkpoint.
    async fn start(
        &mut self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<(), StartError> {
        let Some(scene) = self.handles.maps.scene_of(id) else { return Ok(()) };
        let ran_before =
            self.starter().ran_before(key).await? && !mutants::has(Mutant::StartsEmpty);
        let record = layout_change::record_now(self.store(), &scene).await?;
        let is_new = scene.map.get(id).is_none() && !record.retiring.contains_key(&id.0);
        let started = match ran_before {
            // It owns nothing before the map changes.
            _ if is_new => Some(Started::unborn(&scene, id, epoch)),
            false => Started::empty(&scene, id, epoch),
            true => {
                let snapshot = self.starter().last_checkpoint(&scene, id, key, epoch).await?;
                let known = (self.handles.maps.ids(), &self.told);
                let started = self.starter().recovered(&scene, (id, epoch), snapshot, known);
                self.recovered_late += u64::from(started.is_late);
                Some(started.with?)
            }
        };
        let Some(Started { region, effects }) = started else { return Ok(()) };
        if self.handles.local_regions.lock().epoch(id).is_some() {
            // It has arrived meanwhile from another process. A correct store does not allow that.
            tracing::warn!(region = %id, %epoch, "the region to start already runs here");
            return Ok(());
        }
        self.handles.links.router().set_epoch(id, epoch);
        let runs = self.handles.local_regions.lock().start(
            &scene,
            region,
            epoch,
            (effects, &self.handles.links),
        );
        if runs {
            tracing::info!(region = %id, %epoch, "a region runs here");
            self.routes.insert(id, Route::Here(epoch));
            if self.told.insert(id, epoch).is_some_and(|before| before < epoch) {
                self.handles.directory.tell_owner(id, epoch);
            }
        }
        Ok(())
    }
}
