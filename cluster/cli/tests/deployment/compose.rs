//! The compose file as it is, on a real engine: it comes up, two hundred bots find nothing wrong in what they are shown,
//! and it survives what machines do to it.

use std::process::Command;
use std::time::Instant;

use super::missing::{Missing, run};
use super::world::{PROCESSES, with_world};

#[test]
fn the_compose_file_comes_up_and_two_hundred_bots_see_nothing_wrong() {
    with_world("compose::the_compose_file_comes_up", |world| {
        let begin = Instant::now();
        world.up(&[]);
        println!("ready after {:.1} s", begin.elapsed().as_secs_f64());
        for process in PROCESSES {
            world.wait_whole(process);
        }
        println!("{}", world.walk(15, |_| ()));
        let report = world.walk(20, |world| {
            world.wait_players(200);
            world.0.docker(&["kill", "purview-node-2-1"]).unwrap();
            world.again("node-2");
        });
        println!("after a kill of node-2\n{report}");
        // Prometheus hears every process, and the worker serves every region.
        let targets = "http://prometheus:9090/api/v1/query?query=count(up==1)";
        let asked =
            format!("import urllib.request as u; print(u.urlopen({targets:?}).read().decode())");
        world.wait_for("Prometheus hears of five processes", |world| {
            let told = world.exec("worker", &["python3", "-c", &asked]);
            told.is_ok_and(|told| told.contains("\"5\""))
        });
        // The console's token is where the page says.
        let token = world.exec("node-1", &["cat", "/run/purview/console.token"]).unwrap();
        assert!(token.trim().len() >= 32);
        let told = world.exec("node-1", &["purview", "ctl", "status"]).unwrap();
        assert!(told.contains("node-3"), "{told}");
        // It works the second time, and after its data are gone.
        world.compose(&["down"]);
        world.up(&[]);
        world.compose(&["down", "-v"]);
        world.up(&[]);
        world.wait_whole("gateway-1");
        let begin = Instant::now();
        world.compose(&["down", "-v"]);
        println!("down after {:.1} s", begin.elapsed().as_secs_f64());
    });
}

#[test]
fn the_image_needs_no_root_no_shell_and_no_writable_folder() {
    with_world("compose::the_image_needs_no_root", |world| {
        let hardened =
            ["run", "--rm", "--read-only", "--network=none", "--cap-drop=ALL", "purview"];
        let version = world.0.docker(&[&hardened[..], &["--version"]].concat()).unwrap();
        assert!(version.starts_with("purview "), "{version}");
        let user = world.0.docker(&["inspect", "--format", "{{.Config.User}}", "purview"]).unwrap();
        assert_eq!(user.trim(), "65532:65532");
        let shell = world.0.docker(&["inspect", "--format", "{{.Config.Entrypoint}}", "purview"]);
        assert_eq!(shell.unwrap().trim(), "[/usr/local/bin/purview]");
        let lab = world.0.docker(&[
            "run",
            "--rm",
            "--entrypoint",
            "/bin/ls",
            "purview",
            "/usr/local/bin",
        ]);
        assert_eq!(lab.unwrap().trim(), "purview", "the lab is no part of it");
    });
}

#[test]
fn hadolint_accepts_the_files_of_images() {
    let missing = Command::new("hadolint").arg("--version").output().is_err();
    if missing {
        return Missing("there is no program hadolint".into()).skips("compose::hadolint");
    }
    let root = super::missing::root();
    for file in ["Dockerfile", "Dockerfile.source", "compose/Dockerfile.worker"] {
        run(Command::new("hadolint").arg(root.join("deploy").join(file))).unwrap();
    }
}
