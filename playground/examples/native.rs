//! Answers requests on standard input, one a line, with one line each: the same code as in the
//! WebAssembly module, on this machine.

use std::io::{self, BufRead as _, Write as _};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for request in io::stdin().lock().lines() {
        let answer = kube_lockstep_playground::answer(&request?, &|_| {}) + "\n";
        out.write_all(answer.as_bytes())?;
    }
    out.flush()
}
