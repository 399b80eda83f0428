//! Removes a whole cluster from etcd, before a restore from a backup.

use super::rpc::DeleteRangeRequest;
use super::{Etcd, end_of, revision};
use crate::storage::leases::Result;

impl Etcd {
    /// Removes every key of this cluster; the next node that connects creates the cluster anew.
    /// There must be no members.
    pub async fn forget(&self) -> Result<()> {
        let (asked, root) = ("remove the cluster's keys", self.shared.root.clone());
        let removed = self.shared.ask(asked, |client| {
            let (key, range_end) = (root.clone().into_bytes(), end_of(&root));
            async move {
                let answer = client.delete(DeleteRangeRequest { key, range_end }).await?;
                Ok((revision(answer.header.as_ref()), ()))
            }
        });
        removed.await.map(|_| ()).map_err(|e| e.told(&self.shared.name, asked))
    }
}
