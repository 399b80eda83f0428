//! The PROXY protocol header, version 2, in which a proxy names the client of a connection.
//!
//! The connection task reads it before admission. It must be read from configured proxies only: a
//! sender of this header can claim any address.

use std::io;
use std::net::IpAddr;

use proxy_header::{ParseConfig, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes before the addresses: signature, version, family, length.
const HEAD: usize = 16;

/// Longest part after the first bytes that is read; IPv6 addresses take 36 bytes.
const REST_MAX: usize = 2_048;

/// Reads the header and nothing after it. `None`: the proxy connects for itself, for example as a
/// health check.
pub(super) async fn client_of(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let unfit = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut header = vec![0; HEAD];
    socket.read_exact(&mut header).await?;
    let rest = usize::from(u16::from_be_bytes([header[14], header[15]]));
    if !header.starts_with(b"\r\n\r\n\0\r\nQUIT\n") || rest > REST_MAX {
        return Err(unfit("a proxy in gateway.proxies sent no PROXY protocol header, version 2"));
    }
    header.resize(HEAD + rest, 0);
    socket.read_exact(&mut header[HEAD..]).await?;
    let config = ParseConfig { include_tlvs: false, allow_v1: false, allow_v2: true };
    let (header, _) = ProxyHeader::parse(&header, config)
        .map_err(|_| unfit("the proxy's PROXY protocol header cannot be read"))?;
    Ok(header.proxied_address().map(|address| address.source.ip()))
}

#[cfg(test)]
mod tests {
    use proxy_header::ProxiedAddress;

    use super::*;

    fn header(header: &ProxyHeader<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.encode_v2(&mut bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn the_client_address_is_that_of_the_header_and_nothing_more_is_read() {
        let address = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
        for client in ["203.0.113.7:1", "[2001:db8::7]:1"] {
            let to = address(client.replace('7', "9").as_str());
            let named = ProxiedAddress::stream(address(client), to);
            let mut bytes = header(&ProxyHeader::with_address(named));
            bytes.extend_from_slice(b"GET");
            let mut unread = &bytes[..];
            let found = client_of(&mut unread).await.unwrap();
            assert_eq!((found, unread), (Some(address(client).ip()), &b"GET"[..]));
        }
        let own = header(&ProxyHeader::with_local());
        assert_eq!(client_of(&mut &own[..]).await.unwrap(), None);
    }

    #[tokio::test]
    async fn data_without_a_header_is_refused() {
        let mut long = header(&ProxyHeader::with_local());
        long[14..16].copy_from_slice(&[0xff, 0xff]);
        let first = b"PROXY TCP4 10.0.0.1 10.0.0.2 52953 25\r\n".to_vec();
        let mut other = header(&ProxyHeader::with_local());
        other[12] = 0x31;
        for bytes in [long, first, other, b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 3]] {
            assert!(client_of(&mut &bytes[..]).await.is_err(), "{bytes:?}");
        }
    }
}
