//! Rows of a prediction as CSV, for spreadsheets and scripts.

/// Rows as CSV.
pub(super) fn written(rows: Vec<Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows {
        // Writing into memory does not fail.
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::prediction::Predicted;
    use crate::table::Rows;
    use kube_autoscaler_models::rules::{Release, VpaRelease};
    use kube_lockstep_data::FIXTURES;
    use kube_lockstep_scenario as scenario;
    use kube_lockstep_sim::run::free_run;
    use kube_lockstep_sim::run::recommender::free_recommender_run;

    #[test]
    fn each_tick_is_a_row_with_its_metrics() {
        let text =
            FIXTURES.text("closed-loop/docs-walkthrough-php-apache.yaml").expect("a fixture");
        let no_files = |_: &str| Err("".into());
        let scenario = scenario::parse("walkthrough.yaml", &text, &no_files).expect("a scenario");
        let scenario = Arc::new(scenario);
        let run = free_run(&scenario, Release::NEWEST);
        let csv = Predicted::hpa(&scenario, &run, &[]).csv(Rows::All);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), run.ticks.len() + 1);
        let head = "tick,seconds,hpa,cpu,cpu target,ready,unready,missing,ignored,proposal,desired,\
                    replicasBefore,replicasAfter,limitedBy,why";
        assert_eq!(lines[0], head);
        assert!(lines[1].starts_with("1,0,php-apache,305,50,1,0,0,0,7,4,1,4,scale-up"), "{csv}");
        let changes = Predicted::hpa(&scenario, &run, &[]).csv(Rows::Changes).lines().count();
        assert!((3..lines.len() / 2).contains(&changes), "{changes} of {}", lines.len());
    }

    #[test]
    fn recommendations_with_an_hpa_are_columns() {
        let text = FIXTURES.text("hpa-and-vpa/both-on-cpu-feed-back.yaml").expect("a fixture");
        let no_files = |_: &str| Err("".into());
        let scenario = scenario::parse("both.yaml", &text, &no_files).expect("a scenario");
        let scenario = Arc::new(scenario);
        let run = free_run(&scenario, Release::NEWEST);
        let csv = Predicted::hpa(&scenario, &run, &[]).csv(Rows::All);
        let mut rows = csv.lines();
        let head: Vec<&str> = rows.next().unwrap().split(',').collect();
        let column = head.iter().position(|title| *title == "vpa app cpu target").unwrap();
        let last = |line: &str| line.rsplit(',').nth(head.len() - 1 - column).unwrap().to_owned();
        let targets: Vec<String> = rows.map(last).collect();
        assert_eq!(targets.first().unwrap(), "", "before the first run of the recommender");
        // At t=1m and t=6m, as the fixture expects.
        assert_eq!((targets[4].as_str(), targets[24].as_str()), ("0.296", "0.163"), "{csv}");
    }

    #[test]
    fn each_amount_of_a_recommendation_is_a_row() {
        let text = FIXTURES.text("vpa/oom/a-factor-of-1-2.yaml").expect("a fixture");
        let node = |text: &str| scenario::parse_any("oom.yaml", text, &|_| Err("".into()));
        let Ok(scenario::AnyScenario::Vpa(scenario)) = node(&text) else { panic!("a scenario") };
        let release = VpaRelease::NEWEST;
        let run = free_recommender_run(&scenario, release, &|_| false);
        let csv = Predicted::vpa(&scenario, &run, release).csv(Rows::All);
        let lines: Vec<&str> = csv.lines().collect();
        // Five runs with cpu and memory.
        assert_eq!(lines.len(), 1 + 5 * 2, "{csv}");
        let head = "tick,seconds,vpa,container,resource,usageLowest,usageHighest,lowerBound,target,\
                    upperBound,uncappedTarget";
        assert_eq!(lines[0], head);
        let after = lines[6].split(',').collect::<Vec<_>>();
        assert_eq!(&after[..7], ["3", "180", "web", "app", "memory", "314572800", "314572800"]);
        assert_eq!((after[8], after[10]), ("6117462922", "6117462922"), "{csv}");
    }
}
