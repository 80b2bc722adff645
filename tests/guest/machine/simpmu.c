// SPDX-License-Identifier: GPL-2.0
/*
 * simpmu - simulated core PMU and RAPL with a known ground truth, for tests of profilers.
 *
 * Each CPU has free-running event counters. They advance at the rates of the task that runs on
 * the CPU, in events per second of run time; a task sets its own rates by writing to /proc/simhw.
 * Perf events of the PMU "cpu" (PERF_TYPE_RAW, also PERF_TYPE_HARDWARE) are differences of these
 * counters; a per-CPU timer delivers their overflows. The energy of a package is a linear
 * function of the counters of its CPUs and of time, unless parameters say otherwise (a hidden event,
 * frequencies, data, warmth); it is offered as perf PMU "power" and as powercap zones. /proc/simhw
 * reads back the exact counts and joules per task and preset.
 * See README.md. For Linux 6.1.
 */
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <trace/events/power.h>
#ifdef CONFIG_POWERCAP
#include <linux/powercap.h>
#endif
#include <asm/irq_regs.h>

static unsigned int gp = 4, fixed = 3, min_us = 5, lead_us = 15;
module_param(gp, uint, 0444);		/* general counters per CPU */
module_param(fixed, uint, 0444);	/* fixed counters: instructions, cycles, ref-cycles */
module_param(min_us, uint, 0644);	/* shortest time between two overflow interrupts */

module_param(lead_us, uint, 0644);	/* ask for interrupts this much early, against timer latency */

/* femtojoules per event (CPU core) and per LLC miss (DRAM), constant power in mW */
static unsigned long c_clk = 271000, c_inst = 206000, c_rs = 3161000, c_l2 = 6058000, c_llc = 20000000;
static unsigned int static_mw = 12410, uncore_mw = 3000, dram_mw = 1500;
module_param(c_clk, ulong, 0444);
module_param(c_inst, ulong, 0444);
module_param(c_rs, ulong, 0444);
module_param(c_l2, ulong, 0444);
module_param(c_llc, ulong, 0444);
module_param(static_mw, uint, 0444);	/* cores and pkg */
module_param(uncore_mw, uint, 0444);	/* added to pkg */
module_param(dram_mw, uint, 0444);

/* what no linear model of the events above describes */
static unsigned long c_hid;		/* femtojoules of an event that no counter counts */
static unsigned int drift_mw, drift_s = 10;	/* static power rises by so much within so many seconds */
static unsigned int vary_ms, data_pct;	/* every so often: power of all events times 1 +- so much, by chance */
static bool freq;			/* and another frequency, with its voltage */
module_param(c_hid, ulong, 0444);
module_param(drift_mw, uint, 0444);
module_param(drift_s, uint, 0444);
module_param(vary_ms, uint, 0444);
module_param(data_pct, uint, 0444);
module_param(freq, bool, 0444);

static unsigned int skip_pm;		/* so many of 1000 RAPL updates do not happen */
module_param(skip_pm, uint, 0444);

static unsigned int update_us = 1000, jitter_us = 50, wrap_bits = 32, start_j = 4321;
static bool rapl = true, powercap = true, power_core;
module_param(update_us, uint, 0444);	/* RAPL counters change this often; 0: always exact */
module_param(jitter_us, uint, 0444);	/* +- on each update */
module_param(wrap_bits, uint, 0444);	/* width of the powercap counter, in units of 2^-16 J */
module_param(start_j, uint, 0444);	/* powercap counters start here */
module_param(rapl, bool, 0444);		/* PMU "power" */
module_param(powercap, bool, 0444);
module_param(power_core, bool, 0444);	/* PMU "power_core", one energy-core per CPU */

enum { CLK, INST, RS, L2, LLC, HID, REF, LLCREF, BR, BRM, NE };
static const char *const ename[NE] = { "clk", "inst", "rs", "l2", "llc", "hid", "ref", "llcref", "br", "brm" };
#define NTRUTH 6	/* the first ones make energy */
#define NSHOWN 5	/* and are shown */

struct rates { u64 r[NE]; };
static struct { const char *name; struct rates rt; } preset[] = {
	/* rate_e = interval_e / (energy_e / power), llc made up; see README.md */
	{ "stress", { { 3019090909ULL, 5460750000ULL, 1687834, 0, 10000, 0 } } },
	{ "asm",    { { 3038823529ULL, 5663000000ULL, 1474666667ULL, 11907216, 10000, 2350000000ULL } } },
	{ "l1",     { { 3019090909ULL, 910125000ULL, 203142857, 22846154, 20000, 0 } } },
	{ "l2",     { { 3019090909ULL, 2299263158ULL, 218769231, 23571429, 100000, 320000000 } } },
	{ "l3",     { { 2998125000ULL, 5258500000ULL, 586857143, 357500000, 2000000, 1480000000 } } },
	{ "mem",    { { 2838461538ULL, 882545455, 526666667, 61111111, 60000000, 150000000 } } },
	{ "zero",   { { 0 } } },
};
static struct rates def_rates = { { 2000000000ULL, 1000000000ULL, 100000000, 2000000, 200000 } };
static const struct rates no_rates;
#define MAXRATE 15000000000ULL

static void derive(struct rates *t, u32 given)
{
	if (!(given & BIT(REF)))
		t->r[REF] = t->r[CLK];
	if (!(given & BIT(LLCREF)))
		t->r[LLCREF] = min_t(u64, t->r[LLC] * 4, MAXRATE);
	if (!(given & BIT(BR)))
		t->r[BR] = t->r[INST] / 6;
	if (!(given & BIT(BRM)))
		t->r[BRM] = t->r[INST] / 300;
}

/* ---- counters ---- */

struct rec {			/* ground truth of one (task, preset) */
	struct list_head all;
	struct tnode *node;	/* NULL: the task is gone */
	pid_t tid, tgid;
	char comm[TASK_COMM_LEN], name[24];
	struct rates rt;
	u64 ns, cnt[NE], switches;
	u64 ecnt[NTRUTH];	/* as many events of the usual energy */
};
struct tnode {			/* a task that has set rates */
	struct hlist_node h;
	struct task_struct *task;
	struct rec *rec;
};
#define NCNT 40	/* counters 0-7: fixed, 8..: general */
struct scpu {
	u64 t, rem[NE], cnt[NE];	/* counters up to time t */
	u64 erem[NTRUTH], ecnt[NTRUTH];	/* as many events of the usual energy */
	u64 snap_t, snap[NTRUTH];	/* of these, at the latest RAPL update before t */
	u64 busy;
	struct rates rt, ert;		/* rates of both */
	unsigned int speed, power;	/* of 1000: of the rates, and of the energy of an event */
	u64 varied;
	struct hrtimer vary;
	struct rec *rec;
	int pkg;
	bool in_timer;
	u64 irqs, late_ns, late_max;	/* overflow interrupts and their delay */
	u64 expect;
	struct hrtimer timer;
	struct perf_event *active[NCNT];	/* started sampling events, by counter */
	int nactive;
	unsigned long used;		/* counters in use */
	unsigned long deferred;		/* overflow waits for user or kernel mode */
};
static DEFINE_PER_CPU(struct scpu, cpus);
static DEFINE_RAW_SPINLOCK(lock);	/* all counters, records and nodes */
static DEFINE_HASHTABLE(nodes, 8);
static LIST_HEAD(recs);
static unsigned int nrecs;
static struct rec def_rec = { .name = "default", .comm = "-" };
static u64 t_start;

