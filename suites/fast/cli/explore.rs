//! The command `kube-lockstep explore`.

use std::path::Path;

use rstest::rstest;

use super::{IDLE, folder, json, kube_lockstep, program, stderr, stdout, text};

const EXPECT: &str = "expect: [{sequence: [2]}]\n";

/// An engine with an idle controller, which watches pods and fails if the second event is held.
fn disturbable(engine: &Path) {
    let watch = r#"{"resource":"pods","controller":"c","events":[{"at":0,"type":"ADDED","name":"web-0"},{"at":15000000000,"type":"MODIFIED","name":"web-0"}]}"#;
    let closed = format!(r#"{{"closed":{{"disturbable":{{"watches":[{watch}],"writes":[]}}}}}}"#);
    let fails = r#"  -e 's/^{"open".*"event":2.*/{"failed":{"why":"it never rests"}}/p;t' \"#;
    // Expectations are about reconciles.
    let reconcile = r#""name":"web"}}],"log":[{"at":\2,"error":{"message":"idle"}}]"#;
    let script = IDLE
        .replace(
            r#""release":"v1.37.0""#,
            r#""release":"v1.37.0","supports":["more","disturbances"]"#,
        )
        .replace(r#""name":"web"}}],"log":[]"#, reconcile)
        .replace(r#"{"closed":{}}"#, &closed)
        .replace("exec sed -u -n \\\n", &format!("exec sed -u -n \\\n{fails}\n"));
    assert!(
        script.contains("never rests") && script.contains("idle") && script.contains("watches"),
        "{script}"
    );
    program(engine, &script);
}

#[test]
fn a_finding_has_sentences_and_can_be_replayed() {
    let (folder, file) = folder(EXPECT);
    let engine = folder.path().join("my-engine");
    disturbable(&engine);
    let options = ["--program", text(&engine)];
    let run = kube_lockstep(&["explore", text(&file), "--runs", "20"]).args(options).assert();
    let shown = stdout(&run.code(1));
    let version = env!("CARGO_PKG_VERSION");
    let replay = format!(
        "kube-lockstep explore {} --release 1.37 --program {} --disturb 'hold event 2 of pods for \
         1ms'",
        text(&file),
        text(&engine)
    );
    for part in [
        &format!(
            "explore: seed 1, 20 runs of each scenario, release 1.37, engine my-engine, \
             kube-lockstep {version}\n"
        ),
        "   v1.37   my-engine fails when it is disturbed\n",
        "  It conforms without disturbances, and fails with this one:\n",
        "    - the 2nd event of the watch of pods (MODIFIED web-0 at t=15s) is delivered 1ms late\n",
        "  the my-engine engine failed: it never rests\n",
        " of 20 runs, first run 6; shrunk in ",
        &format!("  replay: {replay}\n"),
        "1 scenario: 1 fail when disturbed, 0 conform (20 disturbed runs in ",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let replayed = ["--disturb", "hold event 2 of pods for 1ms"];
    let run = kube_lockstep(&["explore", text(&file)]).args(options).args(replayed).assert();
    let shown = stdout(&run.code(1));
    assert!(shown.contains(&replay) && !shown.contains("seed"), "{shown}");
    let other = ["--disturb", "hold event 1 of pods for 1ms", "--disturb", "crash after write 3"];
    let run = kube_lockstep(&["explore", text(&file)]).args(options).args(other).assert().code(3);
    let shown = stdout(&run);
    for part in ["inconclusive", "`crash after write 3` did not happen: the run has 0 writes"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let run = kube_lockstep(&["explore", text(&file)]).args(options).args(&other[..2]).assert();
    assert!(stdout(&run.code(0)).contains("conforms"));
}

#[test]
fn the_results_are_json_and_the_same_with_any_number_of_jobs() {
    let (folder, file) = folder(EXPECT);
    let engine = folder.path().join("my-engine");
    disturbable(&engine);
    let results = ["1", "3"].map(|jobs| {
        let options = ["--program", text(&engine), "--jobs", jobs, "--seed", "5", "--runs", "15"];
        let run = kube_lockstep(&["explore", "--format", "json", text(&file)]);
        let mut lines = json(&{ run }.args(options).assert().code(1));
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0]["explore"]["seed"], 5);
        let scenario = &mut lines[1];
        assert_eq!((&scenario["verdict"], &scenario["runs"]), (&"conforms".into(), &15.into()));
        let finding = &scenario["findings"][0];
        assert_eq!(finding["disturbances"][0]["text"], "hold event 2 of pods for 1ms");
        assert_eq!(finding["outcome"]["verdict"], "inconclusive");
        assert_eq!(lines[2]["summary"]["failing"], 1);
        // Only the times may differ.
        let mut scenario = lines[1].take();
        for line in ["", "/findings/0/outcome"] {
            let outcome = scenario.pointer_mut(line).expect("an outcome");
            outcome.as_object_mut().expect("an object").remove("elapsedMs").expect("a time");
        }
        scenario
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn an_engine_must_support_disturbances() {
    let (folder, file) = folder(EXPECT);
    let engine = folder.path().join("my-engine");
    program(&engine, IDLE);
    let run = kube_lockstep(&["explore", text(&file), "--program", text(&engine)]).assert().code(3);
    let errors = stderr(&run);
    for part in ["it does not support disturbances", "hint: disturbances require an engine whose"] {
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn scenarios_that_do_not_conform_are_not_disturbed() {
    let (folder, file) = folder("expect: [{at: 15s, replicas: 17}]\n");
    let engine = folder.path().join("my-engine");
    disturbable(&engine);
    let options = ["--program", text(&engine)];
    let run = kube_lockstep(&["explore", text(&file)]).args(options).assert().code(1);
    let shown = stdout(&run);
    assert!(shown.contains("it was not disturbed, because it does not conform"), "{shown}");
    let replay = format!(" --program {} --compare expectations\n", text(&engine));
    assert!(shown.contains(&replay), "{shown}");
    assert!(shown.contains("1 unmet without disturbances (0 disturbed runs in"), "{shown}");
    // Without an expectation, there is no verdict.
    let (_folder, file) = self::folder("");
    let run = kube_lockstep(&["explore", text(&file)]).args(options).assert().code(4);
    assert!(stdout(&run).contains("it has no expectations"), "{}", stdout(&run));
}

#[rstest]
#[case(&["--disturb", "hold event x of pods for 1ms"], "x is not a number from 1")]
#[case(&["--disturb", "pray"], "`hold event N of RESOURCE for DURATION`")]
#[case(&["--disturb", "crash after write 1", "--runs", "3"], "cannot be used with")]
#[case(&["--runs", "0"], "0 is not in 1..")]
fn wrong_options_are_refused(#[case] options: &[&str], #[case] message: &str) {
    let run = kube_lockstep(&["explore", "tolerance", "--program", "x"]).args(options).assert();
    let errors = stderr(&run.code(2));
    assert!(errors.contains(message), "{errors}");
}
