//! Selects the tests of the program `live` that record traces.

pub(crate) const USAGE: &str = "\
usage: cargo xtask record [--release RELEASES] [ID...]

Records traces of upstream's controllers, for all fixtures or the given fixtures, on all releases or
the given releases. Requires Go. Review the diff afterwards.

  --release RELEASES  the releases to record: of Kubernetes (1.37, or 1.30,1.35-1.37), of the VPA
                      (vpa-1.8, or vpa-1.6-1.8), or of both (1.37,vpa-1.8) [default: all]
  ID                  a fixture, such as tolerance/upper-edge-is-inclusive, or a folder below
                      fixtures/, such as tolerance [default: all fixtures of these releases]

The engine of a release is built on first use, which takes about a minute. With --release, the other
releases keep their traces. New and changed fixtures are then skipped on the other releases, as not
recorded.
";

/// What to record.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The releases, in the form of `--release`.
    pub(crate) releases: String,
    /// For each call of the test program, the arguments that select its tests.
    pub(crate) tests: Vec<Vec<String>>,
}

impl Plan {
    /// Reads the arguments. `default_releases` applies without `--release`; `None` means all
    /// releases. `exists` returns true if the repository has a file or folder with this path.
    pub(crate) fn new(
        arguments: &[&str],
        default_releases: Option<String>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<Plan, String> {
        let mut releases = default_releases.unwrap_or_else(|| "all".to_owned());
        let mut ids = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if *argument == "--release" {
                releases = rest.next().copied().unwrap_or_default().to_owned();
            } else if let Some(value) = argument.strip_prefix("--release=") {
                releases = value.to_owned();
            } else if argument.starts_with('-') {
                return Err(format!("unknown option {argument}; see cargo xtask record --help"));
            } else {
                let id = argument.strip_prefix("fixtures/").unwrap_or(argument);
                let id = id.strip_suffix(".yaml").unwrap_or(id).trim_end_matches('/');
                ids.push(without_release(id, exists));
            }
        }
        if releases.is_empty() {
            return Err("--release requires a value, such as 1.37".to_owned());
        }
        let is_vpa = |release: &str| release.trim().starts_with("vpa");
        let has_vpa = releases.split(',').any(|release| is_vpa(release) || release.trim() == "all");
        let has_kubernetes = releases.split(',').any(|release| !is_vpa(release));
        let mut tests = Vec::new();
        if ids.is_empty() {
            tests.extend(has_kubernetes.then(|| vec!["hpa::".to_owned()]));
            tests.extend(has_vpa.then(|| vec!["vpa::live vpa/".to_owned()]));
        }
        for id in ids {
            let is_vpa_fixture = id == "vpa" || id.starts_with("vpa/");
            if is_vpa_fixture && !has_vpa {
                let wanted = "releases of the VPA, such as --release vpa-1.8";
                return Err(format!("{id} requires {wanted}"));
            }
            if !is_vpa_fixture && !has_kubernetes {
                let wanted = "releases of Kubernetes, such as --release 1.37";
                return Err(format!("{id} requires {wanted}"));
            }
            tests.push(select_tests(id, is_vpa_fixture, exists)?);
        }
        Ok(Plan { releases, tests })
    }
}

/// The id of a fixture. Error messages name the traces of a recommender with an HPA by the id of the
/// fixture and the release of the VPA: `hpa-and-vpa/two-hpas-and-a-vpa/vpa-1.8`.
fn without_release<'i>(id: &'i str, exists: &dyn Fn(&str) -> bool) -> &'i str {
    match id.rsplit_once("/vpa-") {
        Some((fixture, _)) if exists(&format!("fixtures/{fixture}.yaml")) => fixture,
        _ => id,
    }
}

/// The arguments that select the tests of a fixture, or of the fixtures in a folder.
fn select_tests(
    id: &str,
    is_vpa_fixture: bool,
    exists: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    let is_fixture = exists(&format!("fixtures/{id}.yaml"));
    if !is_fixture && !exists(&format!("fixtures/{id}")) {
        return Err(format!(
            "no fixture {id}: there is neither fixtures/{id}.yaml nor a folder fixtures/{id}"
        ));
    }
    Ok(match (is_vpa_fixture, is_fixture) {
        // The names of these tests end with a release.
        (true, true) => vec![format!("vpa::live {id} ")],
        (true, false) => vec![format!("vpa::live {id}/")],
        (false, true) => vec!["--exact".to_owned(), format!("hpa::{id}")],
        (false, false) => vec![format!("hpa::{id}/")],
    })
}

#[cfg(test)]
mod tests {
    use super::Plan;

    fn plan(arguments: &[&str]) -> Result<Plan, String> {
        let exists = |path: &str| {
            [
                "fixtures/limits",
                "fixtures/tolerance",
                "fixtures/tolerance/upper-edge.yaml",
                "fixtures/vpa",
                "fixtures/vpa/oom",
                "fixtures/vpa/oom/bump.yaml",
            ]
            .contains(&path)
        };
        Plan::new(arguments, None, &exists)
    }

    #[test]
    fn the_tests_of_the_named_fixtures_are_selected() {
        let edge = "--exact|hpa::tolerance/upper-edge";
        for (arguments, releases, tests) in [
            (&[][..], "all", &["hpa::", "vpa::live vpa/"][..]),
            (&["vpa"], "all", &["vpa::live vpa/"]),
            (&["vpa/oom/bump"], "all", &["vpa::live vpa/oom/bump "]),
            (&["tolerance/upper-edge/vpa-1.8"], "all", &[edge]),
            (&["tolerance"], "all", &["hpa::tolerance/"]),
            (&["--release", "1.36-1.37"], "1.36-1.37", &["hpa::"]),
            (&["--release", "vpa-1.8"], "vpa-1.8", &["vpa::live vpa/"]),
            (
                &["--release", "1.37,vpa-1.8", "vpa/oom", "limits"],
                "1.37,vpa-1.8",
                &["vpa::live vpa/oom/", "hpa::limits/"],
            ),
            (
                &["fixtures/tolerance/upper-edge.yaml", "--release=1.6-1.8", "limits/"],
                "1.6-1.8",
                &[edge, "hpa::limits/"],
            ),
        ] {
            let plan = plan(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
            assert_eq!(plan.releases, releases, "{arguments:?}");
            let selected: Vec<String> = plan.tests.iter().map(|tests| tests.join("|")).collect();
            assert_eq!(selected, tests, "{arguments:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_rejected() {
        for (arguments, expected) in [
            (&["--release"][..], "--release requires a value, such as 1.37"),
            (&["--releases", "1.37"], "unknown option --releases"),
            (&["--release", "1.37", "vpa/oom"], "vpa/oom requires releases of the VPA"),
            (&["--release", "vpa-1.8", "limits"], "limits requires releases of Kubernetes"),
            (&["tolerance/no-such-fixture"], "no fixture tolerance/no-such-fixture"),
        ] {
            let error = plan(arguments).expect_err("it is rejected");
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
