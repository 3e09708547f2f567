//! A scenario on a real cluster: the clock is real, and the model follows it.
//!
//! The model says when the next reconcile is due. Before that, the cluster is made what the world
//! then says; when the reconcile comes, the model is given the time at which it came. That is known
//! only to within what the reconcile took: where a window's edge or a whole second falls into that,
//! both outcomes are right, and the one that was seen is followed. That is counted, never silent;
//! and so is a reconcile that falls into a change of the cluster, and may see any part of it.
//!
//! What the model remembers has such a time, too. So it is followed three times: as if everything
//! had happened as early as it can have, as late, and between. Those whom a later reconcile proves
//! wrong are dropped for one that it does not.

use std::collections::{BTreeSet, VecDeque};
use std::mem::{replace, take};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::compare::{self, Scope};
use crate::engine::cluster::Cluster;
use crate::engine::cluster::Scene;
use crate::engine::cluster::Sight;
use crate::engine::cluster::Tick;
use crate::engine::cluster::stopped;
use crate::engine::model::Simulation;
use crate::engine::{EngineError, Step};
use crate::model::hpa::Decision;
use crate::model::observation::{ControllerAction, Event, Observation};
use crate::model::rules::{Release, Rules};
use crate::model::time::{Span, Time};
use crate::run::chance;
use crate::run::chance::Chance;
use crate::run::chance::Doubts;
use crate::run::chance::is_a_matter_of;
use crate::run::due;
use crate::run::due::Due;
use crate::run::findings::Findings;
use crate::run::lineage::Lineage;
use crate::run::lineage::MOMENTS;
use crate::run::lineage::hear;
use crate::run::lineage::moments;
use crate::run::lockstep::Predicted;
use crate::run::lockstep::free_run;
use crate::run::lockstep::predicted;
use crate::run::motion::Motion;
use crate::run::own;
use crate::run::plan::Compared;
use crate::run::recorder::Recorder;
use crate::scenario::Scenario;
use crate::trace::Stepped;
use crate::world::{Change, World};

mod events;
mod excuse;
mod reading;

/// How long a request that should come is waited for.
const PATIENCE: Span = Span::from_secs(10);

/// What came of a scenario.
pub(super) struct Followed<'k> {
    pub(super) findings: Findings<'k>,
    /// Reconciles that fell on a boundary, or into a change: several outcomes were right.
    pub(super) boundaries: usize,
    /// What else should be known of it.
    pub(super) notes: Vec<String>,
    /// Why what its author expects and did not come is no verdict, if that is so.
    pub(super) doubt: Option<EngineError>,
}

/// A run that is under way.
struct Wall<'a> {
    scenario: &'a Arc<Scenario>,
    world: World,
    /// One for each of [`moments`].
    lineages: [Lineage; MOMENTS],
    /// Until when the world was asked.
    advanced: Time,
    /// How far from its time a reconcile may be.
    due: Due,
    /// What was changed of the cluster since the last reconcile, or while that came.
    motion: Option<Motion>,
    /// The last reconcile, if it may not have been over.
    open: Option<Open>,
    /// What somebody did to an HPA since the last reconcile.
    edits: Vec<Edit>,
    /// What was compared last came at a time of its own: no answer of the API server.
    timed: bool,
    /// How chance can have brought about what was compared last.
    chance: Option<Chance>,
    /// Why what was compared last is no verdict if it does not agree, or what comes later is none.
    doubts: Doubts,
    /// A conflict is tried again.
    retries: bool,
    /// Since when what is compared now came about, and what was compared before that.
    since: [Time; 2],
    sight: Sight,
    boundaries: usize,
    /// What is compared, if the controller is not upstream's and may do its work in another way.
    own: Option<Scope>,
    /// How much later than upstream's its first reconcile came, and so all of the scenario comes.
    late: Span,
    /// The size was written past the scale.
    direct: bool,
    /// The events that each reconcile should have written, and its place in the trace if it was
    /// seen.
    events: Vec<(Option<usize>, Vec<Event>)>,
}

