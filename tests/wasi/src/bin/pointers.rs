//! Not a function but what they share: pointers that lead out of memory, or are not aligned, end the program. Its argument
//! names the case.

use wasi_programs::*;

/// The last page of what 32 bits can address, which no program here has.
const OUT: i32 = -16;

fn main() {
    let case = std::env::args().nth(1).unwrap_or_default();
    unsafe {
        let fd = file("pointed", "0123456789") as i32;
        let mut buffer = [0u64; 8];
        let room = buffer.as_mut_ptr() as i32;
        println!("{case}");
        let returned = match case.as_str() {
            "path outside" => raw::path_create_directory(ROOT as i32, OUT, 100),
            "path around the end" => raw::path_create_directory(ROOT as i32, OUT, -1),
            "result outside" => raw::clock_time_get(0, 0, OUT),
            "result misaligned" => raw::clock_time_get(0, 0, room + 1),
            "stat outside" => raw::fd_filestat_get(fd, OUT),
            "stat misaligned" => raw::fd_filestat_get(fd, room + 4),
            "vectors outside" => raw::fd_read(fd, OUT, 4, room),
            "vectors misaligned" => raw::fd_read(fd, room + 2, 1, room + 32),
            "many vectors" => raw::fd_read(fd, room, 1 << 28, room),
            "vector leads outside" => {
                (room as *mut u64).write(100 << 32 | OUT as u32 as u64);
                raw::fd_read(fd, room, 1, room + 32)
            }
            "written vector leads outside" => {
                (room as *mut u64).write(100 << 32 | OUT as u32 as u64);
                raw::fd_write(fd, room, 1, room + 32)
            }
            "count misaligned" => raw::fd_write(fd, room, 0, room + 33),
            "random outside" => raw::random_get(OUT, 100),
            "subscriptions outside" => raw::poll_oneoff(OUT, room, 1, room),
            "subscriptions misaligned" => raw::poll_oneoff(room + 4, room, 1, room),
            "names outside" => raw::fd_readdir(ROOT as i32, OUT, 4096, 0, room),
            "link outside" => raw::path_readlink(ROOT as i32, c"given/link".as_ptr() as i32, 10, OUT, 4, room),
            "bad descriptor and path outside" => raw::path_create_directory(NONE as i32, OUT, 100),
            "bad descriptor and result misaligned" => raw::fd_filestat_get(NONE as i32, room + 4),
            "bad descriptor and result outside" => raw::fd_filestat_get(NONE as i32, OUT),
            // Nothing is written there, so nothing is wrong with it.
            "nothing to write outside" => raw::random_get(OUT, 0),
            "empty path outside" => raw::path_create_directory(ROOT as i32, OUT, 0),
            other => panic!("no case {other:?}"),
        };
        report("returned", code(returned));
    }
}
