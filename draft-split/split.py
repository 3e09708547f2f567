#!/usr/bin/env python3
"""Moves the modules of the single crate into workspace crates and rewrites paths."""
import os,re,subprocess,sys
ROOT=os.getcwd()
LIB={'models':'kube_autoscaler_models','scenario':'kube_lockstep_scenario','sim':'kube_lockstep_sim',
 'manifests':'kube_lockstep_manifests','report':'kube_lockstep_report','engines':'kube_lockstep_engines',
 'fuzz':'kube_lockstep_fuzz','clusters':'kube_lockstep_clusters','root':'kube_lockstep','bin':'kube_lockstep'}
M={}  # old module tuple -> (crate, new module tuple)
def m(old,crate,new): M[tuple(x for x in old.split('::') if x)]=(crate,tuple(x for x in new.split('::') if x))
m('','root','')
m('model','models',''); m('scenario','scenario',''); m('scenario::draft','manifests','')
for x in ('trace','world','compare','expect','engine','run'): m(x,'sim',x)
for x in ('containers','embedded','kubeconfig','metrics_server','cluster'): m('engine::'+x,'clusters',x)
for x in ('custom','guard','input_file','options','process_group','recorded','registry','runtime','short_command','source','upstream'): m('engine::'+x,'engines',x)
for x in ('executor','kind','plan','record','runner','virtual_time'): m('run::'+x,'engines',x)
for x in ('fuzz_findings','fuzzing','generated','recommender_fuzzing'): m('run::'+x,'fuzz',x)
m('run::wall_clock','clusters','wall_clock')
m('cli','bin','cli'); m('fuzz','fuzz',''); m('report','report','')
m('report::fuzz','fuzz','report'); m('report::fuzz_results','fuzz','results')
# items re-exported by a module from a moved one
ITEMS={}
for x in ('ClusterOptions','Compared','CustomController','DEFAULT_CLUSTER_JOBS','MAX_RECOMMENDERS','Pace','Plan','RecommenderPlan'):
    ITEMS[('run',x)]=('engines',('plan',x))
ITEMS[('run','run_all')]=('root',('run_all',))
ITEMS[('run','RunKind')]=('engines',('kind','RunKind'))
ITEMS[('run','EngineChoice')]=('engines',('registry','EngineChoice'))
# extern
EXTERN={('engine','CancellationToken'):'tokio_util::sync::CancellationToken'}
def longest(path):
    for n in range(len(path),-1,-1):
        if path[:n] in M: return path[:n]
def resolve(path):
    """absolute old path -> (crate,newpath)"""
    path=tuple(path)
    if path in EXTERN: return ('extern',tuple(EXTERN[path].split('::')))
    if path[:2] in ITEMS:
        c,n=ITEMS[path[:2]]; return (c,n+path[2:])
    k=longest(path); c,n=M[k]
    return (c,n+path[len(k):])
def oldmod(rel):
    p=rel[len('src/'):-3].split('/')
    if p in (['lib'],['main']): return ()
    if p[-1]=='mod': p=p[:-1]
    return tuple(p)
def newfile(rel):
    om=oldmod(rel)
    if rel in('src/lib.rs','src/main.rs'): return rel
    crate,nm=resolve(om)
    if crate in('root','bin'): return rel
    base='src' if crate=='root' else f'crates/{crate}/src'
    if not nm: return f'{base}/lib.rs'
    if rel.endswith('/mod.rs'): return f'{base}/'+'/'.join(nm)+'/mod.rs'
    return f'{base}/'+'/'.join(nm)+'.rs'
# ---- use trees
def split_top(s):
    out=[];d=0;cur=''
    for c in s:
        if c=='{':d+=1
        elif c=='}':d-=1
        if c==',' and d==0: out.append(cur);cur=''
        else: cur+=c
    if cur.strip(): out.append(cur)
    return [x.strip() for x in out if x.strip()]
def expand(tree,pre=()):
    tree=tree.strip()
    i=tree.find('{')
    if i<0:
        m_=re.match(r'^(.*?)(?:\s+as\s+(\w+))?$',tree,re.S)
        path=tuple(x.strip() for x in m_.group(1).split('::') if x.strip())
        return [(pre+path,m_.group(2))]
    head=tuple(x.strip() for x in tree[:i].split('::') if x.strip())
    out=[]
    for t in split_top(tree[i+1:tree.rindex('}')]): out+=expand(t,pre+head)
    return out
def render(leaves):
    """leaves: list of (path,alias) sharing nothing; returns list of 'use' trees grouped by module"""
    groups={}
    for p,a in leaves:
        if p[-1]=='self': p=p[:-1]; leafself=True
        else: leafself=False
        groups.setdefault(p[:-1],[]).append((p[-1],a))
    # fold: if a group's full path (mod+leaf) is itself a module of another group: use self
    out=[]
    for mod in groups:
        names=groups[mod]
        names=[n if not a else f'{n} as {a}' for n,a in names]
        names=sorted(dict.fromkeys(names))
        pre='::'.join(mod)
        if len(names)==1: out.append(f'{pre}::{names[0]}' if pre else names[0])
        else: out.append(f'{pre}::{{{", ".join(names)}}}')
    return sorted(out)
def absolute(path,mod):
    """path with crate/super/self first -> absolute old path or None"""
    path=list(path)
    if path[0] in('crate','kube_lockstep'): return tuple(path[1:])
    cur=list(mod); i=0
    if path[0]=='self': i=1
    elif path[0]!='super': return None
    while i<len(path) and path[i]=='super':
        if not cur: return None
        cur.pop(); i+=1
    return tuple(cur+path[i:])
