/* Sums over the cases, phase by phase. */
#include "suite_phases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sums {
    double ns, latency_ns, bound_ns;
    struct moe_work work;
    bool modelled;
};

static void add_phase(const struct case_summary *c, const struct phase_summary *phase,
                      struct sums *sums) {
    sums->ns += phase->latency_ns.median;
    sums->latency_ns += c->latency_ns.median;
    sums->bound_ns += phase->bound_ns;
    sums->modelled = sums->modelled && phase->modelled;
    if (phase->modelled) {
        sums->work.bytes += phase->work.bytes;
        sums->work.flop += phase->work.flop;
    }
}

static void join(const struct summary *summary, struct suite_phase *out) {
    struct sums sums = {.modelled = true};
    const char *name = out->name;

    *out =
        (struct suite_phase){.name = name, .bytes_per_s = NAN, .flop_per_s = NAN, .intensity = NAN};
    for (size_t i = 0; i < summary->case_count; i++) {
        const struct case_summary *c = &summary->cases[i];
        for (size_t p = 0; p < c->phase_count; p++) {
            if (strcmp(c->phases[p].name, name) != 0 || !(c->phases[p].latency_ns.median > 0))
                continue;
            add_phase(c, &c->phases[p], &sums);
            out->case_count++;
        }
    }
    out->mean_ns = out->case_count > 0 ? sums.ns / (double)out->case_count : NAN;
    out->share = out->case_count > 0 ? sums.ns / sums.latency_ns : NAN;
    out->fraction = out->case_count > 0 ? sums.bound_ns / sums.ns : NAN;
    if (!sums.modelled || out->case_count == 0)
        return;
    out->bytes_per_s = sums.work.bytes / (sums.ns / 1e9);
    if (sums.work.flop > 0) {
        out->flop_per_s = sums.work.flop / (sums.ns / 1e9);
        out->intensity = sums.work.flop / sums.work.bytes;
    }
}

static bool listed(const struct suite_phase *phases, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(phases[i].name, name) == 0)
            return true;
    return false;
}

struct suite_phase *suite_phases(const struct summary *summary, size_t *count, struct error *err) {
    size_t most = 0;

    for (size_t i = 0; i < summary->case_count; i++)
        most += summary->cases[i].phase_count;
    struct suite_phase *phases = calloc(most + 1, sizeof *phases);
    *count = 0;
    if (!phases) {
        error_set(err, EXIT_FAILED, "out of memory for the phases of a suite");
        return NULL;
    }
    for (size_t i = 0; i < summary->case_count; i++)
        for (size_t p = 0; p < summary->cases[i].phase_count; p++)
            if (!listed(phases, *count, summary->cases[i].phases[p].name))
                phases[(*count)++].name = summary->cases[i].phases[p].name;
    for (size_t i = 0; i < *count; i++)
        join(summary, &phases[i]);
    return phases;
}
