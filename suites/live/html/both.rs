//! Pages of scenarios with an HPA and a VPA, and of several predictions.

use kube_autoscaler_models::rules::Release;
use kube_lockstep_sim::compare::{Controller, Divergence, FieldDifference};
use kube_lockstep_sim::run::recommender::RecommenderRun;
use kube_lockstep_sim::run::{ControllerRun, Outcome, Verdict, free_run};
use kube_lockstep_sim::trace::recommender::RecommenderTrace;
use libtest_mimic::Failed;
use roxmltree::{Document, Node};

use super::recommender::{check_figure as check_vpa, target_of_cpu};
use super::{
    check_figure, data, hpa_run, page, page_of, parse, run, sections, support, text, ticks,
    with_class,
};

/// A fixture in which the VPA replaces pods, and the HPA adds some.
const BOTH: &str = "hpa-and-vpa/both-on-cpu-feed-back";

fn figures<'a, 'i>(document: &'a Document<'i>) -> [Vec<Node<'a, 'i>>; 2] {
    let section = sections(document)[0];
    ["hpa", "vpa"].map(|kind| with_class(section, kind))
}

/// A prediction and a report show the timelines of both, one below the other.
pub(super) fn timelines() -> Result<(), Failed> {
    for page in [page(&["predict", BOTH], "--html", "")?, run(&[BOTH])?] {
        let document = parse(&page.text)?;
        let [hpas, vpas] = figures(&document);
        assert_eq!((hpas.len(), vpas.len()), (1, 1));
        let data = data(&document)?;
        check_figure(hpas[0], ticks(&data, hpas[0])?)?;
        check_vpa(vpas[0], ticks(&data, vpas[0])?)?;
        let shown = text(sections(&document)[0]);
        assert!(shown.contains("of the recommender"), "{shown}");
        let captions: Vec<String> = with_class(vpas[0], "cap").into_iter().map(text).collect();
        let cpu = captions.iter().find(|it| it.starts_with("app cpu")).ok_or("no cpu")?;
        assert!(cpu.contains("request of new pods "), "{cpu}");
        let lines = with_class(vpas[0], "lim");
        let request = lines.iter().find_map(|it| it.attribute("d")).unwrap_or_default();
        assert!(request.matches('H').count() > 1, "the request changes: {request}");
        let events: Vec<String> = with_class(vpas[0], "t").into_iter().map(text).collect();
        let first = "evicted web-0, web-1; created web-4, web-5";
        assert!(events.iter().any(|it| it == first), "{events:?}");
        let templates = data["sections"][0]["t"].to_string();
        assert!(templates.contains("target.cpu: the "), "{templates}");
    }
    Ok(())
}

/// A divergence of the recommender is marked on its chart only, at its run.
pub(super) fn divergence() -> Result<(), Failed> {
    let path = support::repository().join(format!("fixtures/{BOTH}.yaml"));
    let scenario = support::load(&path);
    let free = free_run(&scenario, Release::NEWEST);
    let vpa = free.vpa.as_ref().ok_or("no VPA")?;
    let run = 3;
    let at = vpa.snapshots()[run - 1].at;
    let fields = vec![FieldDifference::new(target_of_cpu(), "296m", "300m")];
    let divergence = Divergence::new(Controller::Recommender, run, at, fields);
    let divergence = divergence.after_ticks_of_hpa(5);
    let mut outcome = Outcome::new(BOTH, Verdict::Diverges(divergence));
    outcome.engine = "upstream".into();
    outcome.release = "1.37".to_owned();
    let recommender = ControllerRun::Recommender(RecommenderRun {
        scenario: vpa.scenario.clone(),
        trace: RecommenderTrace::default(),
        snapshots: vpa.snapshots().to_vec(),
    });
    outcome.controllers = vec![hpa_run(&scenario, &free), recommender];
    let page = page_of(outcome)?;
    let document = parse(&page)?;
    let [hpas, vpas] = figures(&document);
    assert!(with_class(hpas[0], "flag").is_empty(), "{}", text(hpas[0]));
    let flags: Vec<String> = with_class(vpas[0], "flag").into_iter().map(text).collect();
    assert_eq!(flags, ["target: model 296m, upstream 300m"]);
    assert_eq!(with_class(vpas[0], "dvg").len(), 1);
    Ok(())
}

/// Several predictions are on one page, with filters; also those of VPAs, and those with failures.
pub(super) fn predictions() -> Result<(), Failed> {
    let names = ["predict", BOTH, "vpa/oom/a-factor-of-1-2", "tolerance", "--release", "1.37"];
    let page = page(&names, "--html", "")?;
    let document = parse(&page.text)?;
    let sections = sections(&document);
    let tolerance = support::all_fixtures()
        .iter()
        .filter(|path| support::id_of(path).starts_with("tolerance/"))
        .count();
    assert_eq!(sections.len(), tolerance + 2);
    for section in sections {
        assert!(!with_class(section, "fig").is_empty(), "{:?}", section.attribute("id"));
    }
    assert_eq!(with_class(document.root(), "filters").len(), 1);
    let head = text(with_class(document.root(), "sub")[0]);
    assert!(head.contains("scenarios by the model of 1.37 and vpa-1.8"), "{head}");
    Ok(())
}
