/* Latency of an iteration = last end - first start of its activities. A phase's time = the union of
 * its activities' intervals. A gap is time between two activities in which nothing ran; a phase's
 * gaps are those between activities that follow each other without another phase's in between, so
 * that a phase that is opened once an expert is not charged for the other phases of the loop. */
#include "timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../core/stats.h"

/* Activities grouped by iteration, in start order: iteration i owns sorted[first[i]] to
 * sorted[first[i + 1] - 1]. */
struct groups {
    const struct activity **sorted;
    size_t *first;
};

static void free_groups(struct groups *groups) {
    free(groups->sorted);
    free(groups->first);
}

static int check_activities(const struct timeline *timeline, struct error *err) {
    for (size_t i = 0; i < timeline->count; i++) {
        const struct activity *a = &timeline->activities[i];
        if (a->iteration < 0 || a->iteration >= timeline->iterations)
            return error_set(err, EXIT_FAILED,
                             "device activity outside every iteration: %s, iteration %d of %d",
                             a->name, a->iteration, timeline->iterations);
        if (a->phase < -1 || a->phase >= timeline->phase_count)
            return error_set(err, EXIT_FAILED, "device activity in an unknown phase: %s, phase %d",
                             a->name, a->phase);
    }
    return 0;
}

static int group_by_iteration(const struct timeline *timeline, struct groups *groups,
                              struct error *err) {
    size_t iterations = (size_t)timeline->iterations;
    size_t *next = calloc(iterations + 1, sizeof *next);
    groups->first = calloc(iterations + 1, sizeof *groups->first);
    groups->sorted = calloc(timeline->count + 1, sizeof *groups->sorted);
    if (!next || !groups->first || !groups->sorted) {
        free(next);
        return error_set(err, EXIT_FAILED, "out of memory: %zu device activities", timeline->count);
    }
    for (size_t i = 0; i < timeline->count; i++)
        groups->first[timeline->activities[i].iteration + 1]++;
    for (size_t i = 0; i < iterations; i++)
        groups->first[i + 1] += groups->first[i];
    memcpy(next, groups->first, (iterations + 1) * sizeof *next);
    for (size_t i = 0; i < timeline->count; i++)
        groups->sorted[next[timeline->activities[i].iteration]++] = &timeline->activities[i];
    free(next);
    return 0;
}

struct interval_sum {
    double covered_ns; /* union of the intervals */
    double gap_ns;     /* between intervals that follow each other directly */
    double span_ns;    /* last end - first start */
};

/* All activities of a list, or those of one phase. */
static struct interval_sum sum_intervals(const struct activity *const *list, size_t count,
                                         bool any_phase, int phase) {
    struct interval_sum sum = {0};
    uint64_t first = 0, reached = 0;
    bool seen = false, adjacent = false;
    for (size_t i = 0; i < count; i++) {
        const struct activity *a = list[i];
        if (!any_phase && a->phase != phase) {
            adjacent = false;
            continue;
        }
        if (!seen)
            first = a->start_ns;
        if (!seen || a->start_ns >= reached) {
            if (adjacent)
                sum.gap_ns += (double)(a->start_ns - reached);
            sum.covered_ns += (double)(a->end_ns - a->start_ns);
            reached = a->end_ns;
        } else if (a->end_ns > reached) {
            sum.covered_ns += (double)(a->end_ns - reached);
            reached = a->end_ns;
        }
        seen = adjacent = true;
    }
    sum.span_ns = (double)(reached - first);
    return sum;
}

static bool same_launch(const struct record_launch *launch, const struct activity *a) {
    return strncmp(launch->name, a->name, sizeof launch->name - 1) == 0 &&
           launch->registers_per_thread == a->registers_per_thread &&
           launch->shared_memory_bytes == (double)a->shared_memory_bytes &&
           (isnan(launch->block[0]) ||
            (launch->block[0] == a->block[0] && launch->block[1] == a->block[1] &&
             launch->block[2] == a->block[2]));
}

/* Copies and memsets have neither grid nor block. */
static void set_dimensions(double out[3], const uint32_t in[3]) {
    for (int i = 0; i < 3; i++)
        out[i] = in[0] ? (double)in[i] : NAN;
}

static double volume(const double dimensions[3]) {
    return dimensions[0] * dimensions[1] * dimensions[2];
}

/* Adds an activity to its kind of launch. Launches that differ in their grid alone, as a loop over
 * experts has them, are one kind; the largest grid is kept. */
