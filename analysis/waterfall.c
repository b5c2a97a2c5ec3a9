/* The steps of the waterfall, one row each. The order lets each idealisation stand on those before
 * it: first what the device can do, then what the kernel moves and computes as a whole, then how
 * its work is spread over SMs and phases, last what is lost inside and between launches. */
#include "waterfall.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static double __attribute__((format(printf, 3, 4)))
unknown(char *from, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(from, size, format, arguments);
    va_end(arguments);
    return NAN;
}

static double measured_ns(double bytes, const struct case_terms *terms) {
    return bytes / terms->roofs.bytes_per_s * 1e9;
}

/* --- sums over phases --------------------------------------------------------------------------*/

struct totals {
    double bytes, math_ns, padded_ns, tensor_ns, roof_ns, idle_ns, below_ns, clock_ns;
    size_t counted, computing, flop_counted, timed_only, idle_counted, idle_by_grid, stalled,
        clocked;
};

static double or_zero(double value) { return isnan(value) ? 0 : value; }

static struct totals add_up(const struct case_terms *terms) {
    struct totals sums = {0};

    for (size_t i = 0; i < terms->phase_count; i++) {
        const struct phase_terms *phase = &terms->phases[i];
        sums.bytes += or_zero(phase->bytes);
        sums.math_ns += phase->math_ns;
        sums.padded_ns += phase->padded_ns;
        sums.computing += phase->math_ns > 0;
        sums.flop_counted += phase->flop_counted;
        sums.tensor_ns += phase->tensor_ns;
        sums.roof_ns += phase->roof_ns;
        sums.idle_ns += or_zero(phase->idle_ns);
        sums.clock_ns += or_zero(phase->clock_ns);
        if (phase->has_stalls)
            sums.below_ns += or_zero(phase->below_ns);
        sums.counted += phase->counters != NULL;
        sums.timed_only += phase->counters == NULL;
        sums.idle_by_grid += phase->idle_by_grid;
        sums.idle_counted += !phase->idle_by_grid && !isnan(phase->idle_ns);
        sums.stalled += phase->has_stalls;
        sums.clocked += !isnan(phase->clock_ns);
    }
    return sums;
}

/* --- steps ------------------------------------------------------------------------------------ */

static double measured_roof(const struct case_terms *terms, double before_ns, char *from,
                            size_t size) {
    const struct roofs *roofs = &terms->summary->measured;
    const struct moe_work *work = &terms->summary_case->work;

    (void)before_ns;
    if (isnan(terms->summary_case->bound_ns[BOUND_MEASURED]))
        return unknown(from, size, "the record has no measured roofs; `moesol run` measures them");
    double memory_ns = work->bytes / roofs->bytes_per_s * 1e9;
    double math_ns = work->flop / roofs->flop_per_s * 1e9;
    snprintf(from, size, "max(%.4g GB / %.4g TB/s, %.4g TFLOP / %.4g TFLOP/s): %s-bound",
             work->bytes / 1e9, roofs->bytes_per_s / 1e12, work->flop / 1e12,
             roofs->flop_per_s / 1e12, memory_ns > math_ns ? "memory" : "compute");
    return terms->summary_case->bound_ns[BOUND_MEASURED];
}

static double extra_bytes(const struct case_terms *terms, double before_ns, char *from,
                          size_t size) {
    struct totals sums = add_up(terms);
    double compulsory = terms->summary_case->work.bytes;

    if (sums.counted == 0)
        return unknown(from, size, "no counters: %s", terms->no_counters);
    snprintf(from, size, "DRAM %.4g GB by counters, %.4g GB compulsory (%.2fx)%s", sums.bytes / 1e9,
             compulsory / 1e9, sums.bytes / compulsory,
             sums.timed_only > 0 ? "; phases without counters by the model" : "");
    return fmax(before_ns, measured_ns(sums.bytes, terms));
}

/* Counted operations come before what the kernel says of itself. */
static double padding(const struct case_terms *terms, double before_ns, char *from, size_t size) {
    struct totals sums = add_up(terms);
    bool counted = sums.computing > 0 && sums.flop_counted == sums.computing;
    double flop = terms->summary_case->work.flop;
    double factor = counted ? sums.padded_ns / sums.math_ns : terms->pad_factor;

    if (isnan(factor) && terms->cpu)
        return unknown(from, size, "the kernel does not say how many rows it computes");
    if (isnan(factor))
        return unknown(from, size,
                       "the kernel does not say how many rows it computes, and no counter of "
                       "operations does: that takes --counters full");
    double math_ns = flop * factor / terms->roofs.flop_per_s * 1e9;
    snprintf(from, size, "%.4g TFLOP %s, %.4g TFLOP of valid rows (%.2fx): %.4g ms at the roof%s",
             flop * factor / 1e12, counted ? "by counters" : "of rows that the kernel computes",
             flop / 1e12, factor, math_ns / 1e6,
             math_ns <= before_ns ? ", hidden behind the bound before" : "");
    return fmax(before_ns, math_ns);
}

