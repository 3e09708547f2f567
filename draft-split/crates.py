import os,re,subprocess
deps_doc=open('Cargo.toml').read()
def crate(name,dirn,desc,deps,dev='',features='',extra=''):
    os.makedirs(f'crates/{dirn}',exist_ok=True)
    t=f'''[package]
name = "{name}"
description = "{desc}"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
repository.workspace = true
{extra}
{features}[dependencies]
{deps}'''
    if dev: t+=f'\n[dev-dependencies]\n{dev}'
    t+='\n[lints]\nworkspace = true\n'
    t=re.sub(r'\n{3,}','\n\n',t)
    open(f'crates/{dirn}/Cargo.toml','w').write(t)
w=lambda *n: ''.join(f'{x}.workspace = true\n' for x in n)
crate('kube-autoscaler-models','models','Reference models of the Kubernetes pod autoscalers: the HPA controller and the recommender and updater of the VPA',
  w('jiff','num-bigint','schemars','serde','serde_json','thiserror','strsim'), w('proptest'))
crate('kube-lockstep-scenario','scenario','The scenario files of kube-lockstep: parsing, validation, writing',
  w('csv','jiff','kube-autoscaler-models','schemars','serde','serde_json','serde_yaml','strsim','thiserror'), w('proptest'))
crate('kube-lockstep-sim','sim','The simulated cluster of kube-lockstep: world, traces, comparison, expectations and lockstep runs',
  w('kube-autoscaler-models','kube-lockstep-scenario','libm','schemars','serde','serde_json','thiserror'), w('proptest'))
crate('kube-lockstep-manifests','manifests','Scenarios from the manifests of autoscalers, for kube-lockstep',
  w('kube-autoscaler-models','kube-lockstep-scenario','serde','serde_json','thiserror'), w('proptest'))
crate('kube-lockstep-report','report','The reports of kube-lockstep: text, JSON, pages and the formats of CI systems',
  w('anstream','anstyle','csv','indicatif','kube-autoscaler-models','kube-lockstep-scenario','kube-lockstep-sim','quick-junit','serde','serde_json','textplots','thiserror')
  +'base64 = { workspace = true, optional = true }\nmaud = { workspace = true, optional = true }\nminiz_oxide = { workspace = true, optional = true }\n', w('proptest'),
  '[features]\n# Reports as pages with timelines, which the playground also shows.\npages = ["dep:base64", "dep:maud", "dep:miniz_oxide"]\n\n')
crate('kube-lockstep-engines','engines','The engines of kube-lockstep in virtual time: upstream controllers in child processes, recorded traces',
  w('etcetera','include_dir','kube-autoscaler-models','kube-lockstep-scenario','kube-lockstep-sim','rustix','schemars','serde','serde_json','serde_yaml','sha2','strsim','tempfile','thiserror')+'tokio = { workspace = true, features = ["rt-multi-thread"] }\n'+w('tokio-util'))
crate('kube-lockstep-fuzz','fuzz','Generated scenarios for kube-lockstep, and shrinking',
  w('anstyle','chacha20','kube-autoscaler-models','kube-lockstep-report','kube-lockstep-scenario','kube-lockstep-sim','serde','serde_json','tokio-util'), w('proptest'))
crate('kube-lockstep-clusters','clusters','The engines of kube-lockstep on real control planes, and the fake metrics APIs',
  w('axum','axum-server','base64','futures','jiff','k8s-openapi','kube','kube-autoscaler-models','kube-lockstep-engines','kube-lockstep-scenario','kube-lockstep-sim','rcgen','rustix','rustls','serde','serde_json','sha2','tempfile','testcontainers','thiserror','time')
  +'tokio = { workspace = true, features = ["fs", "rt-multi-thread"] }\n'+w('tokio-util'), w('insta','proptest'))
