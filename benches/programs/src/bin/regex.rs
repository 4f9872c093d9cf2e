//! Searches 4 KB of an access log with regular expressions.

use bench_programs::{Random, instance};
use regex_lite::Regex;

fn log(random: &mut Random) -> String {
    let mut log = String::new();
    while log.len() < 4096 {
        let method = random.pick(&["GET", "GET", "GET", "POST", "PUT", "DELETE"]);
        let page = random.pick(&["index", "about", "users/ada", "users/grace", "static/logo", "search?q=regex"]);
        let end = random.pick(&[".html", ".png", ".json", ""]);
        let status = random.pick(&["200", "200", "200", "301", "404", "500", "503"]);
        log += &format!(
            "10.{}.{}.{} - - [{:02}/Oct/2024] \"{method} /{page}{end} HTTP/1.1\" {status} {}\n",
            random.below(4),
            random.below(256),
            random.below(256),
            1 + random.below(31),
            random.below(100_000),
        );
    }
    log
}

fn main() -> Result<(), regex_lite::Error> {
    let log = log(&mut Random::new(instance()));
    let line = Regex::new(r#"(?m)^(\d+\.\d+\.\d+\.\d+) .*"([A-Z]+) /([^ ]*) HTTP/1\.1" (\d{3}) (\d+)$"#)?;
    let failure = Regex::new(r" 50[0-9] ")?;
    let user = Regex::new(r"users/(\w+)")?;

    let mut bytes = 0;
    let mut matched = 0;
    for found in line.captures_iter(&log) {
        matched += 1;
        bytes += found[5].parse::<u64>().unwrap_or(0);
    }
    let failures = failure.find_iter(&log).count();
    let users: usize = user.captures_iter(&log).map(|found| found[1].len()).sum();
    println!("{matched} lines, {bytes} bytes, {failures} failures, {users} letters of users");
    Ok(())
}
