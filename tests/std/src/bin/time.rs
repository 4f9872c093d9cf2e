//! `std::time`: what is computed is printed; of what clocks say, what always holds.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use uses_std::show;

fn main() {
    durations();
    fractions();
    instants();
    system_time();
}

fn durations() {
    let d = Duration::new(3, 14_015_926);
    show!(d, Duration::ZERO, Duration::MAX, Duration::from_secs(5), Duration::from_millis(1_500));
    show!(Duration::from_micros(1_000_002), Duration::from_nanos(1_000_000_123), Duration::from_nanos_u128(1 << 70));
    show!(Duration::from_mins(3), Duration::from_hours(2), Duration::ZERO.is_zero(), d.is_zero());
    show!(d.as_secs(), d.subsec_millis(), d.subsec_micros(), d.subsec_nanos());
    show!(d.as_millis(), d.as_micros(), d.as_nanos(), d.abs_diff(Duration::from_secs(4)));
    let (one, ten) = (Duration::from_secs(1), Duration::from_secs(10));
    show!(d.checked_add(one), d.checked_add(Duration::MAX), d.saturating_add(Duration::MAX));
    show!(d.checked_sub(one), d.checked_sub(ten), d.saturating_sub(ten));
    show!(d.checked_mul(2), Duration::MAX.checked_mul(2), Duration::MAX.saturating_mul(2), d.checked_div(2));
    show!(d.checked_div(0), d + one, d - one, d * 3, d / 7, [one, ten].iter().sum::<Duration>());
}

fn fractions() {
    let d = Duration::new(3, 14_015_926);
    show!(d.as_secs_f64(), d.as_secs_f32(), Duration::from_secs_f64(2.7), Duration::from_secs_f32(2.7));
    show!(d.mul_f64(1.1), d.mul_f32(1.1), d.div_f64(1.1), d.div_f32(1.1));
    show!(d.div_duration_f64(Duration::from_secs(7)), d.div_duration_f32(Duration::from_secs(7)));
    show!(Duration::try_from_secs_f64(1e-9), Duration::try_from_secs_f64(-1.0), Duration::try_from_secs_f32(f32::NAN));
    show!(Duration::try_from_secs_f32(1e30).map_err(|error: std::time::TryFromFloatSecsError| error.to_string()));
}

fn instants() {
    let pause = Duration::from_millis(20);
    let began = Instant::now();
    thread::sleep(pause);
    let ended = Instant::now();
    show!(ended.duration_since(began) >= pause, began.duration_since(ended), began.elapsed() >= pause);
    show!(began.checked_duration_since(ended), ended.checked_duration_since(began).is_some());
    show!(began.saturating_duration_since(ended), began < ended, began.checked_add(pause) == Some(began + pause));
    show!((began + pause).checked_sub(pause) == Some(began), began.checked_add(Duration::MAX));
}

fn system_time() {
    let began = SystemTime::now();
    thread::sleep(Duration::from_millis(20));
    show!(began.elapsed().is_ok_and(|elapsed| elapsed > Duration::from_millis(10)));
    let year_2025 = UNIX_EPOCH + Duration::from_secs(55 * 31_556_952);
    show!(began > year_2025, UNIX_EPOCH == SystemTime::UNIX_EPOCH);
    show!(year_2025.duration_since(UNIX_EPOCH), year_2025.checked_add(Duration::from_secs(1)).is_some());
    show!(year_2025.checked_sub(Duration::from_secs(1)).and_then(|time| time.duration_since(UNIX_EPOCH).ok()));
    let error = UNIX_EPOCH.duration_since(year_2025).expect_err("it is earlier");
    show!(error.duration(), error.to_string());
}