static double tensor(const struct case_terms *terms, double before_ns, char *from, size_t size) {
    struct totals sums = add_up(terms);

    if (sums.counted == 0)
        return unknown(from, size, "no counters: %s", terms->no_counters);
    snprintf(from, size,
             "tensor pipe busy for %.4g ms while counted, %.4g ms of operations at the roof%s",
             sums.tensor_ns / 1e6, sums.padded_ns / 1e6,
             sums.tensor_ns <= before_ns ? ", hidden behind the bound before" : "");
    return fmax(before_ns, sums.tensor_ns);
}

static double idle_sms(const struct case_terms *terms, double before_ns, char *from, size_t size) {
    struct totals sums = add_up(terms);

    if (sums.idle_counted + sums.idle_by_grid == 0)
        return unknown(from, size, "no counters, and no launch grid that tells: %s",
                       terms->no_counters);
    size_t used = (size_t)snprintf(from, size, "the average SM had no work for %.4g ms of launches",
                                   sums.idle_ns / 1e6);
    if (sums.idle_by_grid > 0 && used < size)
        snprintf(from + used, size - used, "; %s by launch grids",
                 sums.idle_counted == 0 ? "estimated" : "in part estimated");
    return before_ns + sums.idle_ns;
}

static double phases(const struct case_terms *terms, double before_ns, char *from, size_t size) {
    struct totals sums = add_up(terms);

    if (terms->phase_count == 0)
        return unknown(from, size, "the record has no phases");
    snprintf(from, size, "%zu phases, each at its own roof (%s bytes): %.4g ms, and their idle SMs",
             terms->phase_count, sums.counted > 0 ? "counted" : "modelled", sums.roof_ns / 1e6);
    return fmax(before_ns, sums.roof_ns + sums.idle_ns);
}

/* The reason that holds back the most warps, over the phases, each weighted by what it lost. */
static void worst_stall(const struct case_terms *terms, char *worst, size_t size, double *share) {
    double most = 0, all = 0;

    *worst = '\0';
    for (size_t i = 0; i < terms->phase_count; i++) {
        const struct phase_terms *phase = &terms->phases[i];
        size_t index = 0;
        char name[96];
        double warps, sum = 0, top = 0;
        char top_name[96] = "";
        while (next_stall(phase->counters, &index, name, sizeof name, &warps)) {
            if (strcmp(name, "selected") == 0)
                continue;
            sum += warps;
            if (warps > top) {
                top = warps;
                memcpy(top_name, name, sizeof top_name);
            }
        }
        if (!phase->has_stalls || !(phase->below_ns > 0) || !(sum > 0))
            continue;
        all += phase->below_ns;
        if (phase->below_ns > most) {
            most = phase->below_ns;
            *share = top / sum;
            snprintf(worst, size, "%s in %s", top_name, phase->phase->name);
        }
    }
    if (!(all > 0))
        *share = NAN;
}

static double below_roofs(const struct case_terms *terms, double before_ns, char *from,
                          size_t size) {
    struct totals sums = add_up(terms);
    char worst[WATERFALL_FROM] = "";
    double share = NAN;

    if (sums.counted == 0)
        return unknown(from, size, "no counters: %s", terms->no_counters);
    if (sums.stalled == 0)
        return unknown(from, size, "no stall reasons: the counters are of level %.8s, not full",
                       terms->counters->level);
    worst_stall(terms, worst, sizeof worst, &share);
    size_t used = (size_t)snprintf(
        from, size, "SMs busy, DRAM and tensor pipe both under their roofs, for %.4g ms",
        sums.below_ns / 1e6);
    if (worst[0] && used < size)
        snprintf(from + used, size - used, "; most wait for %.120s (%.0f %% of waiting warps)",
                 worst, share * 100);
    return before_ns + sums.below_ns;
}

/* Means over the phases, each weighted by its time. */
static void mean_clocks(const struct case_terms *terms, double *counted_mhz, double *timed_mhz) {
    double counted = 0, timed = 0, weight = 0;

    for (size_t i = 0; i < terms->phase_count; i++) {
        const struct phase_terms *phase = &terms->phases[i];
        if (isnan(phase->clock_ns))
            continue;
        counted += phase->sm_mhz * phase->time_ns;
        timed += phase->timed_mhz * phase->time_ns;
        weight += phase->time_ns;
    }
    *counted_mhz = counted / weight;
    *timed_mhz = timed / weight;
}