static int (*overflow)(struct perf_event *, struct perf_sample_data *, struct pt_regs *);
static u64 clk(void) { return ktime_get_mono_fast_ns(); }

/* time of the latest RAPL update at or before t: period k starts at k * update + jitter(k, package) */
static u64 upd_at(u64 k, int pkg)
{
	u64 x = (k + 1) * 0x9e3779b97f4a7c15ULL + pkg * 0xbf58476d1ce4e5b9ULL;
	u64 at = k * update_us * 1000ULL;

	if (!jitter_us)
		return at;
	x = (x ^ (x >> 31)) * 0x94d049bb133111ebULL;
	x ^= x >> 29;
	return at + jitter_us * 1000ULL - (x >> 33) % (jitter_us * 2000ULL + 1);
}
static u64 chance(u64 x)	/* of 2^31, from a number */
{
	x = (x + 1) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x >> 33;
}
static bool skipped(u64 k) { return skip_pm && ((chance(k) * 1000) >> 31) < skip_pm; }
static u64 boundary(u64 t, int pkg)
{
	u64 k, b;

	if (!update_us)
		return t;
	k = div_u64(t, update_us * 1000) + 1;
	while ((b = upd_at(k, pkg)) > t || (k && skipped(k)))
		k--;
	return max(b, t_start);
}
static u64 adv(u64 rate, u64 dt, u64 *rem, u64 left)	/* counts in dt, beside a rest */
{
	u32 ns;
	u64 s = div_u64_rem(dt, 1000000000, &ns), x = rate * ns + left;
	u32 r;
	u64 n = rate * s + div_u64_rem(x, 1000000000, &r);

	if (rem)
		*rem = r;
	return n;
}
static void settle(struct scpu *c, u64 now)
{
	u64 b, dt;
	int e;

	if (now <= c->t)
		return;
	b = boundary(now, c->pkg);
	if (b > c->t || !update_us) {
		c->snap_t = b;
		for (e = 0; e < NTRUTH; e++)
			c->snap[e] = c->ecnt[e] + adv(c->ert.r[e], b - c->t, NULL, c->erem[e]);
	}
	dt = now - c->t;
	for (e = 0; e < NE; e++) {
		u64 n = adv(c->rt.r[e], dt, &c->rem[e], c->rem[e]);

		c->cnt[e] += n;
		if (c->rec)
			c->rec->cnt[e] += n;
	}
	for (e = 0; e < NTRUTH; e++) {
		u64 n = adv(c->ert.r[e], dt, &c->erem[e], c->erem[e]);

		c->ecnt[e] += n;
		if (c->rec)
			c->rec->ecnt[e] += n;
	}
	if (c->rec) {
		c->rec->ns += dt;
		c->busy += dt;
	}
	c->t = now;
}
static u64 count_at(const struct scpu *c, int e, u64 b)
{
	if (b >= c->t)
		return c->ecnt[e] + adv(c->ert.r[e], b - c->t, NULL, c->erem[e]);
	return c->snap[e];
}
/* fJ per event * n in units of 2^-32 J: 10^15 = 2^15 * 5^15 */
static u64 e32(u64 n, u64 fj) { return mul_u64_u64_div_u64(n, fj << 17, 30517578125ULL); }
/* mW * ns = pJ: 10^12 = 2^12 * 5^12 */
static u64 const32(u64 ns, u64 mw) { return mul_u64_u64_div_u64(ns, mw << 20, 244140625); }
static u64 e_uj(u64 n, u64 fj) { return mul_u64_u64_div_u64(n, fj, 1000000000); }
static unsigned long coef(int e)
{
	return e == CLK ? c_clk : e == INST ? c_inst : e == RS ? c_rs : e == L2 ? c_l2 : e == HID ? c_hid : c_llc;
}
static u64 core_e32(const u64 *n)	/* of a core, in 2^-32 J */
{
	u64 s = 0;
	int e;

	for (e = 0; e < NTRUTH; e++)
		if (e != LLC)
			s += e32(n[e], coef(e));
	return s;
}
static u64 core_uj(const u64 *n)
{
	u64 s = 0;
	int e;

	for (e = 0; e < NTRUTH; e++)
		if (e != LLC)
			s += e_uj(n[e], coef(e));
	return s;
}
/* so long would full drift take for what it has done by now: t^2 / (2 T), and t - T / 2 behind its end */
static u64 drifted(u64 ns)
{
	u64 whole = max(drift_s, 1U) * 1000000000ULL;

	return ns < whole ? mul_u64_u64_div_u64(ns, ns, 2 * whole) : ns - whole / 2;
}

enum { D_CORES = 1, D_PKG = 2, D_RAM = 3, D_CORE = 4 };

/* energy in 2^-32 J of a domain; id: package, or CPU for D_CORE; exact: now, else as RAPL shows it */
static u64 energy(int dom, int id, bool exact)
{
	int e, i, pkg = dom == D_CORE ? per_cpu(cpus, id).pkg : id;
	u64 now, b, s, sum[NTRUTH] = { 0 };
	unsigned long fl;

	raw_spin_lock_irqsave(&lock, fl);
	now = clk();
	for_each_online_cpu(i)
		now = max(now, per_cpu(cpus, i).t);
	b = exact ? now : boundary(now, pkg);
	for_each_online_cpu(i) {
		struct scpu *c = per_cpu_ptr(&cpus, i);

		if (dom == D_CORE ? i != id : c->pkg != pkg)
			continue;
		for (e = 0; e < NTRUTH; e++)
			sum[e] += count_at(c, e, b);
	}
	raw_spin_unlock_irqrestore(&lock, fl);
	if (dom == D_RAM)
		return const32(b - t_start, dram_mw) + e32(sum[LLC], c_llc);
	s = core_e32(sum);
	if (dom != D_CORE)
		s += const32(b - t_start, static_mw + (dom == D_PKG ? uncore_mw : 0)) +
		     const32(drifted(b - t_start), drift_mw);
	return s;
}

/* ---- PMU "cpu" ---- */

