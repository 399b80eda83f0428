//! A member of the cluster: what its certificate must say, and in which role it sends.

use purview::wire::peer::roles::Role;

use super::hello::HelloError;
use crate::tls::{Named, ProcessRole};

/// A member of the cluster, as recorded in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub regions: bool,
}

impl Member {
    /// Checks that a certificate belongs to this member.
    pub(super) fn check(&self, cluster: &str, shown: &Named) -> Result<(), HelloError> {
        let role = if self.regions { ProcessRole::Node } else { ProcessRole::Gateway };
        // A node's certificate is accepted for a gateway, too.
        let may = shown.role == role || shown.role == ProcessRole::Node;
        if may && shown.cluster == cluster && shown.name == self.name {
            return Ok(());
        }
        let (cluster, name) = (cluster.to_owned(), self.name.clone());
        let claimed = Named { cluster, role, name }.to_string();
        Err(HelloError::Impostor { shown: shown.to_string(), claimed })
    }

    pub(super) fn role(&self) -> Role {
        if self.regions { Role::Node } else { Role::Gateway }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(cluster: &str, role: ProcessRole, name: &str) -> Named {
        Named { cluster: cluster.into(), role, name: name.into() }
    }

    #[test]
    fn a_certificate_must_have_the_cluster_the_name_and_the_role() {
        use ProcessRole::{Gateway, Node};
        let member = |regions| Member { name: "a".into(), regions };
        let check = |regions, shown: Named| member(regions).check("c", &shown);
        assert_eq!(check(true, named("c", Node, "a")), Ok(()));
        assert_eq!(check(false, named("c", Gateway, "a")), Ok(()));
        assert_eq!(check(false, named("c", Node, "a")), Ok(()));
        for shown in [named("c", Gateway, "a"), named("c", Node, "b"), named("d", Node, "a")] {
            let refused = check(true, shown.clone()).unwrap_err();
            let (shown, claimed) = (shown.to_string(), "purview://c/node/a".to_owned());
            assert_eq!(refused, HelloError::Impostor { shown, claimed });
        }
    }
}
