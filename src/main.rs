//! The command `kube-lockstep`: see the library's `cli`.

fn main() -> std::process::ExitCode {
    kube_lockstep::cli::main()
}