static int add_launch(struct record_phase *phase, const struct activity *a, struct error *err) {
    struct record_launch *launch = phase->launches;
    while (launch < phase->launches + phase->launch_count && !same_launch(launch, a))
        launch++;
    if (launch == phase->launches + phase->launch_count) {
        struct record_launch *grown =
            realloc(phase->launches, (phase->launch_count + 1) * sizeof *grown);
        if (!grown)
            return error_set(err, EXIT_FAILED, "out of memory: launches of phase %s", phase->name);
        phase->launches = grown;
        launch = &grown[phase->launch_count++];
        memset(launch, 0, sizeof *launch);
        strncpy(launch->name, a->name, sizeof launch->name - 1);
        launch->registers_per_thread = a->registers_per_thread;
        launch->shared_memory_bytes = (double)a->shared_memory_bytes;
        set_dimensions(launch->grid, a->grid);
        set_dimensions(launch->block, a->block);
    }
    double grid[3];
    set_dimensions(grid, a->grid);
    if (volume(grid) > volume(launch->grid))
        memcpy(launch->grid, grid, sizeof grid);
    launch->count++;
    return 0;
}

/* One phase over all iterations. */
static int summarize_phase(const struct timeline *timeline, const struct groups *groups, int index,
                           struct record_phase *phase, struct error *err) {
    size_t n = (size_t)timeline->iterations;
    double *gaps = calloc(n + 1, sizeof *gaps);
    int result = -1;
    const char *name = index < 0 ? TIMELINE_OTHER : timeline->phase_names[index];
    strncpy(phase->name, name, sizeof phase->name - 1);
    phase->samples_ns = calloc(n + 1, sizeof *phase->samples_ns);
    if (!gaps || !phase->samples_ns) {
        error_set(err, EXIT_FAILED, "out of memory: %zu samples of phase %s", n, name);
        goto done;
    }
    phase->sample_count = n;
    for (size_t i = 0; i < n; i++) {
        struct interval_sum sum =
            sum_intervals(groups->sorted + groups->first[i],
                          groups->first[i + 1] - groups->first[i], false, index);
        phase->samples_ns[i] = sum.covered_ns;
        gaps[i] = sum.gap_ns;
    }
    phase->gap_ns = stats_quantile(gaps, n, 0.5);
    for (size_t i = 0; i < timeline->count; i++)
        if (timeline->activities[i].phase == index &&
            add_launch(phase, &timeline->activities[i], err))
            goto done;
    for (size_t i = 0; i < phase->launch_count; i++)
        phase->launches[i].count /= (double)n;
    result = 0;
done:
    free(gaps);
    return result;
}

static int summarize_phases(const struct timeline *timeline, const struct groups *groups,
                            struct record_case *record_case, struct error *err) {
    bool other = false;
    for (size_t i = 0; i < timeline->count; i++)
        other |= timeline->activities[i].phase == -1;
    size_t count = (size_t)timeline->phase_count + other;
    record_case->phases = calloc(count + 1, sizeof *record_case->phases);
    if (!record_case->phases)
        return error_set(err, EXIT_FAILED, "out of memory: %zu phases", count);
    record_case->phase_count = count;
    for (size_t p = 0; p < count; p++) {
        int index = p < (size_t)timeline->phase_count ? (int)p : -1;
        if (summarize_phase(timeline, groups, index, &record_case->phases[p], err))
            return -1;
    }
    return 0;
}

/* Latency of each iteration, the gaps in it, and the idle share between iterations. */
static int summarize_iterations(const struct timeline *timeline, const struct groups *groups,
                                struct record_case *record_case, struct error *err) {
    size_t n = (size_t)timeline->iterations;
    double *gaps = calloc(n + 1, sizeof *gaps);
    double *samples = calloc(n + 1, sizeof *samples);
    if (!gaps || !samples) {
        free(gaps);
        free(samples);
        return error_set(err, EXIT_FAILED, "out of memory: %zu samples", n);
    }
    double busy_ns = 0.0;
    for (size_t i = 0; i < n; i++) {
        size_t count = groups->first[i + 1] - groups->first[i];
        struct interval_sum sum = sum_intervals(groups->sorted + groups->first[i], count, true, 0);
        samples[i] = sum.span_ns;
        gaps[i] = sum.span_ns - sum.covered_ns;
        busy_ns += sum.span_ns;
    }
    double wall_ns = sum_intervals(groups->sorted, groups->first[n], true, 0).span_ns;
    record_case->samples_ns = samples;
    record_case->sample_count = n;
    record_case->gap_ns = stats_quantile(gaps, n, 0.5);
    record_case->launch_count = (double)timeline->count / (double)n;
    record_case->idle_share = wall_ns > 0.0 && n > 1 ? fmax(0.0, 1.0 - busy_ns / wall_ns) : NAN;
    free(gaps);
    return 0;
}

int timeline_summarize(const struct timeline *timeline, struct record_case *record_case,
                       struct error *err) {
    struct groups groups = {0};
    int result = -1;
    if (timeline->iterations < 1)
        return error_set(err, EXIT_FAILED, "no iteration was timed");
    if (check_activities(timeline, err))
        return -1;
    if (group_by_iteration(timeline, &groups, err))
        goto done;
    if (summarize_iterations(timeline, &groups, record_case, err))
        goto done;
    result = summarize_phases(timeline, &groups, record_case, err);
done:
    free_groups(&groups);
    return result;
}
