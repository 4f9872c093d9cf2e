use super::*;

fn policy(rules: &[&str]) -> Policy {
    Policy::new(rules.iter().map(|rule| rule.parse().expect(rule)).collect())
}

/// Whether a rule allows to connect to what a guest names.
fn connects(rule: &str, address: &str) -> bool {
    policy(&[rule]).may_connect(destination(address.parse().expect(address)))
}

fn listens(rule: &str, address: &str) -> bool {
    policy(&[rule]).may_listen(plain(address.parse().expect(address)))
}

#[test]
fn an_address_allows_itself_in_every_spelling_and_nothing_else() {
    let cases = [
        ("connect=127.0.0.1:80", "127.0.0.1:80", true),
        ("connect=127.0.0.1:80", "127.0.0.1:81", false),
        ("connect=127.0.0.1:80", "127.0.0.2:80", false),
        ("connect=127.0.0.1:80", "[::1]:80", false),
        ("connect=127.0.0.1:*", "127.0.0.1:9", true),
        ("connect=*:443", "10.1.2.3:443", true),
        ("connect=*:443", "[2001:db8::1]:443", true),
        ("connect=*:443", "10.1.2.3:80", false),
        ("connect=*:*", "10.1.2.3:80", true),
        ("connect=[::1]:80", "[::1]:80", true),
        ("connect=[::1]:80", "127.0.0.1:80", false),
        // One address, two families.
        ("connect=127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
        ("connect=[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
        ("connect=10.0.0.1:80", "[::ffff:127.0.0.1]:80", false),
        ("connect=10.0.0.1:80", "[::127.0.0.1]:80", false),
        // Linux connects to this machine.
        ("connect=10.0.0.1:80", "0.0.0.0:80", false),
        ("connect=127.0.0.1:80", "0.0.0.0:80", true),
        ("connect=127.0.0.1:80", "[::]:80", false),
        ("connect=[::1]:80", "[::]:80", true),
        ("connect=[::1]:80", "0.0.0.0:80", false),
        ("connect=127.0.0.1:80", "[::ffff:0.0.0.0]:80", true),
        ("connect=10.0.0.1:80", "[::ffff:0.0.0.0]:80", false),
        // An interface counts where it decides who is meant, and only there.
        ("connect=[::1]:80", "[::1%7]:80", true),
        ("connect=[2001:db8::1]:80", "[2001:db8::1%7]:80", true),
        ("connect=[fe80::1%2]:80", "[fe80::1%2]:80", true),
        ("connect=[fe80::1%2]:80", "[fe80::1%3]:80", false),
        ("connect=[fe80::1%2]:80", "[fe80::1]:80", false),
        // Each way has rules of its own.
        ("listen=127.0.0.1:80", "127.0.0.1:80", false),
        ("listen=*:*", "127.0.0.1:80", false),
        // Nobody has looked it up.
        ("connect=localhost:80", "127.0.0.1:80", false),
    ];
    for (rule, address, allowed) in cases {
        assert_eq!(connects(rule, address), allowed, "{rule} and {address}");
    }
}

#[test]
fn listening_on_one_address_is_not_listening_on_all() {
    let cases = [
        ("listen=127.0.0.1:80", "127.0.0.1:80", true),
        ("listen=127.0.0.1:80", "127.0.0.1:0", false),
        ("listen=127.0.0.1:0", "127.0.0.1:0", true),
        ("listen=127.0.0.1:*", "127.0.0.1:0", true),
        ("listen=127.0.0.1:*", "[::ffff:127.0.0.1]:80", true),
        ("listen=127.0.0.1:*", "0.0.0.0:80", false),
        ("listen=127.0.0.1:*", "[::]:80", false),
        ("listen=127.0.0.1:*", "[::ffff:0.0.0.0]:80", false),
        ("listen=0.0.0.0:80", "0.0.0.0:80", true),
        ("listen=0.0.0.0:80", "[::]:80", false),
        ("listen=*:80", "[::]:80", true),
        ("connect=*:*", "127.0.0.1:80", false),
    ];
    for (rule, address, allowed) in cases {
        assert_eq!(listens(rule, address), allowed, "{rule} and {address}");
    }
}

#[test]
fn the_kernel_gets_the_address_that_was_checked() {
    for (given, checked) in [
        ("0.0.0.0:80", "127.0.0.1:80"),
        ("[::]:80", "[::1]:80"),
        ("[::ffff:0.0.0.0]:80", "[::ffff:127.0.0.1]:80"),
        ("[::1%9]:80", "[::1]:80"),
        ("[fe80::1%9]:80", "[fe80::1%9]:80"),
    ] {
        assert_eq!(destination(given.parse().unwrap()), checked.parse().unwrap());
    }
}

#[test]
fn only_names_of_rules_are_looked_up() {
    let named = policy(&["connect=Example.com:443", "listen=*:*"]);
    for (asked, looked_up) in [
        ("example.com", Some("example.com")),
        ("EXAMPLE.com.", Some("example.com")),
        ("www.example.com", None),
        ("example.com.evil.org", None),
        ("example.com..", None),
        ("", None),
        ("localhost", None),
        ("2130706433", None),
        ("0x7f.1", None),
        ("127.0.0.1", None),
    ] {
        assert_eq!(named.name_to_look_up(asked).as_deref(), looked_up, "{asked}");
    }
    let by_address = policy(&["connect=127.0.0.1:80"]);
    for asked in ["localhost", "0x7f.1", "2130706433", "127.1"] {
        assert_eq!(by_address.name_to_look_up(asked), None, "{asked}");
    }
    let all = policy(&["connect=*:443"]);
    assert_eq!(all.name_to_look_up("Anything.").as_deref(), Some("Anything."), "as the guest spells it");
}

#[test]
fn a_name_allows_the_addresses_that_the_host_found_on_its_port() {
    let policy = policy(&["connect=a.org:80", "connect=b.org:81", "connect=10.0.0.1:82"]);
    let found: Vec<SocketAddr> = ["10.9.9.9:5", "[2001:db8::9]:5", "0.0.0.0:5"].map(|a| a.parse().unwrap()).into();
    policy.take_found("a.org", &found);
    let allowed = |address: &str| policy.may_connect(destination(address.parse().unwrap()));
    for address in ["10.9.9.9:80", "[::ffff:10.9.9.9]:80", "[2001:db8::9]:80", "10.0.0.1:82"] {
        assert!(allowed(address), "{address}");
    }
    // Another port, another name's port, and what 0.0.0.0 would lead to.
    for address in ["10.9.9.9:5", "10.9.9.9:81", "10.9.9.9:82", "127.0.0.1:80", "0.0.0.0:80"] {
        assert!(!allowed(address), "{address}");
    }
}

#[test]
fn rules_that_are_none_say_which_forms_there_are() {
    for (rule, why) in [
        ("", ""),
        ("connect", ""),
        ("example.com:80", ""),
        ("Connect=a:1", ""),
        ("connect=example.com", "no port"),
        ("connect=example.com:", "\"\" is not a port"),
        ("connect=example.com:http", "\"http\" is not a port"),
        ("connect=example.com:65536", "not a port"),
        ("connect=example.com:+80", "not a port"),
        ("connect=example.com:0", "port 0 is no destination; `*` stands for every port"),
        ("connect=[::1]", "no port is given: [::1]:PORT"),
        ("connect=::1", "no port is given: an IPv6 address is in brackets before it, [::1]:PORT"),
        ("listen=::", "[::]:PORT"),
        ("connect=a:80,b:80", "one rule per --net"),
        ("connect=a:80,connect=b:80", "one rule per --net"),
        ("connect=a:80 listen=b:80", "one rule per --net"),
        ("connect=10.0.0.0/8:80", "address ranges are not supported"),
        ("connect=10.0.0.0/8", "address ranges are not supported"),
        ("connect=[2001:db8::]/32:80", "address ranges are not supported"),
        ("connect=[2001:db8::/32]:80", "address ranges are not supported"),
        ("connect=[fe80::1%eth0]:80", "an interface is given by its number"),
        ("connect=[fe80::1]:80", "[fe80::1] is local to a link: say which by its number, as in [fe80::1%2]"),
        ("listen=[fe80::1]:80", "is local to a link"),
        ("connect=:80", "neither a name nor an address"),
        ("connect=*.example.com:80", "`*` stands for a whole host, not a part of one"),
        ("connect=a..b:80", "neither a name nor an address"),
        ("connect=a b:80", "neither a name nor an address"),
        ("connect=::1:80", "in brackets"),
        ("connect=[::1:80", "not an IPv6 address in brackets"),
        ("connect=[127.0.0.1]:80", "not an IPv6 address in brackets"),
        ("connect=[::1%2]:80", "leave out %2"),
        ("connect=0x7f.1:80", "not an address in its usual form"),
        ("connect=2130706433:80", "not an address in its usual form"),
        ("connect=127.1:80", "not an address in its usual form"),
        ("connect=127.0.0.01:80", "not an address in its usual form"),
        ("connect=0.0.0.0:80", "not a destination"),
        ("connect=[::]:80", "not a destination"),
        ("listen=localhost:80", "takes no names"),
    ] {
        let error = rule.parse::<NetRule>().expect_err(rule);
        assert!(error.contains(why) && error.contains("connect=HOST:PORT"), "{rule}: {error}");
    }
}
