/* Joins phases by name over the rounds of a case, and sets each against its own bound. */
#include "phases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct record_phase *find_phase(const struct record_case *round, const char *name) {
    for (size_t i = 0; i < round->phase_count; i++)
        if (strcmp(round->phases[i].name, name) == 0)
            return &round->phases[i];
    return NULL;
}

static bool already_listed(const struct case_summary *case_summary, const char *name) {
    for (size_t i = 0; i < case_summary->phase_count; i++)
        if (strcmp(case_summary->phases[i].name, name) == 0)
            return true;
    return false;
}

/* Lists the names; how many there can be at most is the sum over the rounds. */
static int list_phases(const struct record_case *const *rounds, size_t round_count,
                       struct case_summary *case_summary, struct error *err) {
    size_t most = 0;

    for (size_t r = 0; r < round_count; r++)
        most += rounds[r]->phase_count;
    if (most == 0)
        return 0;
    case_summary->phases = calloc(most, sizeof *case_summary->phases);
    if (!case_summary->phases)
        return error_set(err, EXIT_FAILED, "out of memory for the phases of a case");
    for (size_t r = 0; r < round_count; r++) {
        for (size_t i = 0; i < rounds[r]->phase_count; i++) {
            const char *name = rounds[r]->phases[i].name;
            if (already_listed(case_summary, name))
                continue;
            struct phase_summary *phase = &case_summary->phases[case_summary->phase_count++];
            memcpy(phase->name, name, sizeof phase->name);
        }
    }
    return 0;
}

/* Iteration by iteration where the phase has a sample for each, so that the share is not blurred
 * by what changes between iterations; NaN elsewhere. */
static double median_share(const struct record_case *const *rounds, size_t round_count,
                           const char *name) {
    size_t total = 0, used = 0;

    for (size_t r = 0; r < round_count; r++)
        total += rounds[r]->sample_count;
    double *shares = malloc((total + 1) * sizeof *shares);
    if (!shares)
        return NAN;
    for (size_t r = 0; r < round_count; r++) {
        const struct record_phase *phase = find_phase(rounds[r], name);
        if (!phase || phase->sample_count != rounds[r]->sample_count)
            continue;
        for (size_t i = 0; i < phase->sample_count; i++)
            if (rounds[r]->samples_ns[i] > 0)
                shares[used++] = phase->samples_ns[i] / rounds[r]->samples_ns[i];
    }
    double median = stats_quantile(shares, used, 0.5);
    free(shares);
    return median;
}

/* The median of the rounds' gaps, as of all times; the mean of their launches. */
static int join_gaps_and_launches(const struct record_case *const *rounds, size_t round_count,
                                  struct phase_summary *phase, struct error *err) {
    double *gaps_ns = malloc((round_count + 1) * sizeof *gaps_ns);
    double launch_sum = 0;
    size_t gaps = 0, with_launches = 0;

    if (!gaps_ns)
        return error_set(err, EXIT_FAILED, "out of memory for the gaps of a phase");
    for (size_t r = 0; r < round_count; r++) {
        const struct record_phase *part = find_phase(rounds[r], phase->name);
        if (!part)
            continue;
        if (!isnan(part->gap_ns))
            gaps_ns[gaps++] = part->gap_ns;
        if (part->launch_count == 0)
            continue;
        with_launches++;
        for (size_t i = 0; i < part->launch_count; i++)
            launch_sum += part->launches[i].count;
    }
    phase->gap_ns = stats_quantile(gaps_ns, gaps, 0.5);
    phase->launch_count = with_launches > 0 ? launch_sum / (double)with_launches : NAN;
    free(gaps_ns);
    return 0;
}

static int join_latency(const struct record_case *const *rounds, size_t round_count,
                        struct phase_summary *phase, struct error *err) {
    const double **samples = calloc(round_count, sizeof *samples);
    size_t *counts = calloc(round_count, sizeof *counts);
    size_t used = 0;
    int result = -1;

    if (!samples || !counts) {
        error_set(err, EXIT_FAILED, "out of memory for the samples of a phase");
        goto done;
    }
    for (size_t r = 0; r < round_count; r++) {
        const struct record_phase *part = find_phase(rounds[r], phase->name);
        if (!part || part->sample_count == 0)
            continue;
        samples[used] = part->samples_ns;
        counts[used++] = part->sample_count;
    }
    struct stats_rounds joined = {(const double *const *)samples, counts, used};
    phase->latency_ns = stats_summarize(&joined);
    result = 0;
done:
    free(samples);
    free(counts);
    return result;
}

static void rate_phase(const struct case_summary *case_summary, const struct roofs *measured,
                       struct phase_summary *phase) {
    double seconds = phase->latency_ns.median / 1e9;

    phase->bytes_per_s = phase->flop_per_s = phase->bound_ns = phase->fraction = NAN;
    phase->work = (struct moe_work){NAN, NAN};
    if (isnan(case_summary->work.bytes))
        return;
    phase->modelled =
        moe_phase_work(phase->name, &case_summary->shape, &case_summary->routing, &phase->work);
    if (!phase->modelled) {
        phase->work = (struct moe_work){NAN, NAN};
        return;
    }
    phase->bound_ns = roofs_time_ns(measured, &phase->work);
    if (!(seconds > 0))
        return;
    phase->bytes_per_s = phase->work.bytes / seconds;
    if (phase->work.flop > 0)
        phase->flop_per_s = phase->work.flop / seconds;
    phase->fraction = phase->bound_ns / phase->latency_ns.median;
}

int join_phases(const struct record_case *const *rounds, size_t round_count,
                const struct roofs *measured, struct case_summary *case_summary,
                struct error *err) {
    if (list_phases(rounds, round_count, case_summary, err) != 0)
        return -1;
    for (size_t i = 0; i < case_summary->phase_count; i++) {
        struct phase_summary *phase = &case_summary->phases[i];
        if (join_latency(rounds, round_count, phase, err) != 0 ||
            join_gaps_and_launches(rounds, round_count, phase, err) != 0)
            return -1;
        phase->share = median_share(rounds, round_count, phase->name);
        rate_phase(case_summary, measured, phase);
    }
    return 0;
}
