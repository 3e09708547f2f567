//! Addresses of this machine as seen from clusters.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// Returns true if this machine can listen at an address.
pub(crate) fn is_own(address: IpAddr) -> bool {
    TcpListener::bind((address, 0)).is_ok()
}

/// The address of this machine on the route to a server, or on the default route. Sends no packets:
/// the kernel chooses the address.
pub(crate) fn own_address(server: Option<IpAddr>) -> Option<IpAddr> {
    // An address that is reserved for documentation.
    let anywhere = IpAddr::from(Ipv4Addr::new(192, 0, 2, 1));
    let server = server.filter(|it| !it.is_loopback() && !it.is_unspecified());
    let mut to = server.into_iter().chain([anywhere]);
    to.find_map(|to| {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.connect(SocketAddr::new(to, 9)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        (!own.is_loopback() && !own.is_unspecified()).then_some(own)
    })
}
