use std::mem::MaybeUninit;
use wasi_programs::*;

fn clock(userdata: u64, id: Clockid, timeout: u64, flags: Subclockflags) -> Subscription {
    let clock = SubscriptionClock { id, timeout, precision: 0, flags };
    Subscription { userdata, u: SubscriptionU { tag: EVENTTYPE_CLOCK.raw(), u: SubscriptionUU { clock } } }
}

fn reading(userdata: u64, fd: Fd) -> Subscription {
    let fd_read = SubscriptionFdReadwrite { file_descriptor: fd };
    Subscription { userdata, u: SubscriptionU { tag: EVENTTYPE_FD_READ.raw(), u: SubscriptionUU { fd_read } } }
}

fn writing(userdata: u64, fd: Fd) -> Subscription {
    let fd_write = SubscriptionFdReadwrite { file_descriptor: fd };
    Subscription { userdata, u: SubscriptionU { tag: EVENTTYPE_FD_WRITE.raw(), u: SubscriptionUU { fd_write } } }
}

unsafe fn poll(subscriptions: &[Subscription]) -> Result<Vec<String>, Errno> {
    let mut events: Vec<MaybeUninit<Event>> = (0..subscriptions.len().max(1)).map(|_| MaybeUninit::zeroed()).collect();
    let count = poll_oneoff(subscriptions.as_ptr(), events.as_mut_ptr().cast(), subscriptions.len())?;
    let told = |event: &MaybeUninit<Event>| {
        let event = event.assume_init_ref();
        // How many bytes are there is a hint, and hosts give different ones; whether there are any is not.
        let bytes = event.type_ != EVENTTYPE_CLOCK && event.fd_readwrite.nbytes > 0;
        let (error, kind) = (event.error.name(), event.type_.name());
        format!("{} {error} {kind} bytes {bytes} flags {}", event.userdata, event.fd_readwrite.flags)
    };
    Ok(events[..count].iter().map(told).collect())
}

/// How long a poll took is printed as whether it was at least and about what was asked for.
unsafe fn timed(name: &str, at_least: u64, subscriptions: &[Subscription]) {
    let before = clock_time_get(CLOCKID_MONOTONIC, 0).expect("a clock");
    let result = poll(subscriptions);
    let took = clock_time_get(CLOCKID_MONOTONIC, 0).expect("a clock") - before;
    report(name, result.map(|events| (events, took >= at_least, took < at_least + 5_000_000_000)));
}

fn main() {
    unsafe {
        const MS: u64 = 1_000_000;
        let absolute = SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME;
        let now = |id| clock_time_get(id, 0).expect("a clock");
        timed("monotonic", 20 * MS, &[clock(7, CLOCKID_MONOTONIC, 20 * MS, 0)]);
        timed("realtime", 20 * MS, &[clock(8, CLOCKID_REALTIME, 20 * MS, 0)]);
        timed("no time", 0, &[clock(9, CLOCKID_MONOTONIC, 0, 0)]);
        timed(
            "absolute monotonic",
            15 * MS,
            &[clock(1, CLOCKID_MONOTONIC, now(CLOCKID_MONOTONIC) + 20 * MS, absolute)],
        );
        timed("absolute realtime", 15 * MS, &[clock(1, CLOCKID_REALTIME, now(CLOCKID_REALTIME) + 20 * MS, absolute)]);
        timed("in the past", 0, &[clock(1, CLOCKID_MONOTONIC, 1, absolute)]);
        timed("long ago", 0, &[clock(1, CLOCKID_REALTIME, 1, absolute)]);
        timed(
            "the earlier of two",
            10 * MS,
            &[clock(1, CLOCKID_MONOTONIC, 60_000 * MS, 0), clock(2, CLOCKID_MONOTONIC, 10 * MS, 0)],
        );
        timed("two at once", 0, &[clock(1, CLOCKID_MONOTONIC, 0, 0), clock(2, CLOCKID_MONOTONIC, 0, 0)]);
        report("process cpu time", poll(&[clock(1, CLOCKID_PROCESS_CPUTIME_ID, 1, 0)]));
        report(
            "process cpu time and another",
            poll(&[clock(1, CLOCKID_PROCESS_CPUTIME_ID, 1, 0), clock(2, CLOCKID_MONOTONIC, 0, 0)]),
        );
        report("nothing to wait for", poll(&[]));
        let fd = file("polled", "0123456789");
        timed("file to read", 0, &[reading(3, fd)]);
        timed("file to write", 0, &[writing(4, fd)]);
        // A host need not tell more than one.
        report("file both ways", poll(&[reading(3, fd), writing(4, fd)]).map(|events| events.is_empty()));
        timed("file or a long time", 0, &[clock(1, CLOCKID_MONOTONIC, 60_000 * MS, 0), reading(3, fd)]);
        fd_seek(fd, 0, WHENCE_END).expect("sought");
        timed("file at its end", 0, &[reading(3, fd)]);
        fd_seek(fd, 100, WHENCE_END).expect("sought");
        timed("file beyond its end", 0, &[reading(3, fd)]);
        timed("stdin", 0, &[reading(5, 0)]);
        timed("stdout", 0, &[writing(6, 1)]);
        timed("stderr", 0, &[writing(6, 2)]);
        report("reading a file opened to write", poll(&[reading(1, open("polled", 0, WRITE, 0).expect("opened"))]));
        report("writing a file opened to read", poll(&[writing(1, open("polled", 0, READ, 0).expect("opened"))]));
        report("writing stdin", poll(&[writing(1, 0)]));
        report("reading stdout", poll(&[reading(1, 1)]));
        report("reading a directory", poll(&[reading(1, ROOT)]));
        report("writing a directory", poll(&[writing(1, ROOT)]));
        report("none", poll(&[reading(1, NONE)]));
        report("none and one", poll(&[reading(1, fd), reading(2, NONE)]));
    }
}
