/* Timed iterations on the CPU. Latency is the wall time of the kernel's run() on cold caches; the
 * sample of a phase is the sum of the intervals in which it was open in that iteration. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_session.h"

/* Samples while they are taken; phase p's are at phases[p * capacity]. */
struct samples {
    size_t capacity, count;
    double *span_ns;
    double *phases;
};

/* Warm-ups may use this share of the budget. */
static const double warmup_share = 0.25;

static int iterate(struct backend_session *session, const struct measure_options *options,
                   uint64_t draw, double *span_ns, struct error *err) {
    if (!options->back_to_back) {
        cpu_session_redraw(session, draw);
        cpu_session_flush(session);
    }
    return cpu_session_run(session, span_ns, err);
}

static bool spent(const struct measure_options *options, double begin_ns, double share) {
    return options->budget_s > 0 && cpu_now_ns() - begin_ns > 1e9 * options->budget_s * share;
}

static int warm_up(struct backend_session *session, const struct measure_options *options,
                   double begin_ns, struct record_case *record_case, struct error *err) {
    int done = 0;
    double span_ns;
    for (; done < options->warmup_count; done++) {
        if (done > 0 && spent(options, begin_ns, warmup_share))
            break;
        if (iterate(session, options, (uint64_t)done + 1, &span_ns, err))
            return -1;
    }
    record_case->warmup_count = done;
    return 0;
}

static int take_samples(struct backend_session *session, const struct measure_options *options,
                        double begin_ns, struct samples *samples, struct error *err) {
    while (samples->count < samples->capacity) {
        size_t i = samples->count;
        if ((int64_t)i >= options->sample_min && spent(options, begin_ns, 1.0))
            return 0;
        if (iterate(session, options, (uint64_t)i + 1, &samples->span_ns[i], err))
            return -1;
        for (int p = 0; p < session->clock.count; p++)
            samples->phases[(size_t)p * samples->capacity + i] = session->clock.open_ns[p];
        samples->count++;
    }
    return 0;
}

static void free_phases(struct record_phase *phases, size_t count) {
    for (size_t p = 0; phases && p < count; p++)
        free(phases[p].samples_ns);
    free(phases);
}

/* Hands the samples over to the record's case, an array of its own for each phase. */
static int fill_phases(const struct cpu_clock *clock, const struct samples *samples,
                       struct record_case *record_case, struct error *err) {
    size_t count = (size_t)clock->count, bytes = samples->count * sizeof(double);
    struct record_phase *phases = calloc(count ? count : 1, sizeof *phases);
    if (!phases)
        return error_set(err, EXIT_FAILED, "out of memory for the phases of a case");
    for (size_t p = 0; p < count; p++) {
        snprintf(phases[p].name, sizeof phases[p].name, "%s", clock->names[p]);
        phases[p].gap_ns = NAN;
        phases[p].sample_count = samples->count;
        phases[p].samples_ns = malloc(bytes ? bytes : 1);
        if (!phases[p].samples_ns) {
            free_phases(phases, count);
            return error_set(err, EXIT_FAILED, "out of memory for the samples of a phase");
        }
        memcpy(phases[p].samples_ns, samples->phases + p * samples->capacity, bytes);
    }
    record_case->phases = phases;
    record_case->phase_count = count;
    return 0;
}

int cpu_session_measure(struct backend_session *session, const struct measure_options *options,
                        struct record_case *record_case, struct error *err) {
    struct samples samples = {.capacity =
                                  options->sample_count > 0 ? (size_t)options->sample_count : 0};
    size_t room = samples.capacity ? samples.capacity : 1;
    int status = -1;
    samples.span_ns = malloc(room * sizeof(double));
    samples.phases = calloc(CPU_MAX_PHASES * room, sizeof(double));
    if (!samples.span_ns || !samples.phases) {
        error_set(err, EXIT_FAILED, "out of memory for %zu samples", samples.capacity);
        goto done;
    }
    if (options->back_to_back)
        cpu_session_redraw(session, 1);
    double begin_ns = cpu_now_ns(), busy_ns = 0;
    if (warm_up(session, options, begin_ns, record_case, err))
        goto done;
    double timed_ns = cpu_now_ns();
    if (take_samples(session, options, begin_ns, &samples, err))
        goto done;
    timed_ns = cpu_now_ns() - timed_ns;
    if (fill_phases(&session->clock, &samples, record_case, err))
        goto done;

    for (size_t i = 0; i < samples.count; i++)
        busy_ns += samples.span_ns[i];
    record_case->idle_share = samples.count ? 1.0 - busy_ns / timed_ns : NAN;
    record_case->samples_ns = samples.span_ns;
    record_case->sample_count = samples.count;
    samples.span_ns = NULL;
    status = 0;
done:
    free(samples.span_ns);
    free(samples.phases);
    return status;
}