/// Something that was done to an HPA.
struct Edit {
    /// When it was done.
    end: Time,
    /// What the model would be without it.
    before: [Lineage; MOMENTS],
}

/// A reconcile that seemed to be over and has written nothing, and what was before it.
struct Open {
    tick: Tick,
    due: Time,
    pace: Due,
    lineages: [Lineage; MOMENTS],
    boundaries: usize,
}

/// Plays a scenario to its end, which was played before without a verdict for these reasons.
///
/// # Errors
/// If the cluster is broken, or did not become in time what the scenario says.
pub(super) async fn follow<'k>(
    scenario: &Arc<Scenario>,
    release: Release,
    (cluster, stop, compared, before): (&Cluster, &AtomicBool, Compared, &[String]),
    mut findings: Findings<'k>,
) -> Result<Followed<'k>, EngineError> {
    cluster.check()?;
    let rules = Rules::of(release);
    let recorder = Recorder::new(&rules);
    let simulation = Simulation::new(scenario, rules).with_wall_clock();
    let lineage = Lineage { simulation, recorder };
    let mut wall = Wall {
        scenario,
        world: World::new(scenario),
        lineages: [lineage.clone(), lineage.clone(), lineage],
        advanced: Time::ZERO,
        due: Due::of(scenario.flags.sync_period),
        motion: None,
        open: None,
        edits: Vec::new(),
        timed: false,
        chance: None,
        doubts: Doubts::default(),
        retries: rules.scale.update_attempts > 1,
        since: [Time::ZERO; 2],
        sight: cluster.sight(),
        boundaries: 0,
        own: compared.scope().map(|own| own.and(cluster.sight().scope)),
        late: Span::ZERO,
        direct: false,
        events: Vec::new(),
    };
    let mut scene = match cluster.open(scenario, stop).await {
        Ok(Some(scene)) => scene,
        Ok(None) => return Err(cluster.interrupted()),
        Err(error) => return Err(cluster.check().err().unwrap_or(error)),
    };
    let played = async {
        wall.play(&mut scene, &mut findings).await?;
        if wall.own.is_some() {
            return Ok(());
        }
        if findings.divergence.is_none() {
            (wall.timed, wall.chance, wall.since) = (true, None, [Time::ZERO; 2]);
            wall.doubts.go_on();
        }
        wall.compare_events(&mut scene, &mut findings).await
    };
    let played = tokio::select! {
        played = played => Some(played),
        // What it has made is still removed.
        () = stopped(stop) => None,
    };
    let played = played.unwrap_or_else(|| Err(cluster.interrupted()));
    let excuse = findings.divergence.as_ref().and_then(|_| wall.excuse(&scene, before));
    let mut notes = wall.notes(&scene, &findings);
    let gap = "a watch of the API server was interrupted: something may not have been seen";
    let gap = scene.requests().has_gap().then(|| scene.broken(gap.to_owned()));
    let came = wall.events.len();
    let counts = wall.own.is_none() && findings.divergence.is_none();
    let wanted = if counts { free_run(scenario, release).trace.ticks.len() } else { 0 };
    let missed = due::missed(came, wanted);
    let few = missed.clone().filter(|_| due::are_too_few(came, wanted));
    let few = few.map(|why| scene.broken(why));
    notes.extend(missed);
    wall.doubts.go_on();
    let doubt = wall.doubts.why(before).map(|why| scene.broken(why));
    scene.close().await;
    // What a cluster that has died did last says more than what was not answered.
    cluster.check()?;
    played?;
    if let Some(why) = excuse.or(gap).or(few) {
        return Err(why);
    }
    Ok(Followed { findings, boundaries: wall.boundaries, notes, doubt })
}

