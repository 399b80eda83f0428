//! A gRPC codec whose responses are bytes already: a service encodes what it says once, in the order in which it keeps
//! it for a resume.

use std::marker::PhantomData;

use bytes::{Buf, BufMut, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::bounds::{self, Bounded};

/// Decodes requests `R`; responses are bytes.
#[derive(Debug)]
pub struct HalfPlain<R>(PhantomData<fn() -> R>);

impl<R> Default for HalfPlain<R> {
    fn default() -> HalfPlain<R> {
        HalfPlain(PhantomData)
    }
}

impl<R: Message + Default + Bounded + 'static> Codec for HalfPlain<R> {
    type Encode = Bytes;
    type Decode = R;
    type Encoder = HalfPlain<R>;
    type Decoder = HalfPlain<R>;

    fn encoder(&mut self) -> HalfPlain<R> {
        HalfPlain::default()
    }

    fn decoder(&mut self) -> HalfPlain<R> {
        HalfPlain::default()
    }
}

impl<R> Encoder for HalfPlain<R> {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.reserve(item.len());
        to.put(item);
        Ok(())
    }
}

impl<R: Message + Default + Bounded> Decoder for HalfPlain<R> {
    type Item = R;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<R>, Status> {
        let malformed = |e: prost::DecodeError| Status::invalid_argument(format!("a request: {e}"));
        let request = from.copy_to_bytes(from.remaining());
        bounds::check(&request, R::REPEATED)?;
        R::decode(request).map(Some).map_err(malformed)
    }
}
