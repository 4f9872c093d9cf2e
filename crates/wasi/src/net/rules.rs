//! Which addresses and names a guest may use: rules, and what follows from them.
//!
//! An address is compared in one form only, [`Place`]: `::ffff:127.0.0.1` is 127.0.0.1, and 0.0.0.0 as a destination is the
//! loopback address, since Linux connects to that.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The most addresses that are remembered for a rule with a name.
const MAX_FOUND: usize = 4096;

const FORMS: &str = "expected connect=HOST:PORT or listen=ADDRESS:PORT, where `*` stands for every host, address or port, \
     as in connect=example.com:443, connect=[::1]:80, connect=*:443, listen=127.0.0.1:*";

/// Something that a guest may do in the network: `connect=HOST:PORT` or `listen=ADDRESS:PORT`.
///
/// ```
/// use gpu_run_wasi::NetRule;
/// for text in ["connect=example.com:443", "connect=[::1]:80", "connect=*:443", "listen=127.0.0.1:*"] {
///     assert_eq!(text.parse::<NetRule>().unwrap().to_string(), text);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetRule {
    way: Way,
    host: Host,
    /// `None` for every port.
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Connect,
    Listen,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    Address(Place),
    /// In lower case, without a dot at the end.
    Name(String),
}

/// An address without its port, in the one form that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    ip: IpAddr,
    /// The interface. 0 for addresses that mean the same on every interface: the kernel ignores it there.
    scope: u32,
}

impl Place {
    fn new(ip: IpAddr, scope: u32) -> Self {
        let ip = ip.to_canonical();
        Self { ip, scope: if needs_scope(ip) { scope } else { 0 } }
    }
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        let scope = if let SocketAddr::V6(v6) = address { v6.scope_id() } else { 0 };
        Self::new(address.ip(), scope)
    }
}

/// Returns whether an address means something only together with an interface: link-local ones, and groups of an interface or link.
fn needs_scope(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local() || matches!(ip.segments()[0] & 0xff0f, 0xff01 | 0xff02),
    }
}

/// Returns an address as it is given to the kernel: without a scope that means nothing.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), v6.flowinfo(), Place::from(address).scope).into(),
        v4 => v4,
    }
}

/// Returns an address as a destination: Linux takes an unspecified one for the loopback address of its family.
pub(super) fn destination(address: SocketAddr) -> SocketAddr {
    let mut address = plain(address);
    if address.ip().to_canonical().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

impl NetRule {
    fn is_for(&self, way: Way, port: u16) -> bool {
        self.way == way && self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for NetRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (way, place) = match text.split_once('=') {
            Some(("connect", place)) => (Way::Connect, place),
            Some(("listen", place)) => (Way::Listen, place),
            _ => return Err(FORMS.into()),
        };
        if let Some(why) = is_several_or_a_range(place).or_else(|| lacks_port(place)) {
            return Err(format!("{why}; {FORMS}"));
        }
        let Some((host, port)) = place.rsplit_once(':') else { return Err(format!("no port is given; {FORMS}")) };
        let port = match port {
            "*" => None,
            _ => match port.parse::<u16>() {
                // `parse` takes a plus sign, too.
                Ok(number) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(number),
                _ => return Err(format!("{port:?} is not a port from 0 to 65535 or `*`; {FORMS}")),
            },
        };
        let host = host_of(host).map_err(|why| format!("{why}; {FORMS}"))?;
        match (way, &host) {
            (Way::Listen, Host::Name(name)) => {
                Err(format!("{name:?} is not an address, and listen= takes no names; {FORMS}"))
            }
            (Way::Connect, Host::Address(place)) if place.ip.is_unspecified() => {
                Err(format!("{} is not a destination: `*` stands for every address; {FORMS}", place.ip))
            }
            (Way::Connect, _) if port == Some(0) => {
                Err(format!("port 0 is no destination; `*` stands for every port; {FORMS}"))
            }
            _ => Ok(Self { way, host, port }),
        }
    }
}

/// Says why what follows the way is more than one place.
fn is_several_or_a_range(place: &str) -> Option<String> {
    if place.contains([',', ';', '=']) {
        return Some("one rule per --net".into());
    }
    let (start, _) = place.split_once('/')?;
    let is_address = start.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    is_address.then(|| "address ranges are not supported".into())
}

/// Says that an IPv6 address has no port, since its own colons look like one.
fn lacks_port(place: &str) -> Option<String> {
    if place.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("no port is given: an IPv6 address is in brackets before it, [{place}]:PORT"));
    }
    place.ends_with(']').then(|| format!("no port is given: {place}:PORT"))
}