static double clock_lost(const struct case_terms *terms, double before_ns, char *from,
                         size_t size) {
    struct totals sums = add_up(terms);
    const char *reasons = terms->summary_case->telemetry.throttle_reasons;
    double counted_mhz, timed_mhz;

    if (sums.counted == 0)
        return unknown(from, size, "no counters: %s", terms->no_counters);
    if (sums.clocked == 0)
        return unknown(from, size, "no SM clock in the record's telemetry or counters");
    mean_clocks(terms, &counted_mhz, &timed_mhz);
    size_t used = (size_t)snprintf(
        from, size, "SM clock %.0f MHz while counted; the times imply %.0f MHz in the timed run",
        counted_mhz, timed_mhz);
    if (used < size && terms->clock_counted)
        used +=
            (size_t)snprintf(from + used, size - used, " (cycle counters: %.0f)", terms->timed_mhz);
    else if (used < size)
        used += (size_t)snprintf(from + used, size - used, " (telemetry: %.0f, %.0f to %.0f)",
                                 terms->timed_mhz, terms->least_mhz, terms->most_mhz);
    if (reasons[0] && used < size)
        snprintf(from + used, size - used, "; %.60s", reasons);
    return before_ns + sums.clock_ns;
}

static double gaps(const struct case_terms *terms, double before_ns, char *from, size_t size) {
    double gap_ns = terms->summary_case->gap_ns, launches = terms->summary_case->launch_count;

    if (isnan(gap_ns))
        return unknown(from, size, "the record has no idle time between launches");
    if (isnan(launches))
        snprintf(from, size, "nothing ran for %.4g us of the span", gap_ns / 1e3);
    else
        snprintf(from, size, "nothing ran for %.4g us of the span, between %.0f launches",
                 gap_ns / 1e3, launches);
    return before_ns + gap_ns;
}

const struct waterfall_row waterfall_rows[STEP_COUNT] = {
    [STEP_MEASURED_ROOF] = {"measured-roof", "datasheet roof to measured roof",
                            "max(compulsory bytes / measured BW, FLOP / measured peak)",
                            measured_roof},
    [STEP_EXTRA_BYTES] = {"extra-bytes", "bytes beyond the compulsory",
                          "max(before, DRAM bytes by counters / measured BW)", extra_bytes},
    [STEP_PADDING] = {"padding", "padded rows",
                      "max(before, FLOP done, padding included / measured peak)", padding},
    [STEP_TENSOR] = {"tensor-instructions", "tensor pipe beyond that",
                     "max(before, sum over phases of the tensor pipe's busy time)", tensor},
    [STEP_IDLE_SMS] = {"idle-sms", "imbalance and tail wave",
                       "before + time in launches that the average SM had no work", idle_sms},
    [STEP_PHASES] = {"phases", "phases one after another",
                     "sum over phases of max(bytes / BW, tensor time) + their idle SMs", phases},
    [STEP_BELOW_ROOFS] = {"below-roofs", "SMs busy below the roofs",
                          "before + sum over phases of SM busy time - their roof", below_roofs},
    [STEP_CLOCK] = {"clock", "SM clock",
                    "before + SM busy time x (clock while counted / clock while timed - 1)",
                    clock_lost},
    [STEP_GAPS] = {"gaps", "launch gaps", "before + idle time inside the span", gaps},
    [STEP_UNEXPLAINED] = {"unexplained", "unexplained", "the measured latency", NULL},
};

/* --- the waterfall ---------------------------------------------------------------------------- */

static void start(const struct case_terms *terms, struct waterfall *out) {
    const struct case_summary *c = terms->summary_case;
    enum bound_kind kind = isnan(c->bound_ns[BOUND_DATASHEET]) ? BOUND_MEASURED : BOUND_DATASHEET;

    out->number = c->number;
    out->latency_ns = case_has_latency(c) ? c->latency_ns.median : NAN;
    out->t_sol_ns = c->bound_ns[kind];
    out->bound = isnan(out->t_sol_ns) ? "" : bounds[kind].name;
}

static void set_rest(double bound_ns, double above_ns, struct waterfall *out) {
    struct waterfall_step_size *rest = &out->steps[STEP_UNEXPLAINED];
    size_t used = 0;

    rest->ns = out->latency_ns - bound_ns;
    rest->from[0] = '\0';
    for (int s = 0; s < STEP_UNEXPLAINED && used < sizeof rest->from; s++)
        if (isnan(out->steps[s].ns))
            used += (size_t)snprintf(
                rest->from + used, sizeof rest->from - used, "%s%s",
                used > 0 ? ", " : "holds what could not be computed: ", waterfall_rows[s].name);
    /* Medians of phases need not sum to the median of the case. */
    if (above_ns > 1e-3 * out->latency_ns && used < sizeof rest->from)
        snprintf(rest->from + used, sizeof rest->from - used,
                 "%sthe steps would come to %.4g ms more than was measured; the last is cut",
                 used > 0 ? "; " : "", above_ns / 1e6);
    else if (used == 0)
        snprintf(rest->from, sizeof rest->from, "latency less all steps");
}

