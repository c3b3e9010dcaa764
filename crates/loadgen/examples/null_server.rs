//! A server that answers every call at once and does nothing: what remains is the cost of the load
//! generator itself. `cargo run --release -p lightcone-loadgen --example null_server -- 4000`, then
//! `lightcone-loadgen --url ws://127.0.0.1:4000 --database any`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use lightcone_loadgen::websocket::HANDSHAKE_ACCEPT;
use lightcone_types::{ConnectionId, Identity, Timestamp};
use lightcone_wire::{server, ClientMessage, ClientPayload, Protocol};

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "4000".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    eprintln!("listening on port {port}, process {}", std::process::id());
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || {
            if let Err(error) = serve(stream) {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::new();
    let mut chunk = vec![0; 256 * 1024];
    let head_end = loop {
        if let Some(at) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            read => input.extend_from_slice(&chunk[..read]),
        }
    };
    let is_v3 = String::from_utf8_lossy(&input[..head_end]).contains(Protocol::V3.token());
    let protocol = if is_v3 { Protocol::V3 } else { Protocol::V2 };
    input.drain(..head_end);
    let mut out = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {HANDSHAKE_ACCEPT}\r\nSec-WebSocket-Protocol: {}\r\n\r\n",
        protocol.token()
    )
    .into_bytes();
    let mut body = vec![0];
    server::initial_connection(&mut body, Identity::ZERO, ConnectionId(1), "token");
    append_frame(&mut out, &body);
    loop {
        stream.write_all(&out)?;
        out.clear();
        let read = match stream.read(&mut chunk)? {
            0 => return Ok(()),
            read => read,
        };
        input.extend_from_slice(&chunk[..read]);
        let mut used = 0;
        while let Some((header, end)) = frame(&input[used..]) {
            if input[used] & 0x0f == 8 {
                return Ok(());
            }
            let mask: [u8; 4] = input[used + header - 4..used + header]
                .try_into()
                .expect("the mask has four bytes");
            let payload = &mut input[used + header..used + end];
            for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
                *byte ^= key;
            }
            body.truncate(1);
            for message in ClientPayload::new(protocol, payload) {
                match message {
                    Ok(ClientMessage::CallReducer { request_id, .. }) => {
                        server::reducer_result_ok_empty(&mut body, request_id, Timestamp(1));
                    }
                    other => return Err(std::io::Error::other(format!("{other:?}"))),
                }
            }
            append_frame(&mut out, &body);
            used += end;
        }
        input.drain(..used);
    }
}

fn append_frame(out: &mut Vec<u8>, payload: &[u8]) {
    out.push(0x82);
    if payload.len() < 126 {
        out.push(payload.len() as u8);
    } else {
        out.push(126);
        out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    }
    out.extend_from_slice(payload);
}

/// Size of the header and end of the masked frame that starts here, if all of it is here.
fn frame(bytes: &[u8]) -> Option<(usize, usize)> {
    let (header, length) = match bytes.get(1)? & 0x7f {
        126 => (
            8,
            usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?])),
        ),
        127 => return None,
        length => (6, usize::from(length)),
    };
    (bytes.len() >= header + length).then_some((header, header + length))
}
