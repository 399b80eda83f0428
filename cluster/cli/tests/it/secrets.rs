//! Passwords of a real etcd and a real PostgreSQL: they are in files, and no output of the program contains them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use purview::scene::Epoch;
use purview_server::launch::{EtcdServer, PostgresServer};
use purview_server::storage::leases::etcd::{Etcd, EtcdOptions};
use purview_server::storage::leases::names::GATEWAY_NUMBERS;
use purview_server::storage::password::Password;
use purview_server::storage::{Claim, LeaseError, Leases, NodeInfo, Put};
use serde_json::json;

use crate::common::{block_on, runtime, wait_for};
use crate::end_to_end::process::{self, purview};
use crate::engine::bench::{node, region};
use crate::etcd_admin::{bytes, order};

/// Longer than a restart of etcd takes.
const LEASE: Duration = Duration::from_secs(4);

const ETCD: &str = "the password at etcd, a long one: 42% & '#?";

const WRONG: &str = "a-wrong-password-of-nobody";

/// An etcd with a user that may do what a cluster does, below `purview/` alone.
fn etcd(dir: Option<&Path>) -> EtcdServer {
    let server = EtcdServer::start(dir).unwrap();
    block_on(async {
        let auth = async |path: &str, body| {
            order(&server.url(), &format!("auth/{path}"), body).await;
        };
        auth("role/add", json!({ "name": "root" })).await;
        auth("user/add", json!({ "name": "root", "password": "the root of all" })).await;
        auth("user/grant", json!({ "user": "root", "role": "root" })).await;
        auth("role/add", json!({ "name": "cluster" })).await;
        // The range ends with the byte after the slash.
        let (key, range_end) = (bytes("purview/"), bytes("purview0"));
        let below = json!({ "permType": "READWRITE", "key": key, "range_end": range_end });
        auth("role/grant", json!({ "name": "cluster", "perm": below })).await;
        auth("user/add", json!({ "name": "purview", "password": ETCD })).await;
        auth("user/grant", json!({ "user": "purview", "role": "cluster" })).await;
        // As docs/cluster.md has it, for the cluster `test`.
        auth("role/add", json!({ "name": "gateway" })).await;
        let below = |kind: &str, prefix: &str| {
            let range_end = format!("{}0", prefix.strip_suffix('/').expect("a folder"));
            json!({ "permType": kind, "key": bytes(prefix), "range_end": bytes(&range_end) })
        };
        let count = bytes("purview/test/values/gateway_processes");
        for perm in [
            below("READ", "purview/test/"),
            below("READWRITE", "purview/test/gateways/"),
            json!({ "permType": "READWRITE", "key": count }),
        ] {
            auth("role/grant", json!({ "name": "gateway", "perm": perm })).await;
        }
        auth("user/add", json!({ "name": "purview_gateway", "password": ETCD })).await;
        auth("user/grant", json!({ "user": "purview_gateway", "role": "gateway" })).await;
        auth("enable", json!({})).await;
    });
    server
}

struct SecretPlace {
    folder: tempfile::TempDir,
    etcd: EtcdServer,
    postgres: PostgresServer,
}

impl SecretPlace {
    fn new() -> SecretPlace {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("etcd.password"), format!("{ETCD}\n")).unwrap();
        std::fs::write(folder.path().join("wrong.password"), WRONG).unwrap();
        SecretPlace { folder, etcd: etcd(None), postgres: PostgresServer::start(None).unwrap() }
    }

    fn password(&self) -> String {
        std::fs::read_to_string(self.postgres.password_file()).unwrap()
    }

    /// A configuration with these password files.
    fn config(&self, etcd: &Path, postgres: &Path) -> PathBuf {
        let text = format!(
            "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"off\"\n[log]\nlevel = \"debug\"\n\
             [cluster]\nnode = \"node-1\"\nlisten = \"127.0.0.1:0\"\netcd = \"{}\"\netcd_user = \"purview\"\n\
             etcd_password_file = \"{}\"\npostgres = \"{}\"\npostgres_password_file = \"{}\"\n\
             [token]\nsecret_file = \"etcd.password\"\n",
            self.etcd.url(),
            etcd.display(),
            self.postgres.address(),
            postgres.display()
        );
        let file = self.folder.path().join("purview.toml");
        std::fs::write(&file, text).unwrap();
        file
    }
}

