"""Widens items that the compiler reports as private. usage: fix.py CARGO ARGS..."""
import json,subprocess,re,sys,os,collections
def rs(d):
    for a,_,fs in os.walk(d):
        for f in fs:
            if f.endswith('.rs'): yield os.path.join(a,f)
def run(args):
    p=subprocess.run(['cargo','check','--message-format=json',*args],capture_output=True,text=True)
    out=[]
    for l in p.stdout.splitlines():
        try: j=json.loads(l)
        except: continue
        if j.get('reason')=='compiler-message': out.append(j['message'])
    return out,p.stderr
for it in range(12):
    msgs,err=run(sys.argv[1:])
    errs=[m for m in msgs if m['level']=='error' and m.get('code')]
    names=set(); mods=set(); fields=set()
    for m in errs:
        c=m['code']['code']; t=m['message']
        if c in('E0365','E0364','E0603','E0624','E0616','E0446','E0451'):
            for n in re.findall(r'`(\w+)`',t)[:1]: names.add(n)
    plain=0
    for m in errs:
        if m['code']['code']!='E0603': continue
        for ch in m['children']:
            for sp in ch['spans']:
                if 'defined here' in ch['message'] and os.path.exists(sp['file_name']):
                    L=open(sp['file_name']).read().split('\n'); i=sp['line_start']-1
                    if re.match(r'^\s*(const |async )*(fn|struct|enum|const|static|trait|type) ',L[i]):
                        L[i]=re.sub(r'^(\s*)',r'\1pub ',L[i],count=1); open(sp['file_name'],'w').write('\n'.join(L)); plain+=1
    if not names: break
    n=0
    for f in list(rs('crates'))+list(rs('src')):
        t=open(f).read()
        def sub(m):
            global n
            if m.group(4) in names: n+=1; return m.group(1)+'pub'+m.group(3)+m.group(4)
            return m.group(0)
        t2=re.sub(r'^([ \t]*)pub\((crate|super|in [\w:]+)\)(\s+(?:async |const |unsafe )*(?:fn|struct|enum|trait|type|const|static|mod)\s+|\s+)(\w+)',sub,t,flags=re.M)
        def submod(m):
            global n
            if m.group(2) in names and f.endswith(('mod.rs','lib.rs')): n+=1; return 'pub mod '+m.group(2)+';'
            return m.group(0)
        t2=re.sub(r'^(pub\([^)]*\) )?mod (\w+);',submod,t2,flags=re.M)
        def subuse(m):
            global n
            if re.search(r'\b(maps|numbers|text_only|narrower_form|metrics_with_series|into_present|source|computations|reconciliations|tolerances)\b',m.group(3)): return m.group(0)
            if any(re.search(r'\b%s\b'%x,m.group(3)) for x in names): n+=1; return 'pub use '+m.group(3)+';'
            return m.group(0)
        t2=re.sub(r'^(pub\([^)]*\) )(use) ([^;]+);',subuse,t2,flags=re.M)
        if t2!=t: open(f,'w').write(t2)
    print('round',it,sorted(names)[:30],n)
    if n+plain==0: break
errs=[m for m in msgs if m['level']=='error']
seen=set()
for m in errs:
    k=(m.get('rendered') or '')[:700]
    if k in seen: continue
    seen.add(k); print('\n'.join(k.splitlines()[:9]))
print(len(errs),'errors',err[-300:] if not errs else '')
