//! A proxy between the program and a server: HTTP, HTTP with `CONNECT`, and SOCKS5.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::spawn;

use libtest_mimic::Failed;

/// A proxy that connects to a port of this machine, whatever the name of the host.
pub(super) struct Proxy {
    /// Its address, `localhost:PORT`.
    pub(super) address: String,
    /// The heads of the requests, or the names of the hosts.
    pub(super) requests: Receiver<String>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Requests and tunnels over HTTP.
    Http,
    /// HTTP that requires a user and a password: those of `user:secret`.
    HttpWithPassword,
    /// SOCKS5 without authentication.
    Socks,
}

impl Proxy {
    /// Starts a proxy for a server on a port.
    pub(super) fn start(protocol: Protocol, port: u16) -> Result<Proxy, Failed> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = format!("localhost:{}", listener.local_addr()?.port());
        let (sender, requests) = channel();
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                // The client may have gone.
                spawn(move || drop(serve(&stream, protocol, port, &sender)));
            }
        });
        Ok(Proxy { address, requests })
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

fn serve(
    client: &TcpStream,
    protocol: Protocol,
    port: u16,
    requests: &Sender<String>,
) -> io::Result<()> {
    match protocol {
        Protocol::Socks => socks(client, port, requests),
        Protocol::Http | Protocol::HttpWithPassword => http(client, protocol, port, requests),
    }
}

fn http(
    mut client: &TcpStream,
    protocol: Protocol,
    port: u16,
    requests: &Sender<String>,
) -> io::Result<()> {
    let mut head = String::new();
    let mut lines = BufReader::new(client);
    while lines.read_line(&mut head)? > 2 {}
    let _ = requests.send(head.clone());
    // The password in base64.
    let authorized = head.to_lowercase().contains("proxy-authorization: basic dxnlcjpzzwnyzxq=");
    if protocol == Protocol::HttpWithPassword && !authorized {
        return client.write_all(
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\
              Proxy-Authenticate: Basic\r\nConnection: close\r\n\r\n",
        );
    }
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    match head.strip_prefix("CONNECT ") {
        Some(_) => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        None => {
            // `GET http://HOST/PATH` becomes `GET /PATH`.
            let (method, rest) = head.split_once(" http://").unwrap_or_default();
            let path = rest.split_once('/').unwrap_or_default().1;
            server.write_all(format!("{method} /{path}").as_bytes())?;
        }
    }
    tunnel(client, &server)
}

fn socks(mut client: &TcpStream, port: u16, requests: &Sender<String>) -> io::Result<()> {
    let read = |length: usize| {
        let mut bytes = vec![0; length];
        (&*client).read_exact(&mut bytes).map(|()| bytes)
    };
    let methods = read(2)?[1];
    read(methods.into())?;
    client.write_all(&[5, 0])?;
    // Version, command, reserved, type of the address: 3 is a name.
    let is_name = read(4)?[3] == 3;
    let length = if is_name { read(1)?[0] } else { 4 };
    let host = read(length.into())?;
    read(2)?;
    let _ = requests.send(String::from_utf8_lossy(&host).into_owned());
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0])?;
    tunnel(client, &server)
}

/// Copies in both directions until one side closes the connection.
fn tunnel(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    io::copy(&mut &*server, &mut &*client)?;
    client.shutdown(Shutdown::Both)
}
