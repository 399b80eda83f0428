//! The examples in Rust, Python, TypeScript and Go say the same of the same world.

use std::path::Path;

use super::support::{Service, runtime};
use crate::foreign::{Workshop, python_with, root, run};

#[path = "../../../../../examples/interest_service.rs"]
#[allow(dead_code)]
mod interest_service;

/// What every example tells.
const TOLD: [&str; 10] = [
    "tick 1: 1 sees 900",
    "tick 1: 900 sees 1",
    "refused: no entity has the id 77",
    "tick 2: 2 sees 900",
    "tick 2: 900 sees 2",
    "resumed: the service has applied 2 batches",
    "tick 3: 1 no longer sees 900",
    "tick 3: 2 no longer sees 900",
    "tick 3: 900 no longer sees 1",
    "tick 3: 900 no longer sees 2",
];

#[test]
fn rust() {
    let service = Service::start(&[]);
    let told = runtime().block_on(interest_service::run(&service.address())).unwrap();
    assert_eq!(told, TOLD);
}

#[test]
fn python() {
    let from = "examples/interest-service/python";
    let proto = "proto/purview/interest/v1/interest.proto";
    let (folder, python) = python_with(from, &["client.py"], proto);
    let service = Service::start(&[]);
    let address = service.ready.listen.unwrap().to_string();
    assert_eq!(run(&folder, &python, &["client.py", &address]), TOLD);
}

#[test]
fn typescript() {
    let workshop = Workshop {
        example: "examples/interest-service/typescript",
        files: &["client.ts", "package.json", "tsconfig.json", ".npmrc"],
        list: "package-lock.json",
        sources: &[],
    };
    let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    let folder = workshop.prepare(
        |folder| drop(run(folder, "npm", &install)),
        |folder| drop(run(folder, "npm", &["run", "build"])),
    );
    let service = Service::start(&[]);
    let (address, proto) = (service.ready.listen.unwrap().to_string(), root().join("proto"));
    let args = ["dist/client.js", &address, proto.to_str().unwrap()];
    assert_eq!(run(&folder, "node", &args), TOLD);
}

#[test]
fn go() {
    let proto = "purview/interest/v1/interest.proto";
    let source = format!("proto/{proto}");
    let workshop = Workshop {
        example: "examples/interest-service/go",
        files: &[],
        list: "client.go",
        sources: &[&source],
    };
    let build = |folder: &Path| {
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let protos = root().join("proto");
        let to = format!("M{proto}=interest-client/interestpb");
        let (go, grpc) = (format!("--go_opt={to}"), format!("--go-grpc_opt={to}"));
        let out = ["--go_out=src", &go, "--go-grpc_out=src", &grpc, proto];
        run(folder, "protoc", &[&["-I", protos.to_str().unwrap()][..], &out].concat());
        // Without modules: the packages are those of the system, and nothing is downloaded.
        let path = format!("GOPATH={}:/usr/share/gocode", folder.display());
        let cache = format!("GOCACHE={}", folder.join("cache").display());
        let go = ["go", "build", "-o", "client", "client.go"];
        run(folder, "env", &[&["GO111MODULE=off", &path, &cache][..], &go].concat());
    };
    let folder = workshop.prepare(|_| {}, build);
    let service = Service::start(&[]);
    let address = service.ready.listen.unwrap().to_string();
    assert_eq!(run(&folder, folder.join("client"), &[&address]), TOLD);
}
