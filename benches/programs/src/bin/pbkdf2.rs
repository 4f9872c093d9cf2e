//! Derives a key from a password: PBKDF2 with HMAC-SHA256, 500 iterations.

use bench_programs::instance;
use sha2::Sha256;

fn main() {
    let password = format!("correct horse {} battery staple", instance());
    let mut key = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), b"sodium chloride", 500, &mut key);
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{hex}");
}
