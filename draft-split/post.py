import re,os,subprocess
def sub(path,*pairs):
    t=open(path).read()
    for a,b in pairs:
        if a not in t: print('MISSING in',path,':',a[:70]); continue
        t=t.replace(a,b)
    open(path,'w').write(t)
for d,_,fs in os.walk('.'):
    if d.startswith(('./target','./.git','./playground/target')): continue
    if not d.startswith(('./crates','./src','./suites','./benches','./examples')): continue
    for f in fs:
        if f.endswith('.rs'):
            p=os.path.join(d,f); t=open(p).read()
            names='engines|clusters|cli|reports' if d.startswith('./crates') else 'engines|cli|reports'
            if d.startswith(('./suites','./benches','./examples')): continue
            n=re.sub(r'^[ \t]*#\[cfg\(feature = "(%s)"\)\]\n'%names,'',t,flags=re.M)
            if n!=t: open(p,'w').write(n)
# engine/mod.rs in sim
p='crates/sim/src/engine/mod.rs'
t=open(p).read()
for x in ('cluster','containers','custom','embedded','guard','input_file','kubeconfig','metrics_server','options','process_group','recorded','registry','runtime','short_command','source','upstream'):
    t=re.sub(r'^pub(\(crate\))? mod %s;\n'%x,'',t,flags=re.M)
t=re.sub(r'^pub use tokio_util::sync::CancellationToken;\n','',t,flags=re.M)
t=t.replace('pub(crate) mod shell;','pub mod shell;')
open(p,'w').write(t)
p='crates/sim/src/run/mod.rs'
t=open(p).read()
for x in ('executor','fuzz_findings','fuzzing','generated','kind','plan','record','recommender_fuzzing','runner','virtual_time','wall_clock'):
    t=re.sub(r'^(pub(\(crate\))? )?mod %s;\n'%x,'',t,flags=re.M)
for name in ('kind::','plan::','runner::','engine::registry::EngineChoice','EngineChoice;'):
    t=re.sub(r'^pub(\(crate\))? use [^;]*%s[^;]*;\n'%re.escape(name),'',t,flags=re.M)
open(p,'w').write(t)
open('crates/sim/src/lib.rs','w').write('''//! The simulated cluster of kube-lockstep: the world of a scenario, the engine of the reference
//! model, lockstep runs of model and engine, and their verdicts.
//!
//! Pure: no files, no clock, no processes.

pub mod compare;
pub mod engine;
pub mod expect;
pub mod run;
pub mod trace;
pub mod world;
''')
open('crates/engines/src/lib.rs','w').write('''//! The engines in virtual time that do I/O, and the runner: upstream's controllers in child
//! processes, recorded traces, and the plan of a run on each release.

pub mod custom;
pub mod executor;
pub mod guard;
pub mod input_file;
pub mod kind;
pub mod options;
pub mod plan;
pub mod process_group;
pub mod record;
pub mod recorded;
pub mod registry;
pub mod runner;
pub mod runtime;
pub mod short_command;
pub mod source;
pub mod upstream;
mod virtual_time;
''')
open('crates/clusters/src/lib.rs','w').write('''//! The engines that are real clusters, and the metrics server for controllers of other clusters.

#[cfg(not(unix))]
compile_error!("clusters require Linux or macOS");

pub mod cluster;
pub mod containers;
pub mod embedded;
pub mod kubeconfig;
pub mod metrics_server;
pub mod wall_clock;
''')
p='crates/report/src/lib.rs'
t=open(p).read()
t=re.sub(r'^pub mod fuzz(_results)?;\n','',t,flags=re.M)
open(p,'w').write(t)
p='crates/fuzz/src/lib.rs'
t=open(p).read()
t=t.replace('mod dice;\n','mod dice;\nmod fuzz_findings;\npub mod fuzzing;\nmod generated;\npub mod recommender_fuzzing;\npub mod report;\npub mod results;\n')
open(p,'w').write(t)
p='crates/scenario/src/lib.rs'
t=open(p).read()
t=t.replace('pub mod draft;\n','').replace('#[cfg(test)]\npub(crate) mod testing;','#[doc(hidden)]\npub mod testing;').replace('\nmod recording;','\npub mod recording;')
open(p,'w').write(t)

for d,_,fs in os.walk('crates'):
    for f in fs:
        if f.endswith('.rs'):
            p=os.path.join(d,f); t=open(p).read()
            n=t.replace('$crate::scenario::','$crate::').replace('$crate::model::','$crate::') if d.startswith(('crates/scenario','crates/models')) else t
            if n!=t: open(p,'w').write(n)
for d,_,fs in os.walk('crates'):
    for f in fs:
        if f.endswith('.rs'):
            p=os.path.join(d,f); t=open(p).read()
            n=re.sub(r'^[ \t]*#\[non_exhaustive\]\n','',t,flags=re.M)
            if n!=t: open(p,'w').write(n)
sub('crates/models/src/tagged.rs',('pub(crate) Cow','pub Cow'))
sub('crates/scenario/src/text.rs',('        pub(super) struct $name;','        pub struct $name;'))
sub('crates/scenario/src/raw.rs',('pub struct AnyManifest(pub(super) Value)','pub struct AnyManifest(pub Value)'))
sub('crates/scenario/src/vpa/raw.rs',('pub struct AnyVpa(pub(crate) Value)','pub struct AnyVpa(pub Value)'))
sub('crates/models/src/counted.rs',('#[cfg(any(test, feature = "reports"))]\n',''))
sub('crates/sim/src/run/mod.rs',('pub use shard::Shard;','pub use crate::engine::shell::shell_word;\npub use shard::Shard;'))
sub('crates/sim/src/run/recommendation.rs',('    #[cfg_attr(not(feature = "pages"), allow(dead_code, reason = "only charts need numbers"))]\n',''))
sub('crates/engines/src/input_file.rs',('    #[cfg(any(test, feature = "cli"))]\n',''))
sub('crates/report/src/lib.rs',('#[cfg(any(feature = "engines", feature = "pages"))]\n',''))