impl Wall<'_> {
    async fn play(
        &mut self,
        scene: &mut Scene,
        findings: &mut Findings<'_>,
    ) -> Result<(), EngineError> {
        let start = self.world.advance(Time::ZERO);
        let mut events: VecDeque<Change> = self.world.api_events(Time::ZERO).into();
        scene.begin(&start).await?;
        self.hear(&start, Time::ZERO);
        let mut happened = Time::ZERO;
        let end = self.scenario.until;
        while findings.divergence.is_none() {
            let due = self.lineages[0].simulation.next_sync();
            // What is done has its whole effect before anything else is done.
            if let Some(due) = due.filter(|due| *due <= scene.now()) {
                self.change(scene, due).await?;
                self.tick(scene, findings, due).await?;
                continue;
            }
            if let Some(event) = events.pop_front() {
                self.change(scene, scene.now()).await?;
                self.act(scene, findings, &event).await?;
                continue;
            }
            let next_event = self.world.next_api_event(happened).filter(|at| *at <= end);
            // A reconcile goes first where both fall together.
            let before = |due: Time, event: Time| due - self.late <= event + self.due.slack;
            match (next_event, due) {
                (Some(event), due) if due.is_none_or(|due| !before(due, event)) => {
                    self.change(scene, event + self.late).await?;
                    scene.wait_until(event + self.late).await;
                    events = self.world.api_events(event).into();
                    happened = event;
                }
                (_, Some(due)) if before(due, end) => {
                    self.change(scene, due).await?;
                    self.tick(scene, findings, due).await?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Makes the cluster what the world says of an instant to come.
    async fn change(&mut self, scene: &mut Scene, at: Time) -> Result<(), EngineError> {
        // Its time only goes forward.
        self.advanced = self.advanced.max(at - self.late);
        let changes = self.world.advance(self.advanced);
        if scene.is_settled_by_now() {
            // All of it can be seen by what comes.
            self.motion = None;
        }
        let now = scene.now();
        match &mut self.motion {
            // Another controller has no time at which it has to see anything.
            _ if changes.is_empty() || self.own.is_some() => {}
            Some(motion) => motion.goes_on(&changes, now),
            None => self.motion = Some(Motion::new(self.lineages.clone(), changes.clone(), now)),
        }
        self.hear(&changes, at);
        scene.apply(&changes).await
    }

    fn hear(&mut self, changes: &[Change], at: Time) {
        hear(&mut self.lineages, changes, at);
        for edit in &mut self.edits {
            hear(&mut edit.before, changes, at);
        }
    }

    /// Does what somebody does to the HPA, and compares the API server's answers.
    async fn act(
        &mut self,
        scene: &mut Scene,
        findings: &mut Findings<'_>,
        event: &Change,
    ) -> Result<(), EngineError> {
        let begin = scene.now();
        let seen = scene.act(event).await?;
        // The controller hears of it when it is done.
        let at = scene.now();
        self.due.edited(begin, at);
        self.timed = false;
        self.edits.push(Edit { end: at, before: self.lineages.clone() });
        if let Some(motion) = &mut self.motion {
            motion.hear(event, at);
        }
        let answers = self.lineages.each_mut().map(|it| it.simulation.apply(event, at));
        let [mut model, ..] = answers;
        if let (Some(model), Some(seen)) = (&mut model, &seen) {
            model.at = seen.at;
        }
        let step = Step { apply: Vec::new(), until: at };
        let predicted = Predicted { step, api: model.into_iter().collect(), decisions: Vec::new() };
        let stepped = Stepped { now: at, api: seen.into_iter().collect(), ticks: Vec::new() };
        findings.compare(&predicted, stepped, self.sight.scope);
        Ok(())
    }

    /// Waits for the reconcile that is due, and compares it.
    async fn tick(
        &mut self,
        scene: &mut Scene,
        findings: &mut Findings<'_>,
        due: Time,
    ) -> Result<(), EngineError> {
        self.since = [self.since[1], scene.now()];
        (self.timed, self.chance) = (true, None);
        self.doubts.go_on();
        let (edits, motion) = (take(&mut self.edits), self.motion.take());
        let open = self.open.take();
        let scope = self.sight.scope;
        let [lineage, ..] = &self.lineages;
        let next = lineage.at(due).map(|it| it.decision.observation);
        let asks = next.as_ref().is_some_and(|it| requests(it, scope) > 0);
        // What it does leaves no trace: all that can be seen is that nothing else is done.
        let hidden = !asks && next.as_ref().is_some_and(|it| requests(it, Scope::ALL) > 0);
        let is_seen = asks || hidden && scene.requests().is_told(due + self.due.slack).await;
        if !is_seen {
            // The HPA is gone, or its target can't even be asked for: nobody sees it happen.
            let [decision, ..] = self.lineages.each_mut().map(|lineage| lineage.pass(due));
            self.events
                .extend(decision.map(|it| (None, it.observation.events().cloned().collect())));
            return Ok(());
        }
        let limit = due + Span(self.due.slack.0 * 9);
        let Some(mut tick) = scene.requests().next_tick(limit).await else {
            let idle = scene.idle(self.scenario.flags.sync_period);
            if let Some(idle) = idle.filter(|_| findings.trace.ticks.is_empty()) {
                return Err(idle);
            }
            self.none_came(findings, due);
            return Ok(());
        };
        let many = if self.own.is_none() { self.many(&tick, scope) } else { BTreeSet::new() };
        // Of another controller only its silence tells that it is done.
        let patience = tick.began + PATIENCE;
        scene.requests().rest_of(&mut tick, &many, patience).await;
        if tick.began < scene.settled() {
            // It need not have made a difference.
            self.doubts.set(chance::in_motion(tick.began, scene.settled()));
        }
        if self.own.is_some() {
            if findings.trace.ticks.is_empty() {
                self.late = (tick.began - due).max(Span::ZERO);
            }
            return self.take_in(scene, findings, (tick, due), (edits, motion));
        }
        if self.retries {
            tick.forget_retries();
        }
        let reads = next.is_some_and(|it| it.reads().next().is_some());
        if let Some(why) = scene.requests().is_rest(&tick, reads) {
            let mut is_near = |open: &Open| {
                let ended = open.tick.ended;
                tick.began
                    <= ended + Span(self.due.slack.0 * 2) + scene.requests().held_since(ended)
            };
            let Some(open) = open.filter(|open| edits.is_empty() && is_near(open)) else {
                return Err(scene.broken(why));
            };
            self.doubts.set(why);
            return self.go_on(scene, findings, open, (tick, motion));
        }
        if let Some(why) = scene.is_torn(&tick) {
            return Err(scene.broken(why));
        }
        if self.due.is_too_early(tick.began, due) {
            // Not because of a clock: it was not to come at all.
            self.chance = Some(Chance::Pace);
            let seen = self.observation(scene, (tick.began, &tick.did))?;
            let stepped = Stepped { now: seen.at, api: Vec::new(), ticks: vec![seen] };
            findings.compare(&predicted(due, Vec::new()), stepped, self.sight.scope);
            return Ok(());
        }
        if self.due.is_too_late(tick.began, due) {
            self.none_came(findings, due);
            return Ok(());
        }
        self.take_in(scene, findings, (tick, due), (edits, motion))
    }

    /// Compares a reconcile that goes on when it seemed to be over: as if it had been held up.
    fn go_on(
        &mut self,
        scene: &mut Scene,
        findings: &mut Findings<'_>,
        open: Open,
        (rest, motion): (Tick, Option<Motion>),
    ) -> Result<(), EngineError> {
        let Open { mut tick, due, pace, lineages, boundaries } = open;
        tick.ended = rest.ended;
        tick.did.extend(rest.did);
        (self.lineages, self.due, self.boundaries) = (lineages, pace, boundaries + 1);
        findings.take_back();
        self.events.pop();
        self.take_in(scene, findings, (tick, due), (Vec::new(), None))?;
        if let Some(motion) = motion {
            self.motion = Some(motion.after(&mut self.lineages, findings.trace.ticks.last()));
        }
        Ok(())
    }

    /// Compares a reconcile, after these edits and amid this change, with the model.
    fn take_in(
        &mut self,
        scene: &mut Scene,
        findings: &mut Findings<'_>,
        (tick, due): (Tick, Time),
        (edits, motion): (Vec<Edit>, Option<Motion>),
    ) -> Result<(), EngineError> {
        let (seen, scope, unread) = self.seen(scene, &tick)?;
        let pods: Vec<String> = scene.names().map(|(_, world)| world.to_owned()).collect();
        // A longer one excuses whatever comes of it.
        let stall = scene.requests().held_since(self.since[1]).min(self.due.slack);
        let (before, is_own) = (self.lineages.clone(), self.own.is_some());
        let (boundaries, had_edits) = (self.boundaries, !edits.is_empty());
        let mut decision = self.choose((&tick, stall), (&seen, scope), &pods);
        let agrees = |model: &Option<Decision>| {
            let differ = |it: &Decision| compare::observations(&it.observation, &seen, scope);
            model.as_ref().is_some_and(|it| differ(it).is_empty())
        };
        let is_amid = tick.began < scene.settled();
        let mut amid = None;
        if let Some(motion) = motion.filter(|_| is_amid && !agrees(&decision))
            && let Some((lineages, found)) = motion.find((tick.began, &seen), |lineages| {
                self.agreed(lineages, (&tick, stall), (&seen, scope), &pods)
            })
        {
            (self.lineages, decision, amid) = (lineages, Some(found), Some(motion));
            self.boundaries += 1;
        }
        if !agrees(&decision) {
            for edit in edits.into_iter().filter(|_| !is_own) {
                let end = edit.end;
                if due::may_not_have_heard(tick.began, end, stall)
                    && self.is_as_before(edit, (&tick, stall), (&seen, scope), &pods)
                {
                    return Err(scene.broken(format!(
                        "a reconcile at {} had not heard yet of the HPA's edit until {end}",
                        tick.began
                    )));
                }
            }
            if is_a_matter_of((self.due.slack, is_own), &before, &tick, (&seen, scope), &pods) {
                self.chance = Some(Chance::Moment);
            }
        }
        let Some(decision) = decision else {
            self.chance = Some(Chance::Pace);
            let stepped = Stepped { now: seen.at, api: Vec::new(), ticks: vec![seen] };
            findings.compare(&predicted(due, Vec::new()), stepped, scope);
            return Ok(());
        };
        let writes = seen.actions().iter().any(ControllerAction::is_write);
        if !writes && !had_edits && amid.is_none() && !is_own {
            let (pace, tick) = (self.due, tick.clone());
            self.open = Some(Open { tick, due, pace, lineages: before, boundaries });
        }
        self.due.came(due, (tick.began, tick.ended), stall);
        let index = findings.trace.ticks.len();
        self.events.push((Some(index), decision.observation.events().cloned().collect()));
        let settled = self.lineages.each_mut().map(|it| it.simulation.commit(&seen, tick.ended));
        if let [Some((target, replicas)), ..] = settled {
            self.advanced = self.advanced.max(seen.at - self.late);
            self.world.scaled(self.advanced, target, replicas);
            scene.scaled(replicas);
        }
        if let Some(motion) = amid {
            self.motion = Some(motion.after(&mut self.lineages, Some(&seen)));
        }
        let at = seen.at;
        let stepped = Stepped { now: at, api: Vec::new(), ticks: vec![seen] };
        findings.compare(&predicted(due, vec![decision]), stepped, scope);
        findings.found(findings.trace.ticks.len(), at, unread.into_iter().collect());
        Ok(())
    }

    /// Compares the reconcile that was to come with none.
    fn none_came(&mut self, findings: &mut Findings<'_>, due: Time) {
        self.chance = Some(Chance::Pace);
        let [lineage, ..] = &self.lineages;
        let decisions = lineage.at(due).map(|it| it.decision).into_iter().collect();
        let nothing = Stepped { now: due, ..Stepped::default() };
        findings.compare(&predicted(due, decisions), nothing, self.sight.scope);
    }

    /// How many requests a reconcile can have that begins then. It may be held up, and read the
    /// clock when a window is over that was not when it began.
    fn many(&self, tick: &Tick, scope: Scope) -> BTreeSet<usize> {
        let moments = [tick.began, tick.began + self.due.slack];
        let each = self.lineages.iter().flat_map(|lineage| moments.map(|at| lineage.at(at)));
        each.flatten().map(|it| requests(&it.decision.observation, scope)).collect()
    }

    /// What the model says of a reconcile that was seen: each lineage goes on with the moment that
    /// agrees, its own if that does.
    fn choose(
        &mut self,
        (tick, stall): (&Tick, Span),
        (seen, scope): (&Observation, Scope),
        pods: &[String],
    ) -> Option<Decision> {
        let mut next = Vec::new();
        let moments = moments(tick, self.sight.uncertainty, stall);
        for (index, lineage) in self.lineages.iter().enumerate() {
            let own = moments.iter().cycle().skip(index).take(MOMENTS);
            let mut first = None;
            let agreeing = own.enumerate().find_map(|(further, moment)| {
                let mut candidate = lineage.at(*moment)?;
                if self.own.is_some() {
                    own::write_what_is_stored(&mut candidate.decision, seen, &lineage.simulation);
                }
                candidate.normalize(seen, (pods, moments), self.due.slack);
                let differs = compare::observations(&candidate.decision.observation, seen, scope);
                if differs.is_empty() {
                    return Some((candidate, further > 0));
                }
                first.get_or_insert(candidate);
                None
            });
            next.push((agreeing, first));
        }
        let survivor = next.iter().find_map(|(agreeing, _)| agreeing.clone());
        let Some((survivor, _)) = survivor else {
            // None is right: shown is what the first one says.
            let first = next.into_iter().find_map(|(_, first)| first)?;
            self.lineages[0] = first.lineage;
            return Some(first.decision);
        };
        let strays = next.iter().any(|(agreeing, _)| agreeing.as_ref().is_none_or(|it| it.1));
        self.boundaries += usize::from(strays);
        for (lineage, (agreeing, _)) in self.lineages.iter_mut().zip(next) {
            *lineage = agreeing.map_or_else(|| survivor.lineage.clone(), |(it, _)| it.lineage);
        }
        Some(survivor.decision)
    }

    /// Whether the model agrees with a reconcile as if an edit had not been done: its status is
    /// then refused, since the HPA is another by now, and may come when it seemed to be over.
    fn is_as_before(
        &mut self,
        edit: Edit,
        tick: (&Tick, Span),
        (seen, scope): (&Observation, Scope),
        pods: &[String],
    ) -> bool {
        let is_refused = seen.status_write().is_none_or(|write| write.error.is_some());
        let without = Scope { status: false, errors: false, ..scope };
        let scope = if is_refused { without } else { scope };
        self.agreed(edit.before, tick, (seen, scope), pods).is_some()
    }

    /// What other lineages say of a reconcile, if that agrees, and how they go on.
    fn agreed(
        &mut self,
        lineages: [Lineage; MOMENTS],
        tick: (&Tick, Span),
        (seen, scope): (&Observation, Scope),
        pods: &[String],
    ) -> Option<([Lineage; MOMENTS], Decision)> {
        let own = (replace(&mut self.lineages, lineages), self.boundaries);
        let decision = self.choose(tick, (seen, scope), pods);
        let chosen = replace(&mut self.lineages, own.0);
        self.boundaries = own.1;
        let differ = |it: &Decision| compare::observations(&it.observation, seen, scope);
        decision.filter(|it| differ(it).is_empty()).map(|it| (chosen, it))
    }

    /// What should be known of a controller that is not upstream's.
    fn notes(&self, scene: &Scene, findings: &Findings<'_>) -> Vec<String> {
        let direct = self.direct.then(|| own::PAST_THE_SCALE.to_owned());
        let refused = match (self.own, &findings.divergence) {
            (Some(_), Some(_)) => scene.forbidden(),
            _ => Vec::new(),
        };
        let refused = refused.into_iter().map(|why| format!("it has not all rights: {why}"));
        direct.into_iter().chain(refused).collect()
    }
}

/// How many requests of a reconcile can be seen.
fn requests(tick: &Observation, scope: Scope) -> usize {
    let reads = scope.visible(tick).len();
    reads + tick.actions().iter().filter(|action| action.is_write()).count()
}