fn done(command: &mut Command) -> (Option<i32>, String) {
    let done = process::done(command);
    (done.code, done.stdout + &done.stderr)
}

#[test]
fn a_node_logs_in_with_passwords_from_files_and_prints_none_of_them() {
    let place = SecretPlace::new();
    let files = ["etcd.password", "wrong.password"].map(|name| place.folder.path().join(name));
    let [right, wrong] = &files;
    let (log, secrets) = (place.folder.path().join("log"), [ETCD, &place.password(), WRONG]);
    let silent = |said: &str| {
        let told = secrets.iter().any(|secret| said.contains(secret));
        assert!(
            !told && !said.contains("the password at etcd"),
            "the output contains a password: {said}"
        );
    };
    let config = place.config(right, &place.postgres.password_file());
    for command in [&["check", "--print"][..], &["check"], &["check", "--json"]] {
        let (code, said) = done(purview(command).arg(&config));
        assert_eq!(code, Some(0), "{said}");
        silent(&said);
    }
    let out = std::fs::File::create(&log).unwrap();
    let mut node = purview(&["node", "--config"]);
    node.arg(&config).stdout(out.try_clone().unwrap()).stderr(out);
    let mut node = node.spawn().unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_for("a region", || {
        said().contains("a region runs here") || node.try_wait().unwrap().is_some()
    });
    node.kill().unwrap();
    node.wait().unwrap();
    assert!(said().contains("a region runs here"), "{}", said());
    silent(&said());
    // With a wrong password neither store admits it, and the error names the store.
    let own = place.postgres.password_file();
    for (etcd, postgres, refuses) in [(wrong, &own, "etcd"), (right, wrong, "PostgreSQL")] {
        let config = place.config(etcd, postgres);
        let (code, said) = done(purview(&["node", "--config"]).arg(&config));
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("error: ") && said.contains(refuses) && said.contains("refuses to"),
            "{refuses}: {said}"
        );
        silent(&said);
    }
}

#[test]
fn a_password_in_the_configuration_is_refused_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("purview.toml");
    for (key, value, names) in [
        ("postgres", format!("postgres://u:{WRONG}@h:5432/d"), "cluster.postgres_password_file"),
        ("postgres", format!("host=h user=u password={WRONG}"), "cluster.postgres_password_file"),
        ("postgres", format!("postgres://u:{WRONG}@h:notaport/d"), "is not a PostgreSQL address"),
        ("etcd", format!("http://u:{WRONG}@h:2379"), "cluster.etcd_password_file"),
        ("etcd_password", WRONG.to_owned(), "cluster.etcd_password_file"),
    ] {
        std::fs::write(&file, format!("[cluster]\n{key} = \"{value}\"\n")).unwrap();
        let set = format!("cluster.{key}={value}");
        let env = format!("PURVIEW_CLUSTER__{}", key.to_uppercase());
        let said = [
            done(purview(&["check"]).arg(&file)),
            done(purview(&["check", "--print"]).arg(&file)),
            done(&mut purview(&["check", "--print", "--set", &set])),
            done(purview(&["check", "--print"]).env(&env, &value)),
            done(&mut purview(&["node", "--set", &set])),
        ];
        for (code, told) in said {
            assert_eq!(code, Some(1), "{told}");
            assert!(told.contains(names) && !told.contains(WRONG), "{told}");
        }
    }
    for half in ["etcd_user = \"u\"", "etcd_password_file = \"f\""] {
        std::fs::write(&file, format!("[cluster]\n{half}\n")).unwrap();
        let (_, told) = done(purview(&["check"]).arg(&file));
        assert!(told.contains("together"), "{told}");
    }
}