void waterfall_build(const struct case_terms *terms, struct waterfall *out) {
    start(terms, out);
    double bound_ns = out->t_sol_ns, above_ns = 0;
    /* A case faster than its bound (above the roofs) has no gap to explain. */
    double most_ns = fmax(out->latency_ns, out->t_sol_ns);

    for (int s = 0; s < STEP_UNEXPLAINED; s++) {
        struct waterfall_step_size *step = &out->steps[s];
        step->ns = NAN;
        if (isnan(out->t_sol_ns) || isnan(out->latency_ns)) {
            snprintf(step->from, sizeof step->from, "%s",
                     isnan(out->t_sol_ns) ? "no roof of this device is known"
                                          : "the case has no latency");
            continue;
        }
        double next_ns = waterfall_rows[s].bound_ns(terms, bound_ns, step->from, sizeof step->from);
        if (isnan(next_ns))
            continue;
        next_ns = fmax(next_ns, bound_ns);
        above_ns = fmax(above_ns, next_ns - most_ns);
        next_ns = fmin(next_ns, most_ns);
        step->ns = next_ns - bound_ns;
        bound_ns = next_ns;
    }
    set_rest(bound_ns, above_ns, out);
}

/* A step below this share of the latency does not count as one that costs. */
static const double no_cost = 1e-4;

/* What the step is from: in how many cases it costs something, and the figures of the case where it
 * costs most. */
static void mean_from(const struct waterfall *most, int s, size_t costs, size_t computed,
                      size_t used, struct waterfall_step_size *out) {
    char missing[48] = "";

    if (computed < used)
        snprintf(missing, sizeof missing, " (%zu not computed)", used - computed);
    if (costs == 0)
        snprintf(out->from, sizeof out->from, "nothing in %zu of %zu cases%s; case %d: %.220s",
                 computed, used, missing, most->number, most->steps[s].from);
    else
        snprintf(out->from, sizeof out->from,
                 "in %zu of %zu cases%s; most in case %d, %.4g ms: %.220s", costs, used, missing,
                 most->number, most->steps[s].ns / 1e6, most->steps[s].from);
}

/* The case where the step is largest gives the figures; of those without one, the first. */
static void mean_step(const struct waterfall *cases, size_t count, int s, size_t used,
                      struct waterfall_step_size *out) {
    double sum_ns = 0;
    size_t computed = 0, costs = 0;
    const struct waterfall *most = NULL, *missing = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct waterfall *one = &cases[i];
        if (isnan(one->t_sol_ns) || isnan(one->latency_ns))
            continue;
        if (isnan(one->steps[s].ns)) {
            missing = missing ? missing : one;
            continue;
        }
        computed++;
        costs += one->steps[s].ns > no_cost * one->latency_ns;
        sum_ns += one->steps[s].ns;
        if (!most || one->steps[s].ns > most->steps[s].ns)
            most = one;
    }
    out->ns = most ? sum_ns / (double)used : NAN;
    out->from[0] = '\0';
    if (!most && missing)
        snprintf(out->from, sizeof out->from, "%s", missing->steps[s].from);
    else if (most && used == 1)
        snprintf(out->from, sizeof out->from, "%s", most->steps[s].from);
    else if (most)
        mean_from(most, s, costs, computed, used, out);
}

void waterfall_mean(const struct waterfall *cases, size_t count, struct waterfall *mean,
                    size_t *used) {
    *mean = (struct waterfall){.bound = "", .t_sol_ns = NAN, .latency_ns = NAN};
    *used = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(cases[i].t_sol_ns) || isnan(cases[i].latency_ns))
            continue;
        mean->t_sol_ns = (*used == 0 ? 0 : mean->t_sol_ns) + cases[i].t_sol_ns;
        mean->latency_ns = (*used == 0 ? 0 : mean->latency_ns) + cases[i].latency_ns;
        mean->bound = cases[i].bound;
        (*used)++;
    }
    if (*used > 0) {
        mean->t_sol_ns /= (double)*used;
        mean->latency_ns /= (double)*used;
    }
    for (int s = 0; s < STEP_COUNT; s++)
        mean_step(cases, count, s, *used, &mean->steps[s]);
}
