/* Rules about DRAM: at its roof, under it, more bytes than needed, token rows moved about. */
#include <math.h>
#include <string.h>

#include "../cases/case.h"
#include "rules_all.h"

/* Below this share of the roof a phase is not under a DRAM limit at all. */
static const double least_memory_share = 0.25;
static const double extra_share = 1.10;   /* bytes over the model's from which it is told */
static const double traffic_share = 0.03; /* of the latency */

static double rate(const struct phase_terms *phase) { return phase->bytes / phase->time_ns / 1e3; }

static double roof(const struct rule_context *context) {
    return context->terms->roofs.bytes_per_s / 1e12;
}

/* What the phase would take at the roof with the bytes and rows of its model only. */
static double least_ns(const struct rule_context *context, const struct phase_terms *phase) {
    double bytes = fmin(phase->bytes, isnan(phase->model_bytes) ? INFINITY : phase->model_bytes);
    double memory_ns = bytes / context->terms->roofs.bytes_per_s * 1e9;
    return fmax(isnan(memory_ns) ? 0 : memory_ns, phase->math_ns);
}

static void see_rate(const struct rule_context *context, const struct phase_terms *phase,
                     struct finding *finding) {
    finding_see(finding, "%s: %.4g GB %s in %.4g ms, %.3g TB/s of %.4g TB/s (%.0f %%)",
                phase->phase->name, phase->bytes / 1e9, phase->counters ? "counted" : "modelled",
                phase->time_ns / 1e6, rate(phase), roof(context),
                phase->memory_ns / phase->time_ns * 100);
}

bool rule_memory_at_roof(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (!phase_matters(context, phase) || !memory_bound(phase) ||
            phase->memory_ns < RULE_AT_ROOF * phase->time_ns)
            continue;
        finding->ns += fmax(0, phase->time_ns - least_ns(context, phase));
        see_rate(context, phase, finding);
    }
    return finding->seen[0] != '\0';
}

bool rule_memory_under_roof(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        double share = phase->memory_ns / phase->time_ns;
        if (!phase_matters(context, phase) || !memory_bound(phase) || share >= RULE_AT_ROOF ||
            share < least_memory_share)
            continue;
        finding->ns += phase->time_ns - phase->memory_ns;
        see_rate(context, phase, finding);
        double hit = metric_value(phase->counters, "lts__t_sector_hit_rate.pct");
        if (!isnan(hit))
            finding_see(finding, "L2 hit rate %.0f %%", hit);
    }
    return finding->seen[0] != '\0';
}

bool rule_extra_bytes(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (!phase_matters(context, phase) || !phase->counters || isnan(phase->model_bytes) ||
            !(phase->bytes > extra_share * phase->model_bytes))
            continue;
        double saved_ns = phase->roof_ns - least_ns(context, phase);
        /* Bytes that hide behind the tensor pipe cost nothing. */
        if (!memory_bound(phase) || !(saved_ns > 0))
            continue;
        finding->ns += fmin(saved_ns, phase->time_ns);
        finding_see(finding, "%s: %.4g GB counted, %.4g GB by its model (%.2fx)",
                    phase->phase->name, phase->bytes / 1e9, phase->model_bytes / 1e9,
                    phase->bytes / phase->model_bytes);
    }
    return finding->seen[0] != '\0';
}

/* Whether the phase only moves rows: every part of its name is route, gather or combine. */
static bool moves_rows_only(const char *name) {
    char copy[64], *rest = copy;

    snprintf(copy, sizeof copy, "%s", name);
    for (char *part; (part = strsep(&rest, "+"));)
        if (strcmp(part, "gather") != 0 && strcmp(part, "combine") != 0 &&
            strcmp(part, "route") != 0)
            return false;
    return true;
}

/* The tokens must be read and the output written whatever a kernel does. */
static double compulsory_ns(const struct rule_context *context, const struct phase_terms *phase) {
    const struct moe_shape *shape = &context->terms->summary_case->shape;
    double tokens = 2.0 * (double)shape->batch_seq_len * (double)shape->hidden_size;
    double parts = (strstr(phase->phase->name, "gather") != NULL) +
                   (strstr(phase->phase->name, "combine") != NULL);
    return parts * tokens / context->terms->roofs.bytes_per_s * 1e9;
}

bool rule_token_traffic(const struct rule_context *context, struct finding *finding) {
    double time_ns = 0;

    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (!moves_rows_only(phase->phase->name))
            continue;
        time_ns += phase->time_ns;
        double compulsory = compulsory_ns(context, phase);
        finding->ns += fmax(0, phase->time_ns - (isnan(compulsory) ? 0 : compulsory));
        finding_see(finding, "%s %.4g ms (%.1f %% of the latency)", phase->phase->name,
                    phase->time_ns / 1e6, latency_share(context, phase->time_ns) * 100);
    }
    return latency_share(context, time_ns) >= traffic_share;
}
