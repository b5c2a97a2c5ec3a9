/* Rules about launches: gaps between them, grids that do not fill the device, uneven work. */
#include <math.h>
#include <string.h>

#include "rules_all.h"

static const double gap_share = 0.02; /* of the latency */
static const double idle_share = 0.02;
static const double skew_least = 2;      /* largest expert over the mean */
static const double skew_deviations = 6; /* and this many deviations of a random routing */
/* Of the SM's slots. Kernels that copy asynchronously do well with 8 to 12 warps of 64. */
static const double few_warps_percent = 15;
static const double far_share = 0.25; /* of the roof */

bool rule_launch_bound(const struct rule_context *context, struct finding *finding) {
    const struct case_summary *c = context->terms->summary_case;

    if (!(latency_share(context, c->gap_ns) >= gap_share))
        return false;
    finding->ns = c->gap_ns;
    finding_see(finding, "nothing runs for %.4g ms of %.4g ms (%.1f %%)", c->gap_ns / 1e6,
                context->waterfall->latency_ns / 1e6, latency_share(context, c->gap_ns) * 100);
    if (!isnan(c->launch_count))
        finding_see(finding, "%.0f launches, %.3g us apart on average", c->launch_count,
                    c->gap_ns / 1e3 / fmax(1, c->launch_count - 1));
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_summary *phase = context->terms->phases[i].phase;
        if (phase->gap_ns > c->gap_ns / 4)
            finding_see(finding, "%.4g ms of it inside %s", phase->gap_ns / 1e6, phase->name);
    }
    return true;
}

/* What the uneven work can cost: the time SMs are idle, by counters; where there are none, what the
 * largest expert takes longer than the mean, in phases that compute. */
static double uneven_ns(const struct phase_terms *phase, double largest_over_mean) {
    if (!isnan(phase->idle_ns) && !phase->idle_by_grid)
        return phase->idle_ns;
    if (!(phase->math_ns > 0) || phase->counters)
        return 0;
    return fmax(
        0, fmin(phase->time_ns - phase->roof_ns, phase->time_ns * (1 - 1 / largest_over_mean)));
}

static bool is_skewed(const struct case_summary *c, double *mean) {
    *mean = (double)c->routing.valid_slots / (double)c->shape.num_experts;
    double largest = (double)c->routing.rows_max;

    return c->routing.rows_max > 0 && *mean > 0 && largest >= skew_least * *mean &&
           largest > *mean + skew_deviations * sqrt(*mean);
}

bool rule_skewed_routing(const struct rule_context *context, struct finding *finding) {
    const struct case_summary *c = context->terms->summary_case;
    double mean;

    if (!is_skewed(c, &mean))
        return false;
    for (size_t i = 0; i < context->terms->phase_count; i++)
        finding->ns += uneven_ns(&context->terms->phases[i], (double)c->routing.rows_max / mean);
    finding_see(finding, "rows of an expert: mean %.4g, largest %lld (%.1fx); %lld of %lld hit",
                mean, (long long)c->routing.rows_max, (double)c->routing.rows_max / mean,
                (long long)c->routing.experts_hit, (long long)c->shape.num_experts);
    return true;
}

static bool is_small(const struct rule_context *context, const struct phase_terms *phase) {
    return phase->blocks < context->terms->summary->record->run.device.sm_count;
}

bool rule_small_grid(const struct rule_context *context, struct finding *finding) {
    double sms = context->terms->summary->record->run.device.sm_count;

    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        double lost_ns =
            fmin(phase->time_ns * (1 - phase->blocks / sms), phase->time_ns - phase->roof_ns);
        if (!phase_matters(context, phase) || !is_small(context, phase) || !(lost_ns > 0))
            continue;
        finding->ns += lost_ns;
        finding_see(finding, "%s: %.0f block%s for %.0f SMs", phase->phase->name, phase->blocks,
                    phase->blocks == 1 ? "" : "s", sms);
    }
    return finding->seen[0] != '\0';
}

bool rule_tail(const struct rule_context *context, struct finding *finding) {
    double mean;

    /* The skewed routing is told by its own rule. */
    if (is_skewed(context->terms->summary_case, &mean))
        return false;
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (!phase_matters(context, phase) || is_small(context, phase) || !(phase->idle_ns > 0))
            continue;
        finding->ns += phase->idle_ns;
        if (latency_share(context, phase->idle_ns) < RULE_LEAST_SHARE)
            continue;
        finding_see(finding, "%s: the average SM idle for %.4g of %.4g ms%s", phase->phase->name,
                    phase->idle_ns / 1e6, phase->time_ns / 1e6,
                    phase->idle_by_grid ? " (by its grid)" : "");
        if (!isnan(phase->blocks) && !isnan(phase->resident_blocks))
            finding_see(finding, "%.0f blocks, %.0f fit at once", phase->blocks,
                        phase->resident_blocks);
    }
    return finding->seen[0] != '\0' && latency_share(context, finding->ns) >= idle_share;
}

/* wgmma works from shared memory, which TMA fills: a block of two or three warpgroups is meant to
 * be all that an SM holds. */
static bool uses_wgmma(const struct phase_terms *phase) {
    size_t index = 0;
    char reason[96];
    double warps;

    while (next_stall(phase->counters, &index, reason, sizeof reason, &warps))
        if (strcmp(reason, "gmma") == 0 && warps > 0)
            return true;
    return false;
}

bool rule_low_occupancy(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        double warps =
            metric_value(phase->counters, "sm__warps_active.avg.pct_of_peak_sustained_active");
        bool counted = !isnan(warps);
        if (!counted)
            warps = phase->resident_threads * 100;
        if (!phase_matters(context, phase) || !(warps < few_warps_percent) || uses_wgmma(phase) ||
            phase->roof_ns >= RULE_AT_ROOF * phase->time_ns)
            continue;
        finding->ns += phase->time_ns - phase->roof_ns;
        finding_see(finding, "%s: %.0f %% of the SM's warps %s", phase->phase->name, warps,
                    counted ? "active" : "fit");
        if (phase->launch && !isnan(phase->resident_blocks))
            finding_see(finding, "%.0f registers a thread, %.0f KiB shared memory a block",
                        phase->launch->registers_per_thread,
                        phase->launch->shared_memory_bytes / 1024);
    }
    return finding->seen[0] != '\0';
}

bool rule_far_below(const struct rule_context *context, struct finding *finding) {
    for (size_t i = 0; i < context->terms->phase_count; i++) {
        const struct phase_terms *phase = &context->terms->phases[i];
        if (!phase_matters(context, phase) || !(phase->roof_ns > 0) ||
            phase->roof_ns >= far_share * phase->time_ns)
            continue;
        finding->ns += phase->time_ns - phase->roof_ns;
        finding_see(finding, "%s: %.4g ms, %.4g ms at its roof (%.1f %%)", phase->phase->name,
                    phase->time_ns / 1e6, phase->roof_ns / 1e6,
                    phase->roof_ns / phase->time_ns * 100);
    }
    return finding->seen[0] != '\0';
}
