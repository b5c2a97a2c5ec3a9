/* Timed iterations on the CPU. Latency is the wall time of the kernel's run() on cold caches; the
 * sample of a phase is the sum of the intervals in which it was open in that iteration. Outputs of
 * some iterations, chosen in secret, are kept and checked once all are timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_watch.h"
#include "cpu_session.h"
#include "parent_clock.h"

/* Samples while they are taken; phase p's are at phases[p * capacity]. */
struct samples {
    size_t capacity, count;
    double *span_ns;
    double *phases;
};

/* Warm-ups may use this share of the budget. */
static const double warmup_share = 0.25;

/* Outputs of the iterations that are checked in the end, each a copy taken right after its run. */
struct kept {
    struct checked_iterations checked;
    moe_half *outputs[CHECKED_ITERATIONS];
};

/* What the series have in common. */
struct series {
    struct backend_session *session;
    const struct measure_options *options;
    struct iteration iteration; /* the one at hand */
    struct kept kept;
};

/* One run, with a line before and after it for who else has a clock. */
static int run_marked(struct series *series, double *span_ns, struct error *err) {
    const struct measure_options *options = series->options;
    bool marked = options->mark && !options->back_to_back;
    if (marked)
        parent_clock_settle(options->mark, options->mark_self);
    int result = cpu_session_run(series->session, span_ns, err);
    if (marked)
        options->mark(options->mark_self, true);
    return result;
}

/* Back to back, only the last output is there to be checked. */
static void keep_output(struct series *series) {
    struct checked_iterations *checked = &series->kept.checked;
    size_t bytes = cpu_session_output_elements(series->session) * sizeof(moe_half);
    if (series->options->back_to_back) {
        checked->index[0] = checked->seen++;
        checked->made[0] = series->iteration;
        checked->count = 1;
        return;
    }
    int slot = checked_iterations_take(checked, &series->iteration);
    if (slot >= 0)
        memcpy(series->kept.outputs[slot], series->session->call.output, bytes);
}

static int check_allocation(const struct backend_session *session, struct error *err) {
    if (session->allocated_bytes <= ALLOCATION_WATCH_FREE_BYTES)
        return 0;
    return error_set(err, EXIT_FAILED,
                     "kernel %s allocates memory in a timed run: %llu bytes; a kernel's memory "
                     "must come from call->workspace",
                     session->kernel->name, (unsigned long long)session->allocated_bytes);
}

static int iterate(struct series *series, bool timed, double *span_ns, struct error *err) {
    struct backend_session *session = series->session;
    struct cpu_seal seal;
    if (!series->options->back_to_back) {
        series->iteration =
            iteration_secret(&session->inputs.routing, session->inputs.seed,
                             session->call.shape.batch_seq_len, session->experts_hit);
        cpu_session_redraw(session, &series->iteration);
        cpu_seal_inputs(session, &seal);
        cpu_session_flush(session);
    }
    /* Whether a run is checked is decided after it, so warm-ups need no marks to look alike. */
    if (timed ? run_marked(series, span_ns, err) : cpu_session_run(session, span_ns, err))
        return -1;
    if (timed)
        keep_output(series);
    if (timed && check_allocation(session, err))
        return -1;
    if (cpu_glimpse_check(session, err))
        return -1;
    return series->options->back_to_back ? 0 : cpu_seal_check(session, &seal, err);
}

static bool spent(const struct measure_options *options, double begin_ns, double share) {
    return options->budget_s > 0 && cpu_now_ns() - begin_ns > 1e9 * options->budget_s * share;
}

static int warm_up(struct series *series, double begin_ns, struct record_case *record_case,
                   struct error *err) {
    const struct measure_options *options = series->options;
    int done = 0;
    double span_ns;
    for (; done < options->warmup_count; done++) {
        if (done > 0 && spent(options, begin_ns, warmup_share))
            break;
        if (iterate(series, false, &span_ns, err))
            return -1;
    }
    record_case->warmup_count = done;
    return 0;
}

