/* Each check names the figure that fails it. Nothing here is corrected: an impossible case leaves
 * every mean and ranking, and a counter that cannot be is said to be so. */
#include "sanity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../core/drift.h"

/* What a cold phase may read less than it must: counters are exact to some permille. */
static const double cold_tolerance = 0.02;
/* Counters of one phase come from different instants of a pass. */
static const double over_tolerance = 0.01;

/* --- samples and phases ----------------------------------------------------------------------- */

static size_t count_below(const struct record_case *const *rounds, size_t round_count,
                          double floor_ns) {
    size_t below = 0;

    for (size_t r = 0; r < round_count; r++)
        for (size_t i = 0; i < rounds[r]->sample_count; i++)
            below += rounds[r]->samples_ns[i] < floor_ns || !(rounds[r]->samples_ns[i] > 0);
    return below;
}

static bool samples_impossible(const struct record_case *const *rounds, size_t round_count,
                               const struct case_summary *c, char *reason, size_t size) {
    /* Each sample has its own routing, but all hit as many experts. */
    double floor_ns = c->bound_ns[BOUND_DATASHEET];
    size_t below = count_below(rounds, round_count, floor_ns);

    if (below == 0)
        return false;
    if (isnan(floor_ns))
        snprintf(reason, size, "%zu of %zu samples took no time at all", below,
                 c->latency_ns.count);
    else
        snprintf(reason, size, "%zu of %zu samples are faster than the datasheet bound, %.3f ms",
                 below, c->latency_ns.count, c->bound_ns[BOUND_DATASHEET] / 1e6);
    return true;
}

/* The DRAM traffic that a phase cannot do without: what it reads may lie in the L2 already, and
 * what it writes may stay there. */
static bool phase_impossible(const struct summary *summary, const struct phase_summary *phase,
                             char *reason, size_t size) {
    double bytes = phase->work.bytes - 2 * summary->record->run.device.l2_bytes;
    double seconds = phase->latency_ns.median / 1e9;

    if (!phase->modelled || !(seconds >= 0))
        return false;
    double bytes_share = bytes / seconds / summary->datasheet.bytes_per_s;
    double flop_share = phase->work.flop / seconds / summary->datasheet.flop_per_s;
    if (bytes > 0 && bytes_share > 1)
        snprintf(reason, size,
                 "phase %.40s takes %.4f ms, which means %.0f %% of the datasheet's bytes/s even "
                 "with the whole L2 left out",
                 phase->name, 1e3 * seconds, 100 * bytes_share);
    else if (phase->work.flop > 0 && flop_share > 1)
        snprintf(reason, size,
                 "phase %.40s takes %.4f ms, which means %.0f %% of the datasheet's FLOP/s",
                 phase->name, 1e3 * seconds, 100 * flop_share);
    else
        return false;
    return true;
}

static bool drifts(const struct record_case *const *rounds, size_t round_count, char *reason,
                   size_t size) {
    for (size_t r = 0; r < round_count; r++) {
        struct drift drift = drift_of(rounds[r]->samples_ns, rounds[r]->sample_count);
        if (!drift_found(&drift))
            continue;
        snprintf(reason, size,
                 "the samples of round %g drift by %+.1f %% from the first third to the last "
                 "(%.0f %% is steady)",
                 rounds[r]->round, 100 * drift.share, 100 * DRIFT_SHARE);
        return true;
    }
    return false;
}

enum record_status sanity_status(const struct record_case *const *rounds, size_t round_count,
                                 const struct summary *summary, const struct case_summary *c,
                                 char *reason, size_t size) {
    if (samples_impossible(rounds, round_count, c, reason, size))
        return STATUS_IMPOSSIBLE;
    for (size_t i = 0; i < c->phase_count; i++)
        if (phase_impossible(summary, &c->phases[i], reason, size))
            return STATUS_IMPOSSIBLE;
    if (drifts(rounds, round_count, reason, size))
        return STATUS_NOISY;
    return STATUS_OK;
}

/* --- counters --------------------------------------------------------------------------------- */

static double metric(const struct record_phase_counters *phase, const char *name) {
    for (size_t i = 0; i < phase->metric_count; i++)
        if (strcmp(phase->metrics[i].name, name) == 0)
            return phase->metrics[i].value;
    return NAN;
}

static bool impossible_share(const struct record_metric *m) {
    return strstr(m->name, ".pct") != NULL && m->value > 100 * (1 + over_tolerance);
}

