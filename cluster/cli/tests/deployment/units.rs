//! The units in a real systemd, booted in a container without a network: they start, tell their state, are restarted by the
//! watchdog, end gracefully, and leave little to an attacker.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::images::{built, debian, stripped};
use super::missing::{Missing, need_root, program, root, run};

/// The most that `systemd-analyze security` may find, in tenths of its points: 0 is best, 100 worst.
const EXPOSURE: &str = "20";

/// What the machine runs after its boot; each line of `/results` is a name and what was found.
const SCRIPT: &str = r#"#!/bin/sh
tell() { echo "$1=$2" >>/results; }
state() { systemctl show --value -p "$2" "$1"; }
systemd-sysusers && systemd-tmpfiles --create
chown -R root:purview /etc/purview && chmod 640 /etc/purview/*
systemctl daemon-reload

systemctl start purview-serve; tell serve-start $?
sleep 2
tell serve-state "$(state purview-serve ActiveState)"
tell serve-status "$(state purview-serve StatusText)"
tell serve-user "$(ps -o user= -p "$(state purview-serve MainPID)")"
purview ctl ready --config /etc/purview/purview.toml >>/results; tell serve-ready $?
kill -STOP "$(state purview-serve MainPID)"
for _ in $(seq 60); do
    [ "$(state purview-serve NRestarts)" -ge 1 ] && [ "$(state purview-serve ActiveState)" = active ] && break
    sleep 0.5
done
tell serve-restarts "$(state purview-serve NRestarts)"
tell serve-again "$(state purview-serve ActiveState)"
systemctl stop purview-serve; tell serve-stop $?
tell serve-result "$(state purview-serve Result)/$(state purview-serve ExecMainStatus)"
tell serve-data "$(ls /var/lib/purview)"

systemctl start --no-block purview-node
sleep 6
tell node-state "$(state purview-node ActiveState)"
tell node-status "$(state purview-node StatusText)"
systemctl stop purview-node; tell node-stop $?

systemctl start purview-interest; tell interest-start $?
tell interest-state "$(state purview-interest ActiveState)"
systemctl stop purview-interest
tell interest-result "$(state purview-interest Result)"

for unit in serve node gateway interest; do
    systemd-analyze security --no-pager --threshold=THRESHOLD "purview-$unit" >"/security-$unit" 2>&1
    tell "security-$unit" $?
done
journalctl --no-pager >/journal
tell end 0
systemctl poweroff
"#;

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A machine with the program, the units and a configuration.
fn machine(at: &Path) -> Result<(), Missing> {
    let tar = debian("systemd,systemd-sysv,dbus,procps")?;
    run(Command::new("tar").arg("-C").arg(at).arg("-xf").arg(tar)).map_err(Missing)?;
    stripped(&built("purview"), &at.join("usr/local/bin"), "purview");
    let (units, etc) = (root().join("deploy/systemd"), at.join("etc"));
    for entry in std::fs::read_dir(units).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let to = match name.strip_prefix("purview.") {
            Some("sysusers.conf") => at.join("usr/lib/sysusers.d/purview.conf"),
            Some("tmpfiles.conf") => at.join("usr/lib/tmpfiles.d/purview.conf"),
            _ => etc.join("systemd/system").join(&name),
        };
        std::fs::copy(entry.path(), to).unwrap();
    }
    write(&etc.join("purview/purview.toml"), "[token]\nsecret_file = \"token.secret\"\n", 0o640);
    write(&etc.join("purview/token.secret"), "a secret of more than thirty-two bytes", 0o640);
    write(&etc.join("purview/node.env"), "PURVIEW_CLUSTER__NODE=node-1\n", 0o640);
    // A watchdog with less patience than that of the unit.
    let less = "[Service]\nWatchdogSec=3\n";
    write(&etc.join("systemd/system/purview-serve.service.d/test.conf"), less, 0o644);
    write(&at.join("usr/local/sbin/trial"), &SCRIPT.replace("THRESHOLD", EXPOSURE), 0o755);
    let trial = "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/usr/local/sbin/trial\n";
    write(&etc.join("systemd/system/trial.service"), trial, 0o644);
    let wants = etc.join("systemd/system/multi-user.target.wants");
    std::fs::create_dir_all(&wants).unwrap();
    std::os::unix::fs::symlink("/etc/systemd/system/trial.service", wants.join("trial.service"))
        .unwrap();
    Ok(())
}

/// Boots the machine; returns when it has powered off.
fn boot(at: &Path) -> Result<String, Missing> {
    let nspawn = format!(
        "umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec timeout -s KILL 150 systemd-nspawn -q \
         -D {} --boot --register=no --keep-unit --private-network --console=pipe systemd.unified_cgroup_hierarchy=1",
        at.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", &nspawn]);
    let said = run(&mut command).unwrap_or_else(|said| said);
    let results = std::fs::read_to_string(at.join("results")).unwrap_or_default();
    match results.is_empty() {
        true => Err(Missing(format!("systemd does not boot here: {said}"))),
        false => Ok(results),
    }
}

#[test]
fn the_units_start_report_restart_and_stop_in_a_booted_systemd() {
    let test = "units::the_units";
    let able =
        need_root().and_then(|()| program("systemd-nspawn")).and_then(|_| program("unshare"));
    if let Err(missing) = able {
        return missing.skips(test);
    }
    let at = tempfile::Builder::new().prefix("purview-machine-").tempdir().unwrap();
    let results = match machine(at.path()).and_then(|()| boot(at.path())) {
        Ok(results) => results,
        Err(missing) => return missing.skips(test),
    };
    let read = |name: &str| std::fs::read_to_string(at.path().join(name)).unwrap_or_default();
    let check = |name: &str, holds: &dyn Fn(&str) -> bool| {
        let prefix = format!("{name}=");
        let found =
            results.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("missing");
        assert!(holds(found), "{name} is {found:?}\n{results}\n{}", read("journal"));
    };
    for (name, value) in [
        ("end", "0"),
        ("serve-start", "0"),
        ("serve-state", "active"),
        ("serve-user", "purview"),
        ("serve-ready", "0"),
        ("serve-restarts", "1"),
        ("serve-again", "active"),
        ("serve-stop", "0"),
        ("serve-result", "success/0"),
        // Without an etcd it waits, and says for what.
        ("node-state", "activating"),
        ("node-stop", "0"),
        ("interest-start", "0"),
        ("interest-state", "active"),
        ("interest-result", "success"),
    ] {
        check(name, &|found| found.trim() == value);
    }
    check("serve-status", &|found| found.contains("regions, 0 sessions; ready"));
    check("serve-data", &|found| found.contains("checkpoints.redb"));
    check("node-status", &|found| found.starts_with("waiting: ") && found.contains("unreachable"));
    for unit in ["serve", "node", "gateway", "interest"] {
        let report = read(&format!("security-{unit}"));
        check(&format!("security-{unit}"), &|found| found == "0" || panic!("{report}"));
        println!(
            "{unit}: {}",
            report.lines().rev().find(|line| line.contains("exposure")).unwrap_or_default()
        );
    }
}

#[test]
fn systemd_accepts_every_unit() {
    if let Err(missing) = program("systemd-analyze") {
        return missing.skips("units::systemd_accepts");
    }
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(root().join("deploy/systemd")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".service") {
            // The program is not installed on this machine.
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let text = text.replace("/usr/local/bin/purview", env!("CARGO_BIN_EXE_purview"));
            let unit = folder.path().join(&name);
            std::fs::write(&unit, text).unwrap();
            let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit));
            let said = said.unwrap_or_else(|said| panic!("{said}"));
            assert!(!said.contains(&name), "{said}");
        }
    }
}
