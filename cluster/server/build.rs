//! Generates the code of gRPC services from `proto/`, without a compiler of protocol buffers on the
//! machine.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const PROTO: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={PROTO}");
    let etcd = protox::compile(["etcd/rpc.proto"], [PROTO])?;
    tonic_prost_build::configure().build_server(false).build_transport(false).compile_fds(etcd)?;

    let interest = protox::compile(["purview/interest/v1/interest.proto"], [PROTO])?;
    let descriptors = PathBuf::from(std::env::var("OUT_DIR")?).join("interest.bin");
    std::fs::write(descriptors, interest.encode_to_vec())?;
    let config = tonic_prost_build::configure().build_server(false).build_transport(false);
    config.bytes(".purview.interest.v1").compile_fds(interest)?;

    let logic = protox::compile(["purview/logic/v1/logic.proto"], [PROTO])?;
    let descriptors = PathBuf::from(std::env::var("OUT_DIR")?).join("logic.bin");
    std::fs::write(descriptors, logic.encode_to_vec())?;
    let config = tonic_prost_build::configure().build_server(false).build_transport(false);
    config.bytes(".purview.logic.v1").compile_fds(logic)?;
    Ok(())
}
