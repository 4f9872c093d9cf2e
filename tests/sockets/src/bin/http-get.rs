//! Gets a page: `http-get URL`. Then posts to the same place, with the same agent.

fn main() {
    let url = std::env::args().nth(1).expect("a URL");
    let agent = ureq::Agent::new_with_defaults();
    match agent.get(&url).header("x-asked-by", "http-get").call() {
        Ok(mut response) => {
            println!("{} {:?}", response.status(), response.headers().get("content-type"));
            let text = response.body_mut().read_to_string().expect("a text");
            println!("{} bytes, {:?}", text.len(), text.lines().next());
        }
        Err(error) => println!("{error}"),
    }
    match agent.post(&url).send("posted") {
        Ok(mut response) => println!("{:?}", response.body_mut().read_to_string().expect("a text")),
        Err(error) => println!("{error}"),
    }
    match agent.get(format!("{url}/missing")).call() {
        Ok(response) => println!("{}", response.status()),
        Err(error) => println!("{error}"),
    }
}
