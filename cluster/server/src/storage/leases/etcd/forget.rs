//! Removes a whole cluster from etcd, before a restore from a backup.

use etcd_client::DeleteOptions;

use super::Etcd;
use crate::storage::LeaseError;

impl Etcd {
    /// Removes every key of this cluster; the next node that connects creates the cluster anew.
    /// There must be no members.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub async fn forget(&self) -> Result<(), LeaseError> {
        let (asked, root) = ("remove the cluster's keys", self.shared.root.clone());
        let removed = self.shared.ask(asked, |mut client| {
            let root = root.clone();
            async move {
                let options = DeleteOptions::new().with_prefix();
                let answer = client.delete(root, Some(options)).await?;
                Ok((answer.header().map(|header| header.revision()), ()))
            }
        });
        removed.await.map(|_| ()).map_err(|e| e.told(&self.shared.name, asked))
    }
}