static int event_of(u64 config)
{
	switch (config & 0xffff) {
	case 0x003c: return CLK;
	case 0x00c0: return INST;
	case 0x04a2: return RS;
	case 0x08f0: return L2;
	case 0x412e: return LLC;
	case 0x4f2e: return LLCREF;
	case 0x00c4: return BR;
	case 0x00c5: return BRM;
	case 0x0300: case 0x013c: return REF;
	}
	return -1;	/* as on hardware: any code can be opened; this one counts nothing */
}
static const u16 hw_code[PERF_COUNT_HW_MAX] = { 0x3c, 0xc0, 0x4f2e, 0x412e, 0xc4, 0xc5, 0x13c, 0, 0, 0x300 };

/* counts of this CPU are settled up to now: fold the difference into the event */
static void fold(struct scpu *c, struct perf_event *e)
{
	int idx = (int)e->hw.event_base;
	u64 now, d;

	if (idx < 0)
		return;
	now = READ_ONCE(c->cnt[idx]);
	d = now - local64_xchg(&e->hw.prev_count, now);
	local64_add(d, &e->count);
	local64_sub(d, &e->hw.period_left);
}
static void settle_here(struct scpu *c)
{
	unsigned long fl;

	raw_spin_lock_irqsave(&lock, fl);
	settle(c, clk());
	raw_spin_unlock_irqrestore(&lock, fl);
}
/* nanoseconds to the next overflow on this CPU, 0: none in sight. Counters are settled. */
static u64 next_ns(struct scpu *c)
{
	u64 best = 0;
	int i;

	for (i = 0; c->nactive && i < NCNT; i++) {
		struct perf_event *e = c->active[i];
		int idx = e ? (int)e->hw.event_base : -1;
		s64 left;
		u64 ns;

		if (idx < 0)
			continue;
		left = local64_read(&e->hw.period_left) - (s64)(c->cnt[idx] - local64_read(&e->hw.prev_count));
		if (left <= 0) {
			if (test_bit(i, &c->deferred) && !c->rt.r[idx])
				continue;
			ns = test_bit(i, &c->deferred) ? 50000 + lead_us * 1000 : 1;
		} else {
			if (!c->rt.r[idx])
				continue;
			if (left > (s64)c->rt.r[idx])	/* more than a second off */
				ns = 1000000000;
			else
				ns = div64_u64((u64)left * 1000000000, c->rt.r[idx]) + 1;
		}
		if (!best || ns < best)
			best = ns;
	}
	if (!best)
		return 0;
	best = best > lead_us * 1000ULL ? best - lead_us * 1000ULL : 1;
	best = max_t(u64, best, min_us * 1000ULL);
	c->expect = c->t + best;
	return best;
}
static void rearm(struct scpu *c)
{
	u64 ns;

	if (c->in_timer)
		return;
	ns = next_ns(c);
	if (ns)
		hrtimer_start(&c->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
	else
		hrtimer_try_to_cancel(&c->timer);
}
static void watch(struct scpu *c, struct perf_event *e, bool on)
{
	struct perf_event **p = &c->active[e->hw.idx];

	c->nactive += on - !!*p;
	*p = on ? e : NULL;
	__clear_bit(e->hw.idx, &c->deferred);
}
static enum hrtimer_restart fire(struct hrtimer *t)
{
	struct scpu *c = container_of(t, struct scpu, timer);
	struct pt_regs *regs = get_irq_regs();
	u64 ns;
	int i;

	if (c != this_cpu_ptr(&cpus))
		return HRTIMER_NORESTART;
	c->in_timer = true;
	settle_here(c);
	if (c->expect && c->t > c->expect) {
		c->late_ns += c->t - c->expect;
		c->late_max = max(c->late_max, c->t - c->expect);
	}
	c->irqs++;
	for (i = 0; i < NCNT; i++) {
		struct perf_event *e = c->active[i];
		struct hw_perf_event *h = &e->hw;
		int burst = 0;
		s64 lead;

		if (!e)
			continue;
		fold(c, e);
		lead = (int)h->event_base < 0 ? 0 : div_u64(c->rt.r[h->event_base] * lead_us, 1000000);
		lead = min_t(s64, lead, h->sample_period / 4);
		__clear_bit(i, &c->deferred);
		while (local64_read(&h->period_left) <= lead) {
			struct perf_sample_data d;
			int stop;

			/* not in the mode that the event asks for: wait until it is */
			if (!regs || (e->attr.exclude_kernel && !user_mode(regs)) ||
			    (e->attr.exclude_user && user_mode(regs))) {
				__set_bit(i, &c->deferred);
				break;
			}
			perf_sample_data_init(&d, 0, h->last_period);
			stop = overflow(e, &d, regs);
			h->last_period = h->sample_period;
			local64_add(h->sample_period, &h->period_left);
			if (stop) {
				h->state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
				watch(c, e, false);
				break;
			}
			/* late: catch up; but a burst would mislead the core's choice of a period */
			if (local64_read(&h->period_left) <= 0 && (e->attr.freq || ++burst == 64)) {
				local64_set(&h->period_left, h->sample_period);
				break;
			}
		}
	}
	ns = next_ns(c);
	c->in_timer = false;
	if (!ns)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(t, ns_to_ktime(ns));
	return HRTIMER_RESTART;
}
static void ev_read(struct perf_event *e)
{
	struct scpu *c = this_cpu_ptr(&cpus);

	if (e->hw.state & PERF_HES_STOPPED)
		return;
	settle_here(c);
	fold(c, e);
}
static void ev_start(struct perf_event *e, int flags)
{
	struct scpu *c = this_cpu_ptr(&cpus);
	struct hw_perf_event *h = &e->hw;
	int idx = (int)h->event_base;

	if (!(h->state & PERF_HES_STOPPED))
		return;
	settle_here(c);
	local64_set(&h->prev_count, idx < 0 ? 0 : c->cnt[idx]);
	h->state = 0;
	if (is_sampling_event(e)) {
		s64 left = local64_read(&h->period_left);

		/* 0: the core has shortened the period of a frequency event */
		if ((flags & PERF_EF_RELOAD) && (left > (s64)h->sample_period || !left)) {
			local64_set(&h->period_left, h->sample_period);
			h->last_period = h->sample_period;
		}
		watch(c, e, true);
		rearm(c);
	}
}
static void ev_stop(struct perf_event *e, int flags)
{
	if (e->hw.state & PERF_HES_STOPPED)
		return;
	ev_read(e);
	if (is_sampling_event(e))
		watch(this_cpu_ptr(&cpus), e, false);
	e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}
static int fixed_of(int ev)
{
	int f = ev == INST ? 0 : ev == CLK ? 1 : ev == REF ? 2 : -1;

	return f < (int)fixed ? f : -1;
}
static int place(unsigned long *used, int ev)	/* bits 0-7 fixed, 8.. general */
{
	int i = fixed_of(ev);

	if (i >= 0 && !test_bit(i, used)) {
		__set_bit(i, used);
		return i;
	}
	for (i = 8; i < 8 + (int)min(gp, 32U); i++)
		if (!test_bit(i, used)) {
			__set_bit(i, used);
			return i;
		}
	return -EAGAIN;
}
static int ev_add(struct perf_event *e, int flags)
{
	struct scpu *c = this_cpu_ptr(&cpus);
	int i = place(&c->used, (int)e->hw.event_base);

	if (i < 0)
		return i;
	e->hw.idx = i;
	e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		ev_start(e, flags);
	perf_event_update_userpage(e);
	return 0;
}
static void ev_del(struct perf_event *e, int flags)
{
	struct scpu *c = this_cpu_ptr(&cpus);

	ev_stop(e, PERF_EF_UPDATE);
	__clear_bit(e->hw.idx, &c->used);
	e->hw.idx = -1;
	perf_event_update_userpage(e);
}
static struct pmu cpu_pmu;
static int ev_init(struct perf_event *e)
{
	u64 cfg = e->attr.config;
	int ev, n;

	switch (e->attr.type) {
	case PERF_TYPE_RAW:
		if (cfg & ~0xffffffffULL)
			return -EINVAL;
		break;
	case PERF_TYPE_HARDWARE:
		if (cfg >= PERF_COUNT_HW_MAX || !hw_code[cfg])
			return -ENOENT;
		cfg = hw_code[cfg];
		break;
	default:
		return -ENOENT;
	}
	if (e->attr.precise_ip || has_branch_stack(e))
		return -EOPNOTSUPP;
	ev = event_of(cfg);
	e->hw.config = cfg;
	e->hw.event_base = (unsigned long)(long)ev;
	e->hw.idx = -1;
	if (e->group_leader != e) {	/* a group that never fits is refused, as on hardware */
		struct perf_event *s;
		unsigned long used = 0;

		n = place(&used, ev);
		if (e->group_leader->pmu == &cpu_pmu)
			n = min(n, place(&used, (int)e->group_leader->hw.event_base));
		for_each_sibling_event(s, e->group_leader)
			if (s->pmu == &cpu_pmu)
				n = min(n, place(&used, (int)s->hw.event_base));
		if (n < 0)
			return -EINVAL;
	}
	return 0;
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
PMU_FORMAT_ATTR(edge, "config:18");
PMU_FORMAT_ATTR(pc, "config:19");
PMU_FORMAT_ATTR(any, "config:21");
PMU_FORMAT_ATTR(inv, "config:23");
PMU_FORMAT_ATTR(cmask, "config:24-31");
static struct attribute *cpu_fmt[] = { &format_attr_event.attr, &format_attr_umask.attr, &format_attr_edge.attr,
	&format_attr_pc.attr, &format_attr_any.attr, &format_attr_inv.attr, &format_attr_cmask.attr, NULL };
static const struct attribute_group cpu_fmt_group = { .name = "format", .attrs = cpu_fmt };
#define EV(id, nm, str) PMU_EVENT_ATTR_STRING(nm, ev_##id, str)
EV(cyc, cpu-cycles, "event=0x3c");
EV(ins, instructions, "event=0xc0");
EV(cref, cache-references, "event=0x2e,umask=0x4f");
EV(cmis, cache-misses, "event=0x2e,umask=0x41");
EV(bri, branch-instructions, "event=0xc4");
EV(brm, branch-misses, "event=0xc5");
EV(bus, bus-cycles, "event=0x3c,umask=0x01");
EV(refc, ref-cycles, "event=0x00,umask=0x03");
static struct attribute *cpu_ev[] = { &ev_cyc.attr.attr, &ev_ins.attr.attr, &ev_cref.attr.attr, &ev_cmis.attr.attr,
	&ev_bri.attr.attr, &ev_brm.attr.attr, &ev_bus.attr.attr, &ev_refc.attr.attr, NULL };
static const struct attribute_group cpu_ev_group = { .name = "events", .attrs = cpu_ev };
static ssize_t pmu_name_show(struct device *d, struct device_attribute *a, char *b) { return sysfs_emit(b, "simpmu\n"); }
static ssize_t max_precise_show(struct device *d, struct device_attribute *a, char *b) { return sysfs_emit(b, "0\n"); }
static DEVICE_ATTR_RO(pmu_name);
static DEVICE_ATTR_RO(max_precise);
static struct attribute *cpu_caps[] = { &dev_attr_pmu_name.attr, &dev_attr_max_precise.attr, NULL };
static const struct attribute_group cpu_caps_group = { .name = "caps", .attrs = cpu_caps };
static const struct attribute_group *cpu_groups[] = { &cpu_fmt_group, &cpu_ev_group, &cpu_caps_group, NULL };

static struct pmu cpu_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	/* only so that the module can be loaded a second time without a warning of the perf core */
	.capabilities = PERF_PMU_CAP_HETEROGENEOUS_CPUS,
	.attr_groups = cpu_groups,
	.event_init = ev_init, .add = ev_add, .del = ev_del,
	.start = ev_start, .stop = ev_stop, .read = ev_read,
};

/* ---- tasks ---- */

static struct tnode *find(struct task_struct *t)
{
	struct tnode *n;

	hash_for_each_possible(nodes, n, h, (unsigned long)t)
		if (n->task == t)
			return n;
	return NULL;
}
static void scale(struct scpu *c)	/* settled, locked */
{
	int e;

	c->rt = !c->rec ? no_rates : c->rec == &def_rec ? def_rates : c->rec->rt;
	if (c->speed != 1000)
		for (e = 0; e < NE; e++)
			c->rt.r[e] = div_u64(c->rt.r[e] * c->speed, 1000);
	c->ert = c->rt;
	if (c->power != 1000)
		for (e = 0; e < NTRUTH; e++)
			if (e != LLC)	/* memory has its own voltage */
				c->ert.r[e] = div_u64(c->rt.r[e] * c->power, 1000);
}
static void use(struct scpu *c, struct task_struct *t)	/* settled, locked */
{
	struct tnode *n;

	if (is_idle_task(t)) {
		c->rec = NULL;
	} else {
		n = find(t);
		c->rec = n ? n->rec : &def_rec;
	}
	scale(c);
}
/* another frequency with its voltage, and other data: every vary_ms, and a little more or less */
static enum hrtimer_restart vary(struct hrtimer *t)
{
	static const struct { unsigned int speed, volt; } step[] = { { 1000, 1000 }, { 700, 880 }, { 450, 780 } };
	struct scpu *c = container_of(t, struct scpu, vary);
	unsigned long fl;
	u64 x;
	int i;

	if (c != this_cpu_ptr(&cpus))
		return HRTIMER_NORESTART;
	raw_spin_lock_irqsave(&lock, fl);
	settle(c, clk());
	x = chance(++c->varied * 1024 + smp_processor_id());
	i = freq ? (chance(x) * ARRAY_SIZE(step)) >> 31 : 0;
	c->speed = step[i].speed;
	c->power = step[i].volt * step[i].volt / 1000;
	c->power = c->power * (1000 - data_pct * 10 + ((chance(x + 1) * data_pct * 20) >> 31)) / 1000;
	scale(c);
	raw_spin_unlock_irqrestore(&lock, fl);
	if (freq)
		trace_cpu_frequency(2900 * step[i].speed, smp_processor_id());
	if (c->nactive)
		rearm(c);
	hrtimer_forward_now(t, ns_to_ktime(vary_ms * (750000ULL + ((chance(x + 2) * 500000) >> 31))));
	return HRTIMER_RESTART;
}
static void p_switch(void *x, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int st)
{
	struct scpu *c = this_cpu_ptr(&cpus);
	unsigned long fl;

	raw_spin_lock_irqsave(&lock, fl);
	settle(c, clk());
	use(c, next);
	raw_spin_unlock(&lock);
	if (c->nactive)
		rearm(c);
	local_irq_restore(fl);
}
static void p_exit(void *x, struct task_struct *t)
{
	struct tnode *n;
	struct rec *r;
	unsigned long fl;

	raw_spin_lock_irqsave(&lock, fl);
	n = find(t);
	if (n) {
		settle(this_cpu_ptr(&cpus), clk());
		hash_del(&n->h);
		list_for_each_entry(r, &recs, all)
			if (r->node == n)
				r->node = NULL;
		if (t == current)
			use(this_cpu_ptr(&cpus), t);
	}
	raw_spin_unlock_irqrestore(&lock, fl);
	kfree(n);
}

/* number as 2.9e9, 1.5E+3, 1000; false: not one */
static bool number(const char *s, u64 *out)
{
	u64 m = 0;
	int ex = 0, e = 0, neg = 0, dig = 0;

	for (; isdigit(*s); s++, dig++)
		if (m < 1000000000000000ULL)
			m = m * 10 + (*s - '0');
		else
			ex++;
	if (*s == '.')
		for (s++; isdigit(*s); s++, dig++)
			if (m < 1000000000000000ULL) {
				m = m * 10 + (*s - '0');
				ex--;
			}
	if (!dig)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		if (*s == '+' || *s == '-')
			neg = *s++ == '-';
		if (!isdigit(*s))
			return false;
		for (; isdigit(*s) && e < 100; s++)
			e = e * 10 + (*s - '0');
		ex += neg ? -e : e;
	}
	if (*s)
		return false;
	for (; ex > 0; ex--) {
		if (m > MAXRATE)
			return false;
		m *= 10;
	}
	for (; ex < 0 && m; ex++)
		m = ex == -1 ? (m + 5) / 10 : m / 10;
	*out = m;
	return m <= MAXRATE;
}
static void reset(void)
{
	struct rec *r, *t;
	LIST_HEAD(dead);
	unsigned long fl;
	int i;

	raw_spin_lock_irqsave(&lock, fl);
	for_each_online_cpu(i)
		settle(per_cpu_ptr(&cpus, i), clk());
	list_for_each_entry_safe(r, t, &recs, all)
		if (!r->node) {
			list_move(&r->all, &dead);
			nrecs--;
		} else {
			r->ns = r->switches = 0;
			memset(r->cnt, 0, sizeof(r->cnt));
			memset(r->ecnt, 0, sizeof(r->ecnt));
		}
	def_rec.ns = 0;
	memset(def_rec.cnt, 0, sizeof(def_rec.cnt));
	memset(def_rec.ecnt, 0, sizeof(def_rec.ecnt));
	raw_spin_unlock_irqrestore(&lock, fl);
	list_for_each_entry_safe(r, t, &dead, all)
		kfree(r);
}
/*
 * "NAME": the rates of a preset; "[name=NAME] clk=R inst=R rs=R l2=R llc=R ...": other rates;
 * "default": no own rates any more; root: "reset", "default clk=R ..." (rates of tasks without own ones)
 */
