import re
t=open('Cargo.toml').read()
head,rest=t.split('[features]\n',1)
feat,rest=rest.split('[dependencies]\n',1)
deps,rest=rest.split('# --- shared with the tests ---',1)
shared,rest=rest.split('[build-dependencies]\n',1)
build,rest=rest.split('[dev-dependencies]\n',1)
dev,rest=rest.split('[lib]\n',1)
targets,lints=rest.split('[lints.rust]\n',1)
lints,profiles=lints.split('# Without optimization, this crate',1)
profiles='# Without optimization, this crate'+profiles
ws=deps.replace(', optional = true','')
ws=re.sub(r'^([\w-]+) = \{ version = ("[^"]+") \}$',r'\1 = \2',ws,flags=re.M)
tests=dev
members='''[workspace]
members = ["crates/*"]
default-members = [".", "crates/*"]
exclude = ["playground"]
resolver = "3"

[workspace.package]
version = "0.1.0"
edition = "2024"
rust-version = "1.95"
license = "Apache-2.0"
repository = "https://github.com/kube-lockstep/kube-lockstep"

'''
crates=''.join(f'{n} = {{ version = "0.1.0", path = "crates/{d}"{x} }}\n' for n,d,x in [
 ('kube-autoscaler-models','models',''),('kube-lockstep-clusters','clusters',''),('kube-lockstep-engines','engines',''),
 ('kube-lockstep-fuzz','fuzz',''),('kube-lockstep-manifests','manifests',''),('kube-lockstep-report','report',''),
 ('kube-lockstep-scenario','scenario',''),('kube-lockstep-sim','sim','')])
head=head.replace('version = "0.1.0"\nedition = "2024"\nrust-version = "1.95"\nlicense = "Apache-2.0"\n','version.workspace = true\nedition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n',1)
head=re.sub(r'repository = .*\n','repository.workspace = true\n',head,1)
head=head.replace('"/suites/recorded", ','')
features='''[features]
default = ["pages"]
# Reports as pages with timelines.
pages = ["kube-lockstep-report/pages"]
# Engines that are real clusters: the embedded control plane, containers, any kubeconfig.
clusters = ["dep:kube-lockstep-clusters"]
# `kube-lockstep import prometheus`: a client of Prometheus, with TLS and time zones.
prometheus = ["dep:base64", "dep:hyper-util", "dep:prometheus-http-query", "dep:reqwest", "dep:rustls", "jiff/std", "jiff/tz-system", "jiff/tzdb-zoneinfo"]
# The suites on real control planes, which take minutes: `cargo test --features e2e`.
e2e = ["clusters"]
'''
w=lambda *n:''.join(f'{x}.workspace = true\n' for x in n)
o=lambda *n:''.join(f'{x} = {{ workspace = true, optional = true }}\n' for x in n)
root=w('anstream','anstyle','anyhow','clap','clap_complete','csv','fast-glob','include_dir','indicatif','jiff','kube-autoscaler-models')+o('kube-lockstep-clusters')+w('kube-lockstep-engines','kube-lockstep-fuzz','kube-lockstep-manifests','kube-lockstep-report','kube-lockstep-scenario','kube-lockstep-sim','rustix','schemars','serde','serde_json','serde_yaml','sha2','signal-hook','strsim','tempfile','terminal_size','thiserror','tokio','tokio-util')+o('base64','hyper-util','prometheus-http-query','reqwest','rustls')
shareddeps=re.findall(r'^(\w[\w-]*) = (.*)$',shared,re.M)
devnames=re.findall(r'^([\w-]+) = ',dev,re.M)
dev_ws=dev
for n in ('tempfile',):
    dev_ws=re.sub(r'^tempfile = .*\n','',dev_ws,flags=re.M)
wsdeps=members+head
out=members+'[workspace.dependencies]\n# --- the crates of this repository ---\n'+crates+'\n'+ws.rstrip()+'\n\n# --- tests ---\n'+dev_ws.strip()+'\n\n'
out+='[workspace.lints.rust]\n'+lints.replace('[lints.clippy]','[workspace.lints.clippy]').rstrip()+'\n\n'
out+=head+features+'\n[dependencies]\n'+root
# shared
out+='\n# --- shared with the tests'+'\n# '.join(['']) 
out+=' ---'+shared.replace(', optional = true','').rstrip()+'\n'
out+='\n[build-dependencies]\n'+build.replace(', optional = true','').rstrip()+'\n'
out+='\n[dev-dependencies]\n'+w(*sorted(set(devnames)|{'kube-lockstep-fuzz'}-{'kube-lockstep-fuzz'}))
targets=re.sub(r'required-features = \["(?:engines|cli|reports)"\]\n','',targets)
targets=targets.replace('required-features = ["cli", ','required-features = [')
out+='\n[lib]\n'+targets.rstrip()+'\n\n[lints]\nworkspace = true\n\n'+profiles
open('Cargo.toml','w').write(out)
