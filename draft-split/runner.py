exec(open('draft-split/post.py').read().split('for d,_,fs')[0])
sub('crates/engines/src/runner.rs',
('use crate::executor::Executor;','use crate::executor::{Executor, WallClock};') if 'use crate::executor::Executor;' in open('crates/engines/src/runner.rs').read() else ('use super::executor::Executor;','use super::executor::{Executor, WallClock};'),
('''/// Runs all scenarios of a plan and reports events to `sink`.
///
''','''/// Runs all scenarios of a plan and reports events to `sink`. `clusters` runs those on the wall
/// clock; builds without clusters have none.
///
'''),
('pub fn run_all(plan: &Plan, sink: &mut dyn FnMut(Event)) -> Result<Summary, EngineError> {','''pub fn run_all(
    plan: &Plan,
    clusters: Option<WallClock>,
    sink: &mut dyn FnMut(Event),
) -> Result<Summary, EngineError> {'''),
('engine.require()?;','engine.require(clusters.is_some())?;'),
('with_executor(plan, parts, |executor| run(plan, parts, executor, &mut record))?;','''with_executor(plan, parts, clusters, |executor| run(plan, parts, executor, &mut record))?;'''),
('''    parts: &[Part],
    run: impl FnOnce''','''    parts: &[Part],
    clusters: Option<WallClock>,
    run: impl FnOnce'''),
)
t=open('crates/engines/src/runner.rs').read()
import re
t=re.sub(r'    if parts\.iter\(\)\.any\(\|part\| part\.clock\(plan\.engine\.info\(\)\) == Clock::Wall\) \{\n.*?\n    \}\n','''    let is_wall = |part: &Part| part.clock(plan.engine.info()) == Clock::Wall;
    if let Some(executor) = clusters.filter(|_| parts.iter().any(is_wall)) {
        return run(&mut *executor(plan, parts)?);
    }
''',t,flags=re.S)
t=t.replace('run_all(&plan, &mut |event|','run_all(&plan, None, &mut |event|').replace('run_all(plan, &mut |event|','run_all(plan, None, &mut |event|')
open('crates/engines/src/runner.rs','w').write(t)
sub('crates/engines/src/executor.rs',('/// An engine of one release that','''/// Creates the executor for scenarios on clusters.
///
/// # Errors
/// If the plan does not fit the cluster that it names.
pub type WallClock =
    for<'p> fn(&'p Plan, &'p [Part]) -> Result<Box<dyn Executor + 'p>, EngineError>;

/// An engine of one release that'''),)
t=open('crates/engines/src/executor.rs').read()
t=t.replace('use super::plan::Part;','use super::plan::{Part, Plan};').replace('use crate::plan::Part;','use crate::plan::{Part, Plan};')
open('crates/engines/src/executor.rs','w').write(t)
sub('crates/engines/src/registry.rs',
('''/// Whether this build has the feature [`CLUSTERS`].
pub const HAS_CLUSTERS: bool = cfg!(feature = "clusters");

''',''),
('''    /// The cargo feature that the engine requires and this build lacks.
    #[must_use]
    pub fn missing_feature(&self) -> Option<&'static str> {
        self.feature.filter(|_| !HAS_CLUSTERS)''','''    /// The cargo feature that the engine requires and this build lacks. `has_clusters`: whether it
    /// has [`CLUSTERS`].
    #[must_use]
    pub fn missing_feature(&self, has_clusters: bool) -> Option<&'static str> {
        self.feature.filter(|_| !has_clusters)'''),
('pub fn require(&self) -> Result<(), EngineError> {','pub fn require(&self, has_clusters: bool) -> Result<(), EngineError> {'),
('self.missing_feature() else','self.missing_feature(has_clusters) else'),
('''            assert_eq!(engine.require().is_ok(), engine.feature.is_none() || HAS_CLUSTERS);
''','''            assert!(engine.require(true).is_ok());
            assert_eq!(engine.require(false).is_ok(), engine.feature.is_none());
'''),
)