/// Decodes the part before the port, or says why it cannot be one.
fn host_of(text: &str) -> Result<Host, String> {
    if text == "*" {
        return Ok(Host::Any);
    }
    if let Some(text) = text.strip_prefix('[') {
        if let Some((_, interface)) = text.trim_end_matches(']').split_once('%')
            && interface.parse::<u32>().is_err()
        {
            return Err(format!("{interface:?} is not an interface: an interface is given by its number"));
        }
        let v6 = text.strip_suffix(']').and_then(|text| format!("[{text}]:0").parse::<SocketAddrV6>().ok());
        let v6 = v6.ok_or_else(|| format!("[{text} is not an IPv6 address in brackets"))?;
        let place = Place::from(SocketAddr::from(v6));
        if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 {
            return Err(format!("[{0}] is local to a link: say which by its number, as in [{0}%2]", v6.ip()));
        }
        return if place.scope == v6.scope_id() {
            Ok(Host::Address(place))
        } else {
            Err(format!("{} is the same on every interface: leave out %{}", v6.ip(), v6.scope_id()))
        };
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("an IPv6 address is in brackets before its port: [{text}]"));
    }
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(Place::new(ip.into(), 0)));
    }
    if text.contains('*') {
        return Err(format!("{text:?}: `*` stands for a whole host, not a part of one"));
    }
    let name = normal(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(format!("{text:?} is neither a name nor an address"));
    }
    // The resolver would take 2130706433, 0x7f.1 and 127.1 for addresses.
    let last = name.rsplit('.').next().unwrap_or(&name);
    if last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") {
        return Err(format!("{text:?} is not an address in its usual form, as 127.0.0.1 is"));
    }
    Ok(Host::Name(name))
}

/// Returns a name in the form in which names are compared.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

impl fmt::Display for NetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Connect => "connect",
            Way::Listen => "listen",
        };
        write!(f, "{way}=")?;
        match &self.host {
            Host::Any => write!(f, "*"),
            Host::Address(Place { ip: IpAddr::V4(ip), .. }) => write!(f, "{ip}"),
            Host::Address(Place { ip, scope: 0 }) => write!(f, "[{ip}]"),
            Host::Address(Place { ip, scope }) => write!(f, "[{ip}%{scope}]"),
            Host::Name(name) => write!(f, "{name}"),
        }?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => write!(f, ":*"),
        }
    }
}

/// The rules of one instance, and the addresses of the names that were looked up for it.
pub(crate) struct Policy {
    rules: Arc<[NetRule]>,
    /// The addresses of each rule that has a name.
    found: Mutex<Vec<BTreeSet<Place>>>,
}

impl Policy {
    pub(crate) fn new(rules: Arc<[NetRule]>) -> Self {
        let found = Mutex::new(vec![BTreeSet::new(); rules.len()]);
        Self { rules, found }
    }

    /// Returns whether a guest may send to this address. It must be one that [`destination`] returned, or a sender's.
    pub(crate) fn may_connect(&self, address: SocketAddr) -> bool {
        let place = Place::from(address);
        let mut found = self.found.lock();
        self.rules.iter().zip(found.iter_mut()).any(|(rule, found)| {
            rule.is_for(Way::Connect, address.port())
                && match &rule.host {
                    Host::Any => true,
                    Host::Address(own) => *own == place,
                    Host::Name(_) => found.contains(&place),
                }
        })
    }

    /// Returns whether a guest may send anything to anybody.
    pub(crate) fn may_connect_somewhere(&self) -> bool {
        self.rules.iter().any(|rule| rule.way == Way::Connect)
    }

    pub(crate) fn may_listen(&self, address: SocketAddr) -> bool {
        let place = Place::from(address);
        self.rules.iter().any(|rule| {
            rule.is_for(Way::Listen, address.port())
                && match &rule.host {
                    Host::Any => true,
                    Host::Address(own) => *own == place,
                    Host::Name(_) => false,
                }
        })
    }

    /// Returns the name that the host looks up if a guest asks for this one; `None` if it may not ask.
    ///
    /// For a rule with a name, that is the rule's: `db.` and `db` are one name here, but not for a resolver.
    pub(crate) fn name_to_look_up(&self, name: &str) -> Option<String> {
        let normal = normal(name);
        let mut connects = self.rules.iter().filter(|rule| rule.way == Way::Connect);
        if connects.clone().any(|rule| matches!(&rule.host, Host::Name(own) if *own == normal)) {
            return Some(normal);
        }
        connects.any(|rule| rule.host == Host::Any).then(|| name.to_owned())
    }

    /// Takes note of the addresses of a name that [`Policy::name_to_look_up`] returned.
    pub(crate) fn take_found(&self, name: &str, addresses: &[SocketAddr]) {
        for (rule, found) in self.rules.iter().zip(self.found.lock().iter_mut()) {
            if matches!(&rule.host, Host::Name(own) if own == name) {
                if found.len() > MAX_FOUND {
                    found.clear();
                }
                // A server says by 0.0.0.0 that it blocks a name; nobody means this machine by that.
                let usable = addresses.iter().filter(|address| !address.ip().to_canonical().is_unspecified());
                found.extend(usable.map(|address| Place::from(*address)));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test, that is an assertion.
#[path = "rules_tests.rs"]
mod tests;
