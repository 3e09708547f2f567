//! The command as users call it: exit codes, what is written where, and its reference in the docs.

#[test]
fn version_is_that_of_the_package() {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_kube-lockstep"));
    command.arg("--version").assert().success().stdout("kube-lockstep 0.1.0\n");
}