static int take_samples(struct series *series, double begin_ns, struct samples *samples,
                        struct error *err) {
    const struct cpu_clock *clock = &series->session->clock;
    while (samples->count < samples->capacity) {
        size_t i = samples->count;
        if ((int64_t)i >= series->options->sample_min && spent(series->options, begin_ns, 1.0))
            return 0;
        if (iterate(series, true, &samples->span_ns[i], err))
            return -1;
        for (int p = 0; p < clock->count; p++)
            samples->phases[(size_t)p * samples->capacity + i] = clock->open_ns[p];
        samples->count++;
    }
    return 0;
}

/* The inputs of each kept iteration are made again, from its draw, for the oracle. */
static int check_kept(struct series *series, struct record_case *record_case, struct error *err) {
    struct backend_session *session = series->session;
    const struct checked_iterations *checked = &series->kept.checked;
    if (series->options->back_to_back && checked->count)
        memcpy(series->kept.outputs[0], session->call.output,
               cpu_session_output_elements(session) * sizeof(moe_half));
    if (cpu_weights_check(session, err))
        return -1;
    for (int i = 0; i < checked->count; i++) {
        struct record_correctness one = {0};
        double atol;
        cpu_session_redraw(session, &checked->made[i]);
        if (cpu_verify(session, series->kept.outputs[i], &atol, &one, err))
            return -1;
        checked_iterations_join(&record_case->timed_correctness, &one);
    }
    cpu_session_restore_weights(session);
    checked_iterations_record(checked, record_case);
    return 0;
}

static int make_kept(struct series *series, struct error *err) {
    size_t bytes = cpu_session_output_elements(series->session) * sizeof(moe_half);
    for (int i = 0; i < CHECKED_ITERATIONS; i++) {
        series->kept.outputs[i] = malloc(bytes);
        if (!series->kept.outputs[i])
            return error_set(err, EXIT_FAILED, "out of memory for outputs to be checked");
        memset(series->kept.outputs[i], 0, bytes); /* pages are there before the timed part */
    }
    return 0;
}

static void free_kept(struct kept *kept) {
    for (int i = 0; i < CHECKED_ITERATIONS; i++)
        free(kept->outputs[i]);
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

static int make_samples(const struct measure_options *options, struct samples *samples,
                        struct error *err) {
    samples->capacity = options->sample_count > 0 ? (size_t)options->sample_count : 0;
    size_t room = samples->capacity ? samples->capacity : 1;
    samples->span_ns = malloc(room * sizeof(double));
    samples->phases = calloc(CPU_MAX_PHASES * room, sizeof(double));
    if (samples->span_ns && samples->phases)
        return 0;
    return error_set(err, EXIT_FAILED, "out of memory for %zu samples", samples->capacity);
}

int cpu_session_measure(struct backend_session *session, const struct measure_options *options,
                        struct record_case *record_case, struct error *err) {
    struct samples samples = {0};
    struct series series = {.session = session, .options = options};
    int status = -1;
    series.iteration = iteration_secret(&session->inputs.routing, session->inputs.seed,
                                        session->call.shape.batch_seq_len, session->experts_hit);
    if (make_samples(options, &samples, err) || make_kept(&series, err))
        goto done;
    if (options->back_to_back)
        cpu_session_redraw(session, &series.iteration);
    double begin_ns = cpu_now_ns(), busy_ns = 0;
    if (warm_up(&series, begin_ns, record_case, err))
        goto done;
    double timed_ns = cpu_now_ns();
    if (take_samples(&series, begin_ns, &samples, err))
        goto done;
    timed_ns = cpu_now_ns() - timed_ns;
    if (check_kept(&series, record_case, err) ||
        fill_phases(&session->clock, &samples, record_case, err))
        goto done;

    for (size_t i = 0; i < samples.count; i++)
        busy_ns += samples.span_ns[i];
    /* A clock that a kernel patched may say anything: the parent judges it. */
    record_case->idle_share = samples.count ? fmax(0.0, 1.0 - busy_ns / timed_ns) : NAN;
    record_case->samples_ns = samples.span_ns;
    record_case->sample_count = samples.count;
    samples.span_ns = NULL;
    status = 0;
done:
    free_kept(&series.kept);
    free(samples.span_ns);
    free(samples.phases);
    return status;
}
