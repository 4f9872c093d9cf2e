//! Options of sockets.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::net::sockopt;

use crate::Errno;
use crate::encode::Result;
use crate::extension::{Group, SocketOption};
use crate::socket::Socket;

pub(super) fn set(socket: &Socket, option: SocketOption, value: u64) -> Result {
    let (fd, state) = (&socket.fd, &socket.state);
    let is_on = value != 0;
    match option {
        SocketOption::ReadTimeout => state.read_timeout.store(value, Ordering::Relaxed),
        SocketOption::WriteTimeout => state.write_timeout.store(value, Ordering::Relaxed),
        SocketOption::Ttl => sockopt::set_ip_ttl(fd, number(value)?)?,
        SocketOption::Nodelay => sockopt::set_tcp_nodelay(fd, is_on)?,
        SocketOption::Linger => {
            // In the kernel, another time than 0 would make closing the socket wait. The guest does not: what it has sent is
            // still delivered.
            let resets = value == 1;
            sockopt::set_socket_linger(fd, resets.then_some(Duration::ZERO))?;
            state.linger.store(value, Ordering::Relaxed);
        }
        SocketOption::Broadcast => sockopt::set_socket_broadcast(fd, is_on)?,
        SocketOption::OnlyV6 => sockopt::set_ipv6_v6only(fd, is_on)?,
        SocketOption::MulticastLoopV4 => sockopt::set_ip_multicast_loop(fd, is_on)?,
        SocketOption::MulticastTtlV4 => sockopt::set_ip_multicast_ttl(fd, number(value)?)?,
        SocketOption::MulticastLoopV6 => sockopt::set_ipv6_multicast_loop(fd, is_on)?,
        SocketOption::Keepalive => sockopt::set_socket_keepalive(fd, is_on)?,
        SocketOption::Error => return Err(Errno::Noprotoopt.into()),
    }
    Ok(())
}

pub(super) fn get(socket: &Socket, option: SocketOption) -> Result<u64> {
    let (fd, state) = (&socket.fd, &socket.state);
    Ok(match option {
        SocketOption::ReadTimeout => state.read_timeout.load(Ordering::Relaxed),
        SocketOption::WriteTimeout => state.write_timeout.load(Ordering::Relaxed),
        SocketOption::Ttl => sockopt::ip_ttl(fd)?.into(),
        SocketOption::Nodelay => sockopt::tcp_nodelay(fd)?.into(),
        SocketOption::Linger => state.linger.load(Ordering::Relaxed),
        SocketOption::Broadcast => sockopt::socket_broadcast(fd)?.into(),
        SocketOption::OnlyV6 => sockopt::ipv6_v6only(fd)?.into(),
        SocketOption::MulticastLoopV4 => sockopt::ip_multicast_loop(fd)?.into(),
        SocketOption::MulticastTtlV4 => sockopt::ip_multicast_ttl(fd)?.into(),
        SocketOption::MulticastLoopV6 => sockopt::ipv6_multicast_loop(fd)?.into(),
        SocketOption::Keepalive => sockopt::socket_keepalive(fd)?.into(),
        SocketOption::Error => match sockopt::socket_error(fd)? {
            Ok(()) => 0,
            Err(error) => Errno::from(error).number().into(),
        },
    })
}

/// Makes a socket a member of a group, or ends that.
pub(super) fn set_member(socket: &Socket, group: Group, joins: bool) -> Result {
    let fd = &socket.fd;
    Ok(match (group, joins) {
        (Group::V4 { group, interface }, true) => sockopt::set_ip_add_membership(fd, &group, &interface),
        (Group::V4 { group, interface }, false) => sockopt::set_ip_drop_membership(fd, &group, &interface),
        (Group::V6 { group, interface }, true) => sockopt::set_ipv6_add_membership(fd, &group, interface),
        (Group::V6 { group, interface }, false) => sockopt::set_ipv6_drop_membership(fd, &group, interface),
    }?)
}

/// Returns a number of hops. The kernel says which it takes; `u32::MAX` is the usual one.
fn number(value: u64) -> Result<u32> {
    u32::try_from(value).map_err(|_| Errno::Inval.into())
}
