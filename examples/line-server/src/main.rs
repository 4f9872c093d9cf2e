//! `line-server ADDRESS CLIENTS`: sends each client its lines back, numbered and in capitals, until so many clients were served.
//!
//! Each client has a thread, and each thread a child process that does the work. On gpu-run, all three are the device's:
//! `docs/together.md` has the commands.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::{env, thread};

fn serve(client: &TcpStream) -> io::Result<()> {
    let mut filter = Command::new("line-filter");
    filter.args(["-n", "-u"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = filter.spawn()?;
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut from, mut to) = (client, client);
    thread::scope(|scope| {
        scope.spawn(move || io::copy(&mut from, &mut stdin)); // at its end, the child's stdin is closed
        io::copy(&mut stdout, &mut to)
    })?;
    child.wait()?;
    client.shutdown(Shutdown::Write)
}

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let [_, address, clients] = &args[..] else { panic!("usage: line-server ADDRESS CLIENTS") };
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    thread::scope(|scope| {
        for client in listener.incoming().take(clients.parse().unwrap()) {
            let client = client?;
            scope.spawn(move || match serve(&client) {
                Ok(()) => println!("served a client"),
                Err(error) => println!("a client was not served: {error}"),
            });
        }
        Ok(())
    })
}