static ssize_t sh_write(struct file *f, const char __user *ub, size_t len, loff_t *off)
{
	char buf[256], *s = buf, *w, name[24] = "custom";
	struct rates rt = { { 0 } };
	struct rec *r, *nr = NULL;
	struct tnode *n, *nn = NULL;
	bool def = false;
	u32 given = 0;
	unsigned long fl;
	struct scpu *c;
	int i;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ub, len))
		return -EFAULT;
	buf[len] = 0;
	while ((w = strsep(&s, " \t\n,"))) {
		char *v;

		if (!*w)
			continue;
		v = strchr(w, '=');
		if (v)
			*v++ = 0;
		if (!v && !strcmp(w, "reset")) {
			if (!capable(CAP_SYS_ADMIN))
				return -EPERM;
			reset();
			return len;
		}
		if (!v && !strcmp(w, "default")) {
			def = true;
			continue;
		}
		if (!v || !strcmp(w, "preset")) {
			if (v)
				w = v;
			for (i = 0; i < ARRAY_SIZE(preset); i++)
				if (!strcmp(w, preset[i].name))
					break;
			if (i == ARRAY_SIZE(preset))
				return -EINVAL;
			rt = preset[i].rt;
			given |= BIT(CLK) | BIT(INST);
			strscpy(name, w, sizeof(name));
			continue;
		}
		if (!strcmp(w, "name")) {
			if (!*v)
				return -EINVAL;
			strscpy(name, v, sizeof(name));
			continue;
		}
		for (i = 0; i < NE; i++)
			if (!strcmp(w, ename[i]))
				break;
		if (i == NE || !number(v, &rt.r[i]))
			return -EINVAL;
		given |= BIT(i);
	}
	if (!given && !def)
		return -EINVAL;
	derive(&rt, given);
	if (def && given) {
		if (!capable(CAP_SYS_ADMIN))
			return -EPERM;
		raw_spin_lock_irqsave(&lock, fl);
		def_rates = rt;
		raw_spin_unlock_irqrestore(&lock, fl);
		return len;
	}
	if (!def) {
		nr = kzalloc(sizeof(*nr), GFP_KERNEL);
		nn = kzalloc(sizeof(*nn), GFP_KERNEL);
		if (!nr || !nn) {
			kfree(nr);
			kfree(nn);
			return -ENOMEM;
		}
	}
	raw_spin_lock_irqsave(&lock, fl);
	c = this_cpu_ptr(&cpus);
	settle(c, clk());
	n = find(current);
	if (def) {
		if (n) {
			hash_del(&n->h);
			list_for_each_entry(r, &recs, all)
				if (r->node == n)
					r->node = NULL;
		}
		nn = n;		/* to be freed */
	} else {
		if (!n) {
			n = nn;
			nn = NULL;
			n->task = current;
			hash_add(nodes, &n->h, (unsigned long)current);
		}
		r = n->rec;
		if (!r || strcmp(r->name, name)) {
			list_for_each_entry(r, &recs, all)
				if (r->node == n && !strcmp(r->name, name))
					goto have;
			r = nr;
			nr = NULL;
			r->node = n;
			r->tid = current->pid;
			r->tgid = current->tgid;
			memcpy(r->comm, current->comm, sizeof(r->comm));
			strscpy(r->name, name, sizeof(r->name));
			list_add_tail(&r->all, &recs);
			nrecs++;
		}
have:
		r->rt = rt;
		r->switches++;
		n->rec = r;
	}
	use(c, current);
	raw_spin_unlock(&lock);
	if (c->nactive)
		rearm(c);
	local_irq_restore(fl);
	kfree(nr);
	kfree(nn);
	return len;
}
static void show_rec(struct seq_file *m, struct rec *r)
{
	int e;

	for (e = 0; r->comm[e]; e++)	/* keep it one field */
		if (!isgraph(r->comm[e]))
			r->comm[e] = '_';
	seq_printf(m, "task %d %d %s %s %llu", r->tid, r->tgid, r->comm, r->name, r->ns);
	for (e = 0; e < NSHOWN; e++)
		seq_printf(m, " %llu", r->cnt[e]);
	seq_printf(m, " %llu %llu %llu\n", core_uj(r->ecnt), e_uj(r->ecnt[LLC], c_llc), r->switches);
}
static int sh_show(struct seq_file *m, void *v)
{
	struct rec *copy, *r;
	unsigned int n = 0, max;
	struct { u64 cnt[NTRUTH], ecnt[NTRUTH], busy; int pkg; } *pc;
	unsigned long fl;
	u64 now;
	int i, e, p, lastp = -1;

	max = READ_ONCE(nrecs) + 16;
	copy = kvmalloc_array(max, sizeof(*copy), GFP_KERNEL);
	pc = kcalloc(nr_cpu_ids, sizeof(*pc), GFP_KERNEL);
	if (!copy || !pc) {
		kvfree(copy);
		kfree(pc);
		return -ENOMEM;
	}
	raw_spin_lock_irqsave(&lock, fl);
	now = clk();
	for_each_online_cpu(i) {
		struct scpu *c = per_cpu_ptr(&cpus, i);

		settle(c, now);
		memcpy(pc[i].cnt, c->cnt, sizeof(pc[i].cnt));
		memcpy(pc[i].ecnt, c->ecnt, sizeof(pc[i].ecnt));
		pc[i].busy = c->busy;
		pc[i].pkg = c->pkg;
	}
	copy[n++] = def_rec;
	list_for_each_entry(r, &recs, all)
		if (n < max)
			copy[n++] = *r;
	raw_spin_unlock_irqrestore(&lock, fl);

	seq_printf(m, "time_ns %llu\n", now - t_start);
	seq_puts(m, "# task TID TGID COMM PRESET CPU_NS CLK INST RS L2 LLC CORE_UJ DRAM_UJ SETS\n");
	for (i = 0; i < n; i++)
		show_rec(m, &copy[i]);
	seq_puts(m, "# cpu CPU PACKAGE BUSY_NS CLK INST RS L2 LLC IRQS MEAN_LATE_NS MAX_LATE_NS\n");
	for_each_online_cpu(i) {
		seq_printf(m, "cpu %d %d %llu", i, pc[i].pkg, pc[i].busy);
		for (e = 0; e < NSHOWN; e++)
			seq_printf(m, " %llu", pc[i].cnt[e]);
		seq_printf(m, " %llu %llu %llu\n", per_cpu(cpus, i).irqs,
			   div64_u64(per_cpu(cpus, i).late_ns, per_cpu(cpus, i).irqs + 1), per_cpu(cpus, i).late_max);
		lastp = max(lastp, pc[i].pkg);
	}
	seq_puts(m, "# package PACKAGE TIME_NS PKG_UJ CORES_UJ DRAM_UJ\n");
	for (p = 0; p <= lastp; p++) {	/* exact, at time_ns */
		u64 s[NTRUTH] = { 0 }, cores = div_u64((now - t_start) / 1000 * static_mw, 1000);

		for_each_online_cpu(i)
			for (e = 0; pc[i].pkg == p && e < NTRUTH; e++)
				s[e] += pc[i].ecnt[e];
		cores += core_uj(s) + div_u64(drifted(now - t_start) / 1000 * drift_mw, 1000);
		seq_printf(m, "package %d %llu %llu %llu %llu\n", p, now - t_start,
			   cores + div_u64((now - t_start) / 1000 * uncore_mw, 1000), cores,
			   div_u64((now - t_start) / 1000 * dram_mw, 1000) + e_uj(s[LLC], c_llc));
	}
	kvfree(copy);
	kfree(pc);
	return 0;
}
static int sh_open(struct inode *i, struct file *f)
{
	int r = single_open(f, sh_show, NULL);

	f->f_mode |= FMODE_PWRITE;	/* the offset does not matter */
	return r;
}
static const struct proc_ops sh_ops = {
	.proc_open = sh_open, .proc_read = seq_read, .proc_lseek = seq_lseek,
	.proc_release = single_release, .proc_write = sh_write,
};