#[test]
fn the_user_of_gateways_has_a_membership_and_can_write_no_lease_of_a_region() {
    let folder = tempfile::tempdir().unwrap();
    let server = etcd(None);
    let file = folder.path().join("etcd.password");
    std::fs::write(&file, ETCD).unwrap();
    let options = |user: &str| {
        let password = Password::read("cluster.etcd_password_file", &file).unwrap();
        let mut options = EtcdOptions::new(vec![server.url()], "test");
        options.user = Some((user.into(), password));
        options
    };
    let refuses = |error: &LeaseError| matches!(error, LeaseError::Refused { .. });
    let runtime = runtime();
    runtime.block_on(async {
        let founds = Etcd::connect(options("purview_gateway")).await;
        assert!(founds.is_err_and(|e| refuses(&e)), "a gateway founds no cluster");
        let of_node = Etcd::connect(options("purview")).await.unwrap();
        let member = of_node.join(node("a"), LEASE).await.unwrap();
        of_node.put_if("plan", None, "by a node".into()).await.unwrap();
        let key = region(1);
        let claimed = of_node.claim(&member, &key).await.unwrap();
        assert!(matches!(claimed, Claim::Granted(_)), "{claimed:?}");
        // What a gateway does.
        let gateway = Etcd::connect(options("purview_gateway")).await.unwrap();
        let number = gateway.get_or_create("gateway_processes", "0".into()).await.unwrap();
        let put = gateway.put_if("gateway_processes", Some(number.revision), "1".into()).await;
        assert!(matches!(put, Ok(Put::Done(_))), "{put:?}");
        assert_eq!(gateway.get_or_create("plan", "mine".into()).await.unwrap().data, "by a node");
        let process = GATEWAY_NUMBERS + 1;
        let info = NodeInfo { regions: false, gateway: true, process, ..node("g") };
        let own = gateway.join(info, LEASE).await.unwrap();
        // What it must not do.
        let refused = [
            gateway.claim(&own, &region(2)).await.err(),
            gateway.take_over(&own, &key, Epoch(1 << 40)).await.err(),
            gateway.put_if("plan", None, "by a gateway".into()).await.err(),
            gateway.put_if("kicks", None, "all".into()).await.err(),
            gateway.campaign(&own).await.err(),
            gateway.evict(member.incarnation()).await.err(),
            gateway.join(node("b"), LEASE).await.err(),
        ];
        for (at, error) in refused.iter().enumerate() {
            // A take-over from an epoch that nobody has asks the store for nothing.
            assert!(at == 1 || error.as_ref().is_some_and(refuses), "{at}: {error:?}");
        }
        own.leave().await.unwrap();
        member.leave().await.unwrap();
    });
}

#[test]
fn a_lease_outlives_a_restart_of_an_etcd_that_forgets_its_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = etcd(Some(&folder.path().join("etcd")));
    let file = folder.path().join("etcd.password");
    std::fs::write(&file, ETCD).unwrap();
    let password = Password::read("cluster.etcd_password_file", &file).unwrap();
    let mut options = EtcdOptions::new(vec![server.url()], "test");
    options.user = Some(("purview".into(), password));
    let runtime = runtime();
    let (store, member) = runtime.block_on(async {
        let store = Etcd::connect(options).await.unwrap();
        let member = store.join(node("a"), LEASE).await.unwrap();
        (store, member)
    });
    // An etcd that ends in order forgets its tokens; one that is killed reads the latest again from its log.
    server.stop();
    server.restart().unwrap();
    // Renewals come first, with no request before them that would get a new token.
    runtime.block_on(async {
        let lost = tokio::time::timeout(LEASE * 3, member.lost()).await;
        assert!(lost.is_err(), "the lease is renewed: {lost:?}");
        let put = store.put_if("value", None, "x".into()).await.unwrap();
        assert!(matches!(put, Put::Done(_)), "{put:?}");
        member.leave().await.unwrap();
    });
}