def newpath(path,mod,crate,filemod,intest):
    """rewritten path, or None if unchanged. mod: old module incl. inline modules"""
    a=absolute(path,mod)
    if a is None: return None
    tc,tn=resolve(a)
    if tc=='extern': return tn
    if tc==crate:
        if path[0] in('crate',):
            return ('crate',)+tn
        if path[0]=='kube_lockstep': return None if crate=='root' and False else (LIB[tc],)+tn
        # relative: unchanged if file module and target share the longest prefix
        if a[:len(mod)]==mod and path[0]=='self': return None
        k1=longest(filemod); k2=longest(a) if a[:2] not in ITEMS else None
        if k1==k2: return None
        return ('crate',)+tn
    return (LIB[tc],)+tn
def inline_mods(text):
    """list of (start,end,name) of inline modules"""
    out=[]
    for m_ in re.finditer(r'^[ \t]*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*\{',text,re.M):
        indent=re.match(r'[ \t]*',m_.group(0)).group(0)
        if text[m_.end():m_.end()+1]=='}': continue
        e=re.compile(r'^'+indent+r'\}',re.M).search(text,m_.end())
        out.append((m_.start(),e.end() if e else len(text),m_.group(1)))
    return out
USE=re.compile(r'^([ \t]*)((?:pub(?:\([^)]*\))?\s+)?)use\s+([^;]+);',re.M)
def rewrite(text,filemod,crate,external=False):
    mods=inline_mods(text)
    def modat(pos):
        ms=[x for x in mods if x[0]<pos<x[1]]
        ms.sort()
        return tuple(filemod)+tuple(x[2] for x in ms)
    spans=[]
    def do_use(m_):
        indent,vis,tree=m_.groups()
        leaves=expand(tree)
        mod=modat(m_.start()+len(indent)+1)
        firsts=('kube_lockstep',) if external else ('crate','super','self')
        if not any(l[0][0] in firsts for l in leaves): return m_.group(0)
        new=[];changed=False
        for p,al in leaves:
            star=p[-1]=='self' and len(p)>1
            q=p[:-1] if star else p
            n=newpath(q,mod,crate,filemod,False) if q[0] in firsts else None
            if n is None: new.append((p,al))
            else:
                if not(n==q): changed=True
                if al is None and n[-1]!=q[-1] and q[-1]!='*':
                    al=q[-1]
                if len(n)==1: 
                    pass
                new.append((n,al))
        if not changed: return m_.group(0)
        trees=render([(p,a) for p,a in new])
        return '\n'.join(f'{indent}{vis}use {t};' for t in trees)
    # protect comments? use statements in doc comments have no ^[ \t]*use
    out=[];last=0
    for m_ in USE.finditer(text):
        out.append(('code',last,text[last:m_.start()])); out.append(('use',m_.start(),do_use(m_))); last=m_.end()
    out.append(('code',last,text[last:]))
    res=[]
    firsts='kube_lockstep' if external else 'crate|super'
    PATH=re.compile(r'(?<![\w:$])((?:self::)?(?:'+firsts+r')(?:::\w+)+)')
    for kind,start,t in out:
        if kind=='code':
            def sub(m_,start=start):
                if m_.group(1).startswith('self::super'): return m_.group(0)
                line_start=t.rfind('\n',0,m_.start())+1
                line=t[line_start:m_.start()]
                if re.search(r'pub\((in )?$',t[max(0,m_.start()-8):m_.start()]): return m_.group(0)
                p=tuple(m_.group(1).split('::'))
                n=newpath(p,modat(start+m_.start()),crate,filemod,False)
                if n is None: return m_.group(0)
                return '::'.join(n)
            t=PATH.sub(sub,t)
        res.append(t)
    text=''.join(res)
    # visibilities
    def vis(m_):
        a=absolute(tuple(m_.group(1).split('::')),filemod)
        if a is None: return m_.group(0)
        tc,tn=resolve(a)
        k1=longest(filemod)
        if tc!=crate or not tn or a==(): return 'pub(crate)'
        if a[:len(k1)]!=k1: return 'pub(crate)'
        if m_.group(1).startswith('super'): return m_.group(0)
        return 'pub(in crate::'+'::'.join(tn)+')'
    text=re.sub(r'pub\(in ([\w:]+)\)',vis,text)
    return text
def main():
    allf=subprocess.check_output(['git','ls-files','src'],text=True).split()
    texts={}
    moves=[]
    for rel in allf:
        if rel.endswith('.rs'):
            n=newfile(rel); om=oldmod(rel); crate=resolve(om)[0]
            t=open(rel).read()
            texts[n]=rewrite(t,om,crate)
        else:
            d=os.path.dirname(rel)+'/x.rs'
            n=os.path.dirname(newfile(d))+'/'+os.path.basename(rel)
        if n!=rel: moves.append((rel,n))
    for a,b in moves:
        os.makedirs(os.path.dirname(b),exist_ok=True)
        subprocess.check_call(['git','mv','-k',a,b])
    for n,t in texts.items(): open(n,'w').write(t)
    # external users
    ext=subprocess.check_output(['git','ls-files','suites','benches','examples','playground','docs','README.md'],text=True).split()
    for rel in ext:
        if rel.endswith('.rs'):
            t=open(rel).read(); n=rewrite(t,('x',),'ext',external=True)
            if n!=t: open(rel,'w').write(n)
    print(len(moves),'moved')
if __name__=='__main__': main()
