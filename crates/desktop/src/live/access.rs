//! Who may connect. A page of another site must not reach the desktop: not by its own scripts (`Origin`), and not by a name that it
//! points at this computer (`Host`). Where others on the network can connect, they need the token; where only this computer can, its other users are refused (`peer`).

use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Debug)]
pub(crate) struct Access {
    address: SocketAddr,
    token: Option<String>,
}

impl Access {
    /// With a token of 128 random bits, unless only this computer can connect.
    pub(crate) fn new(address: SocketAddr) -> std::io::Result<Self> {
        let token = if address.ip().is_loopback() { None } else { Some(random()?) };
        Ok(Self { address, token })
    }

    /// Whether only this computer can connect.
    pub(crate) fn is_local(&self) -> bool {
        self.token.is_none()
    }

    /// The page's address, with the token.
    pub(crate) fn url(&self) -> String {
        let query = self.token.as_ref().map_or(String::new(), |token| format!("?token={token}"));
        format!("http://{}/{query}", self.address)
    }

    /// Whether a request was sent to this server by its address, or as `localhost`. Any other name could be another site's, whose owner
    /// let it point here.
    pub(crate) fn knows_host(&self, host: &str) -> bool {
        let Some((name, port)) = split(host) else { return false };
        let own = self.address.ip();
        let is_own = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => ip == own || own.is_unspecified() || own.is_loopback() && ip.is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        };
        is_own && port == self.address.port()
    }

    /// Whether the page that connects is this server's own.
    pub(crate) fn knows_origin(&self, origin: &str, host: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
    }

    /// Whether a query has the token, if one is needed. Takes as long for a token that is wrong in its last digit as in its first.
    pub(crate) fn knows_token(&self, query: &str) -> bool {
        let Some(token) = &self.token else { return true };
        let said = query.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or("");
        let differs = token.bytes().zip(said.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
        said.len() == token.len() && std::hint::black_box(differs) == 0
    }
}

/// The name and the port of a host; without a port it is HTTP's.
fn split(host: &str) -> Option<(&str, u16)> {
    let end = host.rfind(']').unwrap_or(0);
    match host[end..].find(':') {
        Some(colon) => Some((&host[..end + colon], host[end + colon + 1..].parse().ok()?)),
        None => Some((host, 80)),
    }
}

/// 128 random bits, in hexadecimal digits.
pub(crate) fn random() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str) -> Access {
        Access::new(address.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_host_is_the_address_or_localhost() {
        let here = access("127.0.0.1:8080");
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"] {
            assert!(here.knows_host(host), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:8080",
            "10.0.0.1:8080",
            "",
            ":8080",
        ] {
            assert!(!here.knows_host(host), "{host}");
        }
        assert!(access("0.0.0.0:80").knows_host("10.0.0.1") && !access("0.0.0.0:80").knows_host("evil.example"));
        assert!(access("10.0.0.1:80").knows_host("10.0.0.1") && !access("10.0.0.1:80").knows_host("10.0.0.2"));
    }

    #[test]
    fn an_origin_is_the_host_itself() {
        let here = access("127.0.0.1:8080");
        assert!(here.knows_origin("http://127.0.0.1:8080", "127.0.0.1:8080"));
        for origin in ["http://evil.example", "http://127.0.0.1:8081", "null", "", "http://localhost:8080"] {
            assert!(!here.knows_origin(origin, "127.0.0.1:8080"), "{origin}");
        }
    }

    #[test]
    fn others_need_the_token() {
        assert!(access("127.0.0.1:8080").knows_token(""));
        let open = access("0.0.0.0:8080");
        let token = open.token.clone().unwrap();
        assert_eq!(token.len(), 32);
        assert!(open.knows_token(&format!("stats&token={token}")) && open.url().ends_with(&token));
        let wrong = format!("token={}", "0".repeat(32));
        for query in ["", "token=", &wrong, &format!("token={token}0"), &format!("token={}", &token[1..])] {
            assert!(!open.knows_token(query), "{query}");
        }
    }
}
