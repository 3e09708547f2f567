//! `kube-lockstep fuzz --area vpa`.

use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::fuzz::{Args, Prepared};
use super::output::PreparationLog;
use kube_lockstep_engines::source::EngineSource;
use kube_lockstep_engines::upstream::checkout::Checkout;
use kube_lockstep_sim::engine::Vpa;
use kube_lockstep_sim::run::Preparation;

/// Prepares the recommender.
pub(super) fn prepare(args: &Args) -> Result<Prepared<Vpa>, Failure> {
    let checkout = checkout(args)?;
    let release = args.release.vpa_release(checkout.as_ref())?;
    let stop = CancellationToken::new();
    let source = match &checkout {
        _ if args.is_on_model() => EngineSource::Model,
        None => EngineSource::Upstream,
        Some(checkout) => EngineSource::Checkout(checkout.clone()),
    };
    let mut preparing = PreparationLog::default();
    let limits = args.release.local.build.limits(&stop);
    let mut progress = |it: Preparation| preparing.log(&it);
    let engine = source.prepare(release, &limits, &mut progress)?;
    let (areas, area_names) = (Vec::new(), vec!["vpa".to_owned()]);
    Ok(Prepared { engine, release, checkout, areas, area_names, prefix: "vpa-", stop })
}

/// The checkout whose recommender is run, if one is named.
fn checkout(args: &Args) -> Result<Option<Checkout>, Failure> {
    if args.program.is_some() {
        let what = "--program does not apply to the recommender";
        return Err(Failure::usage(what).hint("leave out --program"));
    }
    let checkout = args.release.local.open(args.is_on_model(), false)?;
    match checkout.as_ref().filter(|checkout| !checkout.has_recommender()) {
        None => Ok(checkout),
        Some(other) => {
            let what = format!("--upstream-path {}: it has no recommender", other.path.display());
            Err(Failure::usage(what).hint("name a checkout of kubernetes/autoscaler"))
        }
    }
}
