# SPDX-License-Identifier: Apache-2.0
# Writes philly_reference.csv: what rigid policies do with philly_jobs.csv, exactly, in plain Python (15 s).
# Rows in order of (timestamp, line); whole seconds. At one instant: first all ends, then all arrivals, then the queue is looked at
# once from its head. flat-*: one pool. fifo and sjf: the head blocks, nothing is preempted; sjf: shortest duration first, then older.
# easy: EASY backfilling with exact durations; the head's start is the earliest end that frees enough, all ends at that instant counted;
# a later job starts if it fits and ends by then, or takes no more than what is then left over.
# nodes-*: hosts of 8 GPUs; a job takes floor(n / 8) wholly free hosts of lowest index and its rest on ONE host, best: the fullest that
# fits, worst: the emptiest; ties: lowest index; strict fifo. blocked_idle_gpu_s: idle GPUs x time while the head would fit by count.
import csv,heapq,datetime as dt,os,sys,time
f=lambda s: int(dt.datetime.strptime(s,'%Y-%m-%d %H:%M:%S').replace(tzinfo=dt.timezone.utc).timestamp())
rows=sorted((f(x['timestamp']),i,int(float(x['duration'])),int(x['num_gpus'])) for i,x in enumerate(csv.DictReader(open(os.path.join(os.path.dirname(os.path.abspath(__file__)),'../../workloads/catalog/job_traces/philly_jobs.csv')))))
def stats(name,waits,jct,starts,N,extra=''):
    n=len(waits); w=sorted(waits); big=[]
    print(f"{name},{N},{n},{sum(w)},{w[n//2]},{w[int(.9*n)]},{w[int(.99*n)]},{sum(jct)},{extra}"); sys.stdout.flush()
def flat(N,order):   # order: fifo | sjf (head of the queue blocks, no preemption)
    free=N; end=[]; i=0; q=[]; waits=[]; jct=[]
    while i<len(rows) or q:
        now=min(rows[i][0] if i<len(rows) else 1<<60, end[0][0] if end else 1<<60)
        while end and end[0][0]<=now: free+=heapq.heappop(end)[1]
        while i<len(rows) and rows[i][0]<=now:
            r=rows[i]; i+=1; heapq.heappush(q,((r[0],r[1]) if order=='fifo' else (r[2],r[0],r[1]),r))
        while q and q[0][1][3]<=free:
            r=heapq.heappop(q)[1]; free-=r[3]; heapq.heappush(end,(now+r[2],r[3])); waits.append(now-r[0]); jct.append(now-r[0]+r[2])
    stats('flat-'+order,waits,jct,None,N)
def easy(N):         # EASY backfilling, exact run times
    free=N; end=[]; i=0; q=[]; waits=[]; jct=[]
    while i<len(rows) or q:
        now=min(rows[i][0] if i<len(rows) else 1<<60, end[0][0] if end else 1<<60)
        while end and end[0][0]<=now: free+=heapq.heappop(end)[1]
        while i<len(rows) and rows[i][0]<=now: q.append(rows[i]); i+=1
        def start(r):
            nonlocal free
            free-=r[3]; heapq.heappush(end,(now+r[2],r[3])); waits.append(now-r[0]); jct.append(now-r[0]+r[2])
        k=0
        while k<len(q) and q[k][3]<=free: start(q[k]); k+=1
        q=q[k:]
        if q and free>0:
            need=q[0][3]; got=free; shadow=None
            for t,g in sorted(end):
                got+=g
                if got>=need: shadow=t; break
            # all ends at the shadow time count
            got=free+sum(g for t,g in end if t<=shadow); extra=got-need
            keep=[q[0]]
            for r in q[1:]:
                if free>0 and r[3]<=free and (now+r[2]<=shadow or r[3]<=extra):
                    if now+r[2]>shadow: extra-=r[3]
                    start(r)
                else: keep.append(r)
            q=keep
    stats('flat-easy',waits,jct,None,N)
def nodes(M,rule):   # M nodes of 8; a job takes floor(n/8) wholly free nodes of lowest index and its rest on ONE node: best fit (least free that fits) or worst fit (most free); ties: lowest index; strict FIFO
    free=[8]*M; end=[]; i=0; q=[]; waits=[]; jct=[]; frag=0; last=None; blockedfree=0
    import bisect
    by=[[] for _ in range(9)]; by[8]=list(range(M))
    def move(n,old,new):
        by[old].pop(bisect.bisect_left(by[old],n)); bisect.insort(by[new],n); free[n]=new
    qi=0; fifo=[]; tot=8*M; used=0; lost=0
    while i<len(rows) or qi<len(fifo):
        now=min(rows[i][0] if i<len(rows) else 1<<60, end[0][0] if end else 1<<60)
        if last is not None and qi<len(fifo):
            idle=tot-used
            if fifo[qi][3]<=idle: lost+=idle*(now-last)   # enough GPUs are free, but not where they are needed
        last=now
        while end and end[0][0]<=now:
            _,_,pl=heapq.heappop(end)
            for n,g in pl: move(n,free[n],free[n]+g); used-=g
        while i<len(rows) and rows[i][0]<=now: fifo.append(rows[i]); i+=1
        while qi<len(fifo):
            r=fifo[qi]; w,rest=divmod(r[3],8); pl=[]
            if len(by[8])<w: break
            for n in by[8][:w]: pl.append((n,8))
            if rest:
                cand=None
                rng=range(rest,9) if rule=='best' else range(8,rest-1,-1)
                for c in rng:
                    lst=by[c] if c<8 else by[8][w:]
                    if lst: cand=lst[0]; break
                if cand is None: break
                pl.append((cand,rest))
            for n,g in pl: move(n,free[n],free[n]-g); used+=g
            heapq.heappush(end,(now+r[2],r[1],pl)); waits.append(now-r[0]); jct.append(now-r[0]+r[2]); qi+=1
    stats('nodes-'+rule,waits,jct,None,8*M,lost)
print('policy,gpus,jobs,sum_wait_s,median_wait_s,p90_wait_s,p99_wait_s,sum_jct_s,blocked_idle_gpu_s')
for N in (512,640,768):
    for o in ('fifo','sjf'): flat(N,o)
    easy(N)
for M in (80,96,128):
    for r in ('best','worst'):
        nodes(M,r)
