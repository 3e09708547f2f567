import re,os,collections
CR=['models','scenario','sim','manifests','report','engines','fuzz','clusters']
words={}
def rs(d):
    for a,_,fs in os.walk(d):
        for f in fs:
            if f.endswith('.rs'): yield os.path.join(a,f)
W={}
for c in CR:
    s=set()
    for f in rs(f'crates/{c}/src'): s|=set(re.findall(r'\w+',open(f).read()))
    W[c]=s
s=set()
for d in ('src','suites','benches','examples','playground/src','playground/examples','playground/tests'):
    if os.path.isdir(d):
        for f in rs(d): s|=set(re.findall(r'\w+',open(f).read()))
W['out']=s
ITEM=re.compile(r'^([ \t]*)pub\((crate|super|in [\w:]+)\)(\s+(?:async |const |unsafe )*(?:fn|struct|enum|trait|type|const|static|mod|use)\s+|\s+)(\w+)?',re.M)
tot=0
for c in CR:
    other=set().union(*(W[x] for x in W if x!=c))
    for f in rs(f'crates/{c}/src'):
        t=open(f).read()
        def sub(m):
            global tot
            kw=m.group(3); name=m.group(4)
            if kw.strip()=='use':
                # names in the tree
                end=t.find(';',m.start())
                if re.search(r'\b(maps|numbers|text_only|narrower_form|metrics_with_series|into_present|source|computations|reconciliations|tolerances)\b',t[m.start():end]): return m.group(0)
                 names=re.findall(r'\w+',t[m.end()-len(name or ''):end])
                if any(n in other and n not in('crate','self','super') and n!= 'kube_autoscaler_models' for n in names[-12:] if n[0].isupper() or n.islower()): 
                    tot+=1; return m.group(1)+'pub'+m.group(3)+(name or '')
                return m.group(0)
            if name and name in other:
                tot+=1
                return m.group(1)+'pub'+m.group(3)+name
            return m.group(0)
        n=ITEM.sub(sub,t)
        if n!=t: open(f,'w').write(n)
print('widened',tot)