/* ---- PMU "power" and "power_core" ---- */

static cpumask_t pkg_mask;	/* one CPU per package */
static int pkg_cpu(int pkg)
{
	int i;

	for_each_cpu(i, &pkg_mask)
		if (per_cpu(cpus, i).pkg == pkg)
			return i;
	return 0;
}
static u64 rapl_raw(struct perf_event *e)	/* 2^-32 J, in steps of 2^-16 J */
{
	int dom = e->hw.config, id = dom == D_CORE ? e->cpu : per_cpu(cpus, e->cpu).pkg;

	return energy(dom, id, false) & ~0xffffULL;
}
static void rp_read(struct perf_event *e)
{
	u64 now = rapl_raw(e), old = local64_xchg(&e->hw.prev_count, now);

	local64_add(now - old, &e->count);
}
static void rp_start(struct perf_event *e, int flags)
{
	local64_set(&e->hw.prev_count, rapl_raw(e));
	e->hw.state = 0;
}
static void rp_stop(struct perf_event *e, int flags)
{
	if (!(e->hw.state & PERF_HES_STOPPED))
		rp_read(e);
	e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}
static int rp_add(struct perf_event *e, int flags)
{
	e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		rp_start(e, flags);
	return 0;
}
static void rp_del(struct perf_event *e, int flags) { rp_stop(e, PERF_EF_UPDATE); }
static struct pmu power_pmu, core_pmu;
static int rp_init(struct perf_event *e)
{
	u64 cfg = e->attr.config;
	bool core = e->attr.type == core_pmu.type && power_core;

	if (!core && e->attr.type != power_pmu.type)
		return -ENOENT;
	if (e->cpu < 0 || e->attr.sample_period)
		return -EINVAL;
	if (core) {
		if (cfg != 1)
			return -EINVAL;
		e->hw.config = D_CORE;
		return 0;
	}
	if (cfg < D_CORES || cfg > D_RAM)
		return -EINVAL;
	e->event_caps |= PERF_EV_CAP_READ_ACTIVE_PKG;
	e->cpu = pkg_cpu(per_cpu(cpus, e->cpu).pkg);
	e->hw.config = cfg;
	return 0;
}
static ssize_t cpumask_show(struct device *d, struct device_attribute *a, char *buf)
{
	return cpumap_print_to_pagebuf(true, buf, dev_get_drvdata(d) == &core_pmu ? cpu_online_mask : &pkg_mask);
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute *mask_attrs[] = { &dev_attr_cpumask.attr, NULL };
static const struct attribute_group mask_group = { .attrs = mask_attrs };
static struct attribute *rp_fmt[] = { &format_attr_event.attr, NULL };
static const struct attribute_group rp_fmt_group = { .name = "format", .attrs = rp_fmt };
#define REV(id, nm, cfg)						\
	PMU_EVENT_ATTR_STRING(energy-nm, rev_##id, "event=" #cfg);	\
	PMU_EVENT_ATTR_STRING(energy-nm.unit, rev_##id##_u, "Joules");	\
	PMU_EVENT_ATTR_STRING(energy-nm.scale, rev_##id##_s, "2.3283064365386962890625e-10")
REV(cores, cores, 0x01);
REV(pkg, pkg, 0x02);
REV(ram, ram, 0x03);
REV(core, core, 0x01);
#define RL(id) &rev_##id.attr.attr, &rev_##id##_u.attr.attr, &rev_##id##_s.attr.attr
static struct attribute *rp_ev[] = { RL(cores), RL(pkg), RL(ram), NULL };
static struct attribute *rc_ev[] = { RL(core), NULL };
static const struct attribute_group rp_ev_group = { .name = "events", .attrs = rp_ev };
static const struct attribute_group rc_ev_group = { .name = "events", .attrs = rc_ev };
static const struct attribute_group *rp_groups[] = { &mask_group, &rp_fmt_group, &rp_ev_group, NULL };
static const struct attribute_group *rc_groups[] = { &mask_group, &rp_fmt_group, &rc_ev_group, NULL };
#define RAPL_PMU(groups) {						\
	.module = THIS_MODULE, .task_ctx_nr = perf_invalid_context, .attr_groups = groups, \
	.event_init = rp_init, .add = rp_add, .del = rp_del,		\
	.start = rp_start, .stop = rp_stop, .read = rp_read,		\
	.capabilities = PERF_PMU_CAP_NO_EXCLUDE }
static struct pmu power_pmu = RAPL_PMU(rp_groups), core_pmu = RAPL_PMU(rc_groups);

/* ---- powercap ---- */

#define MAXPKG 8
static const int zdom[3] = { D_PKG, D_CORES, D_RAM };
static u64 wrap_mask(void) { return wrap_bits >= 32 ? 0xffffffff : (1ULL << wrap_bits) - 1; }
static u64 zone_uj(int z, int pkg)
{
	u64 raw = (energy(zdom[z], pkg, false) >> 16) + ((u64)start_j << 16);

	return ((raw & wrap_mask()) * 1000000) >> 16;
}
static u64 zone_max(void) { return (wrap_mask() * 1000000) >> 16; }
#ifdef CONFIG_POWERCAP
static struct powercap_control_type *pc_ct;
static struct rzone { struct powercap_zone pz; int z, pkg; bool on; } zones[MAXPKG][3];
static int z_get(struct powercap_zone *p, u64 *v)
{
	struct rzone *z = container_of(p, struct rzone, pz);

	*v = zone_uj(z->z, z->pkg);
	return 0;
}
static int z_max(struct powercap_zone *p, u64 *v) { *v = zone_max(); return 0; }
static int z_rel(struct powercap_zone *p) { return 0; }
static int z_en(struct powercap_zone *p, bool *on) { *on = true; return 0; }
static int z_set(struct powercap_zone *p, bool on) { return -EACCES; }
static const struct powercap_zone_ops z_ops = { .get_energy_uj = z_get, .get_max_energy_range_uj = z_max,
	.release = z_rel, .get_enable = z_en, .set_enable = z_set };
static int l_get(struct powercap_zone *p, int id, u64 *v) { *v = 95000000; return 0; }
static int l_set(struct powercap_zone *p, int id, u64 v) { return -EACCES; }
static int l_win(struct powercap_zone *p, int id, u64 *v) { *v = 1000000; return 0; }
static const char *l_name(struct powercap_zone *p, int id) { return "long_term"; }
static const struct powercap_zone_constraint_ops l_ops = { .get_power_limit_uw = l_get, .set_power_limit_uw = l_set,
	.get_time_window_us = l_win, .set_time_window_us = l_set, .get_name = l_name };
static void pc_exit(void)
{
	int p, i;

	for (p = MAXPKG - 1; p >= 0; p--)
		for (i = 2; i >= 0; i--)
			if (zones[p][i].on)
				powercap_unregister_zone(pc_ct, &zones[p][i].pz);
	if (!IS_ERR_OR_NULL(pc_ct))
		powercap_unregister_control_type(pc_ct);
}
static int pc_init(void)
{
	int p, i;

	pc_ct = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR(pc_ct))
		return PTR_ERR(pc_ct);
	for (p = 0; p < MAXPKG && p < cpumask_weight(&pkg_mask); p++)
		for (i = 0; i < 3; i++) {
			char n[24];
			struct rzone *z = &zones[p][i];
			struct powercap_zone *r;

			snprintf(n, sizeof(n), "package-%d", p);
			z->z = i;
			z->pkg = p;
			r = powercap_register_zone(&z->pz, pc_ct, i == 0 ? n : i == 1 ? "core" : "dram",
						   i ? &zones[p][0].pz : NULL, &z_ops, 1, &l_ops);
			if (IS_ERR(r)) {
				pc_exit();
				return PTR_ERR(r);
			}
			z->on = true;
		}
	return 0;
}
#else	/* no powercap in this kernel: the same files from a class of our own */
static struct class *pc;
static struct device *ctl, *zone[MAXPKG][3];
static long zi(struct device *d) { return (long)dev_get_drvdata(d); }
static ssize_t energy_uj_show(struct device *d, struct device_attribute *a, char *b)
{
	return sysfs_emit(b, "%llu\n", zone_uj(zi(d) & 3, zi(d) >> 2));
}
static ssize_t max_energy_range_uj_show(struct device *d, struct device_attribute *a, char *b)
{
	return sysfs_emit(b, "%llu\n", zone_max());
}
static ssize_t name_show(struct device *d, struct device_attribute *a, char *b)
{
	static const char *const zname[3] = { NULL, "core", "dram" };

	return zi(d) & 3 ? sysfs_emit(b, "%s\n", zname[zi(d) & 3]) : sysfs_emit(b, "package-%ld\n", zi(d) >> 2);
}
static ssize_t enabled_show(struct device *d, struct device_attribute *a, char *b) { return sysfs_emit(b, "1\n"); }
static DEVICE_ATTR(energy_uj, 0400, energy_uj_show, NULL);
static DEVICE_ATTR_RO(max_energy_range_uj);
static DEVICE_ATTR_RO(name);
static DEVICE_ATTR_RO(enabled);
static struct attribute *zone_attrs[] = { &dev_attr_energy_uj.attr, &dev_attr_max_energy_range_uj.attr,
	&dev_attr_name.attr, &dev_attr_enabled.attr, NULL };
ATTRIBUTE_GROUPS(zone);
static void pc_exit(void)
{
	int p, i;

	for (p = MAXPKG - 1; p >= 0; p--)
		for (i = 2; i >= 0; i--)
			if (!IS_ERR_OR_NULL(zone[p][i]))
				device_unregister(zone[p][i]);
	if (!IS_ERR_OR_NULL(ctl))
		device_unregister(ctl);
	if (!IS_ERR_OR_NULL(pc))
		class_destroy(pc);
}
static int pc_init(void)
{
	long p, i;

	pc = class_create(THIS_MODULE, "powercap");
	if (IS_ERR(pc))
		return PTR_ERR(pc);
	ctl = device_create(pc, NULL, 0, NULL, "intel-rapl");
	if (IS_ERR(ctl)) { pc_exit(); return PTR_ERR(ctl); }
	for (p = 0; p < MAXPKG && p < cpumask_weight(&pkg_mask); p++)
		for (i = 0; i < 3; i++) {
			char n[32];

			snprintf(n, sizeof(n), i ? "intel-rapl:%ld:%ld" : "intel-rapl:%ld", p, i - 1);
			zone[p][i] = device_create_with_groups(pc, i ? zone[p][0] : ctl, 0, (void *)(p << 2 | i), zone_groups, "%s", n);
			if (IS_ERR(zone[p][i])) { pc_exit(); return PTR_ERR(zone[p][i]); }
		}
	return 0;
}
#endif

/* ---- module ---- */

static struct tracepoint *tp_switch, *tp_exit;
static void tp_find(struct tracepoint *t, void *x)
{
	if (!strcmp(t->name, "sched_switch"))
		tp_switch = t;
	else if (!strcmp(t->name, "sched_process_exit"))
		tp_exit = t;
}
static void *sym(const char *n)	/* address of an unexported function */
{
	struct kprobe k = { .symbol_name = n };
	void *a;

	if (register_kprobe(&k) < 0)
		return NULL;
	a = k.addr;
	unregister_kprobe(&k);
	return a;
}
static void cpu_on(void *x)	/* the first look at what runs there */
{
	struct scpu *c = this_cpu_ptr(&cpus);

	raw_spin_lock(&lock);
	settle(c, clk());
	use(c, current);
	raw_spin_unlock(&lock);
	if (vary_ms)
		hrtimer_start(&c->vary, ns_to_ktime(vary_ms * 1000000ULL), HRTIMER_MODE_REL_PINNED_HARD);
}
static bool on_power, on_core, on_pc;
static void undo(void)
{
	struct rec *r, *t;
	struct hlist_node *tmp;
	struct tnode *n;
	int i;

	if (on_pc)
		pc_exit();
	if (on_core)
		perf_pmu_unregister(&core_pmu);
	if (on_power)
		perf_pmu_unregister(&power_pmu);
	remove_proc_entry("simhw", NULL);
	tracepoint_probe_unregister(tp_switch, p_switch, NULL);
	tracepoint_probe_unregister(tp_exit, p_exit, NULL);
	tracepoint_synchronize_unregister();
	for_each_possible_cpu(i) {
		hrtimer_cancel(&per_cpu(cpus, i).timer);
		hrtimer_cancel(&per_cpu(cpus, i).vary);
	}
	hash_for_each_safe(nodes, i, tmp, n, h)
		kfree(n);
	list_for_each_entry_safe(r, t, &recs, all)
		kfree(r);
}
static int __init sp_init(void)
{
	int i, r, np = 0, ids[MAXPKG];

	if (gp > 32 || fixed > 3 || (update_us && jitter_us * 2 >= update_us) ||
	    data_pct > 100 || skip_pm > 900)
		return -EINVAL;
	overflow = sym("perf_event_overflow");
	for_each_kernel_tracepoint(tp_find, NULL);
	if (!overflow || !tp_switch || !tp_exit)
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(preset); i++)
		derive(&preset[i].rt, 0);
	derive(&def_rates, 0);
	t_start = clk();
	for_each_possible_cpu(i) {
		struct scpu *c = per_cpu_ptr(&cpus, i);
		int id = topology_physical_package_id(i), p;

		for (p = 0; p < np && ids[p] != id; p++)
			;
		if (p == np && np < MAXPKG) {	/* packages are numbered from 0 here */
			ids[np++] = id;
			cpumask_set_cpu(i, &pkg_mask);
		}
		c->pkg = min(p, MAXPKG - 1);
		c->t = c->snap_t = t_start;
		c->speed = c->power = 1000;
		hrtimer_init(&c->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		c->timer.function = fire;
		hrtimer_init(&c->vary, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		c->vary.function = vary;
	}
	r = tracepoint_probe_register(tp_switch, p_switch, NULL);
	if (r)
		return r;
	r = tracepoint_probe_register(tp_exit, p_exit, NULL);
	if (r) {
		tracepoint_probe_unregister(tp_switch, p_switch, NULL);
		tracepoint_synchronize_unregister();
		return r;
	}
	on_each_cpu(cpu_on, NULL, 1);
	r = proc_create("simhw", 0666, NULL, &sh_ops) ? 0 : -ENOMEM;
	if (!r && rapl && !(r = perf_pmu_register(&power_pmu, "power", -1)))
		on_power = true;
	if (!r && power_core && !(r = perf_pmu_register(&core_pmu, "power_core", -1)))
		on_core = true;
	if (!r && powercap && !(r = pc_init()))
		on_pc = true;
	if (!r)
		r = perf_pmu_register(&cpu_pmu, "cpu", PERF_TYPE_RAW);
	if (r)
		undo();
	return r;
}
static void __exit sp_exit(void)
{
	perf_pmu_unregister(&cpu_pmu);
	undo();
}
module_init(sp_init);
module_exit(sp_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("simulated PMU and RAPL with ground truth, for tests of profilers");
