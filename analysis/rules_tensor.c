/* Rules about the tensor pipe: at its roof, under it, busy in vain, held back by power. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rules_all.h"

static const double cost_share = 0.01; /* of the latency, from which a step is told */
static const double least_tensor_share = 0.25;
static const double clock_share = 0.95; /* of the highest clock seen */
static const double power_share = 0.97; /* of the limit */

/* A slower instruction keeps the pipe busy for at least this much longer; less than that is the
 * clock of the counter run against that of the roof. */
static const double slower_share = 1.10;

static double pipe_percent(const struct phase_terms *phase) {
    return metric_value(phase->counters,
                        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed");
}

/* Of the roof that a phase reaches: by time, or by how busy the pipe was while counted, whatever
 * its clock. */
static double tensor_share(const struct phase_terms *phase) {
    return fmax(phase->tensor_ns / phase->time_ns, pipe_percent(phase) / 100);
}

static void see_rate(const struct rule_context *context, const struct phase_terms *phase,
                     struct finding *finding) {
    double busy = metric_value(phase->counters,
                               "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed");
    char roof[32] = "";

    if (context->terms->roofs.flop_per_s > 0)
        snprintf(roof, sizeof roof, " of %.4g", context->terms->roofs.flop_per_s / 1e12);
    finding_see(finding, "%s: %.4g TFLOP in %.4g ms, %.4g TFLOP/s%s", phase->phase->name,
                phase->phase->work.flop / 1e12, phase->time_ns / 1e6,
                phase->phase->work.flop / phase->time_ns / 1e3, roof);
    if (!isnan(busy))
        finding_see(finding, "tensor pipe active %.0f %%", busy);
}

bool rule_tensor_at_roof(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (!phase_matters(context, phase) || !tensor_bound(phase) ||
            tensor_share(phase) < RULE_AT_ROOF)
            continue;
        finding->ns += fmax(0, phase->time_ns - fmax(phase->math_ns, phase->memory_ns));
        see_rate(context, phase, finding);
    }
    return finding->seen[0] != '\0';
}

bool rule_tensor_under_roof(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        double share = tensor_share(phase);
        if (!phase_matters(context, phase) || !tensor_bound(phase) || share >= RULE_AT_ROOF ||
            share < least_tensor_share)
            continue;
        finding->ns += phase->time_ns - phase->tensor_ns;
        see_rate(context, phase, finding);
    }
    return finding->seen[0] != '\0';
}

static double step_ns(const struct rule_context *context, enum waterfall_step step) {
    double ns = context->waterfall->steps[step].ns;
    return isnan(ns) ? 0 : ns;
}

/* By phase, so that padding that shows only in a compute-bound phase of a memory-bound case is
 * found too. */
bool rule_padding(const struct rule_context *context, struct finding *finding) {
    const struct case_terms *terms = context->terms;
    double math_ns = 0, padded_ns = 0;
    bool counted = false;

    for (size_t i = 0; i < terms->phase_count; i++) {
        const struct phase_terms *phase = &terms->phases[i];
        finding->ns +=
            fmax(phase->memory_ns, phase->padded_ns) - fmax(phase->memory_ns, phase->math_ns);
        math_ns += phase->math_ns;
        padded_ns += phase->padded_ns;
        counted |= phase->flop_counted;
    }
    finding->ns = fmax(finding->ns, step_ns(context, STEP_PADDING));
    if (!(padded_ns > math_ns))
        return false;
    finding_see(finding, "%.2f times the operations of the %.0f valid rows, %s",
                padded_ns / math_ns, (double)terms->summary_case->routing.valid_slots,
                counted ? "by counters" : "by the kernel's own account");
    return latency_share(context, finding->ns) >= cost_share;
}

bool rule_tensor_instructions(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        double cost_ns =
            fmax(phase->memory_ns, phase->tensor_ns) - fmax(phase->memory_ns, phase->padded_ns);
        if (!phase_matters(context, phase) || !(cost_ns > 0) ||
            !(phase->tensor_ns > slower_share * phase->padded_ns))
            continue;
        finding->ns += cost_ns;
        finding_see(finding,
                    "%s: tensor pipe busy for %.4g ms, its operations take %.4g ms at the roof",
                    phase->phase->name, phase->tensor_ns / 1e6, phase->padded_ns / 1e6);
    }
    return latency_share(context, finding->ns) >= cost_share;
}

/* A phase that DRAM holds back gains nothing from a higher SM clock. */
bool rule_power_cap(const struct rule_context *context, struct finding *finding) {
    const struct case_terms *terms = context->terms;
    const struct record_telemetry *telemetry = &terms->summary_case->telemetry;
    double limit_w = terms->summary->record->run.device.power_limit_w;
    bool said = strstr(telemetry->throttle_reasons, "power") != NULL;

    if (!said && !(telemetry->power_w_median >= power_share * limit_w))
        return false;
    if (isinf(terms->highest_mhz) || !(terms->timed_mhz < clock_share * terms->highest_mhz))
        return false;
    for (size_t i = 0; i < terms->phase_count; i++) {
        const struct phase_terms *phase = &terms->phases[i];
        double gain_ns = phase->time_ns * (1 - terms->timed_mhz / terms->highest_mhz);
        finding->ns += fmax(0, fmin(gain_ns, phase->time_ns - phase->memory_ns));
    }
    finding_see(finding, "SM clock %.0f MHz, %.0f MHz seen at most (%.0f %%)", terms->timed_mhz,
                terms->highest_mhz, terms->timed_mhz / terms->highest_mhz * 100);
    if (!isnan(telemetry->power_w_median) && !isnan(limit_w))
        finding_see(finding, "%.0f W of a limit of %.0f W", telemetry->power_w_median, limit_w);
    if (said)
        finding_see(finding, "throttle reasons: %.120s", telemetry->throttle_reasons);
    return true;
}
