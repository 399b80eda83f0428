//! The messages and clients of etcd's gRPC services, generated from `proto/etcd/rpc.proto`.

#![allow(missing_docs, clippy::enum_variant_names)]

tonic::include_proto!("etcdserverpb");