/* In how many lines of counters a phase's metric is above 100 %, and the most of them. */
static size_t count_impossible(const struct record *record, size_t line_count, const char *phase,
                               const char *name, double *most) {
    size_t count = 0;

    for (size_t l = 0; l < line_count; l++) {
        const struct record_counters *line = &record->counters[l];
        for (size_t p = 0; p < line->phase_count; p++)
            for (size_t i = 0; i < line->phases[p].metric_count; i++) {
                const struct record_metric *m = &line->phases[p].metrics[i];
                if (strcmp(line->phases[p].name, phase) != 0 || strcmp(m->name, name) != 0 ||
                    !impossible_share(m))
                    continue;
                count++;
                *most = fmax(*most, m->value);
            }
    }
    return count;
}

/* Told once for a phase and a metric, at the first case that has it. */
static int note_percentages(const struct record *record, size_t line,
                            const struct record_phase_counters *phase, struct notes *notes,
                            struct error *err) {
    for (size_t i = 0; i < phase->metric_count; i++) {
        const struct record_metric *m = &phase->metrics[i];
        double most = 0;
        if (!impossible_share(m) || count_impossible(record, line, phase->name, m->name, &most) > 0)
            continue;
        size_t count =
            count_impossible(record, record->counters_count, phase->name, m->name, &most);
        if (notes_add(
                notes, err,
                "phase %s: counter %s is above 100 %% in %zu of %zu cases, %.1f %% at most: it "
                "cannot be",
                phase->name, m->name, count, record->counters_count, most) != 0)
            return -1;
    }
    return 0;
}

/* The time includes the range's edges, so that the true rate is higher than this. */
static int note_dram_rate(const struct summary *summary, int number,
                          const struct record_phase_counters *phase, struct notes *notes,
                          struct error *err) {
    double bytes = metric(phase, "dram__bytes_read.sum") + metric(phase, "dram__bytes_write.sum");
    double rate = bytes / (metric(phase, "gpu__time_duration.sum") / 1e9);
    double share = rate / summary->datasheet.bytes_per_s;

    if (!(share > 1 + over_tolerance))
        return 0;
    return notes_add(notes, err,
                     "case %d, phase %s: the counters say %.3f TB/s of DRAM traffic, %.0f %% of "
                     "the datasheet: it cannot be",
                     number, phase->name, rate / 1e12, 100 * share);
}

struct cold_tally {
    size_t cases, phases; /* that were checked */
    bool failed;
};

static int note_cold(const struct case_summary *c, const struct record_counters *counters,
                     struct cold_tally *tally, struct notes *notes, struct error *err) {
    bool first = true, checked = false;

    for (size_t i = 0; i < counters->phase_count; i++) {
        const struct record_phase_counters *phase = &counters->phases[i];
        struct moe_work ignored;
        double must = moe_phase_cold_bytes(phase->name, first, &c->shape, &c->routing);
        double got = metric(phase, "dram__bytes_read.sum");
        if (moe_phase_work(phase->name, &c->shape, &c->routing, &ignored))
            first = false;
        if (!(must > 0) || isnan(got))
            continue;
        checked = true;
        tally->phases++;
        if (got >= must * (1 - cold_tolerance))
            continue;
        tally->failed = true;
        if (notes_add(notes, err,
                      "case %d, phase %s: not cold: it read %.3f MB from DRAM, and a cold start "
                      "must read %.3f MB",
                      c->number, phase->name, got / 1e6, must / 1e6) != 0)
            return -1;
    }
    tally->cases += checked;
    return 0;
}

static int note_case_counters(const struct summary *summary, size_t line, struct cold_tally *tally,
                              struct notes *notes, struct error *err) {
    const struct record_counters *counters = &summary->record->counters[line];
    const struct case_summary *c = summary_find_case(summary, (int)counters->number);
    int number = (int)counters->number;

    if (counters->reason[0])
        return notes_add(notes, err, "case %d: no counters: %s", number, counters->reason);
    for (size_t i = 0; i < counters->phase_count; i++)
        if (note_percentages(summary->record, line, &counters->phases[i], notes, err) != 0 ||
            note_dram_rate(summary, number, &counters->phases[i], notes, err) != 0)
            return -1;
    return c ? note_cold(c, counters, tally, notes, err) : 0;
}

int sanity_note_counters(const struct summary *summary, struct notes *notes, struct error *err) {
    const struct record *record = summary->record;
    struct cold_tally tally = {0};

    for (size_t i = 0; i < record->counters_count; i++)
        if (note_case_counters(summary, i, &tally, notes, err) != 0)
            return -1;
    if (tally.phases == 0 || tally.failed)
        return 0;
    return notes_add(notes, err,
                     "the cold start is verified in %zu of %zu cases: by the DRAM counters, %zu "
                     "phases read at least what a cold L2 must fetch",
                     tally.cases, summary->case_count, tally.phases);
}
