//! Generates the clients of gRPC services from `proto/`, without a compiler of protocol buffers on
//! the machine.

use std::error::Error;

const PROTO: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let files = protox::compile(["etcd/rpc.proto"], [PROTO])?;
    tonic_prost_build::configure().build_server(false).build_transport(false).compile_fds(files)?;
    Ok(())
}
