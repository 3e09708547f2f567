//! The command `kube-lockstep`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
