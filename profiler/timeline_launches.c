/* The launches of one typical iteration, as a record's `timeline` line has them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../core/stats.h"
#include "timeline.h"

/* First start and last end of each iteration. */
struct span {
    uint64_t begin, end;
    bool any;
};

static double length_of(const struct span *span) {
    return span->any ? (double)(span->end - span->begin) : 0;
}

static void measure_spans(const struct timeline *timeline, struct span *spans) {
    for (size_t i = 0; i < timeline->count; i++) {
        const struct activity *a = &timeline->activities[i];
        struct span *span = &spans[a->iteration];
        if (!span->any || a->start_ns < span->begin)
            span->begin = a->start_ns;
        if (!span->any || a->end_ns > span->end)
            span->end = a->end_ns;
        span->any = true;
    }
}

/* The iteration whose span is nearest the median; -1: memory ran out. */
static int typical_iteration(const struct span *spans, int iterations) {
    double *lengths = calloc((size_t)iterations, sizeof *lengths);
    int nearest = 0;
    if (!lengths)
        return -1;
    for (int i = 0; i < iterations; i++)
        lengths[i] = length_of(&spans[i]);
    double median = stats_quantile(lengths, (size_t)iterations, 0.5);
    for (int i = 1; i < iterations; i++)
        if (fabs(lengths[i] - median) < fabs(lengths[nearest] - median))
            nearest = i;
    free(lengths);
    return nearest;
}

/* Index of a name in a table that grows by need; -1: memory ran out. */
static int index_of(struct record_name **names, size_t *count, const char *name) {
    char cut[sizeof(*names)->name] = "";
    strncpy(cut, name, sizeof cut - 1);
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*names)[i].name, cut) == 0)
            return (int)i;
    struct record_name *grown = realloc(*names, (*count + 1) * sizeof *grown);
    if (!grown)
        return -1;
    *names = grown;
    memcpy(grown[*count].name, cut, sizeof cut);
    return (int)(*count)++;
}

static int add_launch(const struct timeline *timeline, const struct activity *a, uint64_t begin,
                      struct record_timeline *out) {
    const char *phase = a->phase < 0 ? TIMELINE_OTHER : timeline->phase_names[a->phase];
    int kind_index = index_of(&out->kinds, &out->kind_count, a->name);
    int phase_index = index_of(&out->phases, &out->phase_count, phase);
    size_t i = out->launch_count;
    if (kind_index < 0 || phase_index < 0)
        return -1;
    out->launch_kinds[i] = kind_index;
    out->launch_phases[i] = phase_index;
    out->launch_start_ns[i] = (double)(a->start_ns - begin);
    out->launch_ns[i] = (double)(a->end_ns - a->start_ns);
    i++;
    out->launch_count = out->launch_ns_count = i;
    out->launch_kinds_count = out->launch_phases_count = i;
    return 0;
}

static int make_room(struct record_timeline *out, size_t total) {
    size_t room = (total < TIMELINE_LAUNCHES_MOST ? total : TIMELINE_LAUNCHES_MOST) + 1;
    out->launch_kinds = calloc(room, sizeof(double));
    out->launch_phases = calloc(room, sizeof(double));
    out->launch_start_ns = calloc(room, sizeof(double));
    out->launch_ns = calloc(room, sizeof(double));
    return out->launch_kinds && out->launch_phases && out->launch_start_ns && out->launch_ns ? 0
                                                                                             : -1;
}

/* Activities come in start order, so those of one iteration are in order, too. */
static int fill_launches(const struct timeline *timeline, int chosen, uint64_t begin,
                         struct record_timeline *out) {
    size_t total = 0;
    for (size_t i = 0; i < timeline->count; i++)
        total += timeline->activities[i].iteration == chosen;
    out->launch_total = (double)total;
    if (make_room(out, total))
        return -1;
    for (size_t i = 0; i < timeline->count && out->launch_count < TIMELINE_LAUNCHES_MOST; i++)
        if (timeline->activities[i].iteration == chosen &&
            add_launch(timeline, &timeline->activities[i], begin, out))
            return -1;
    return 0;
}

int timeline_launches(const struct timeline *timeline, struct record_timeline *out,
                      uint64_t *begin_ns, struct error *err) {
    int result = -1;
    if (timeline->iterations < 1)
        return error_set(err, EXIT_FAILED, "no iteration was timed");
    struct span *spans = calloc((size_t)timeline->iterations, sizeof *spans);
    if (spans) {
        measure_spans(timeline, spans);
        int chosen = typical_iteration(spans, timeline->iterations);
        if (chosen >= 0) {
            out->span_ns = length_of(&spans[chosen]);
            if (begin_ns)
                *begin_ns = spans[chosen].begin;
            result = fill_launches(timeline, chosen, spans[chosen].begin, out);
        }
    }
    free(spans);
    return result ? error_set(err, EXIT_FAILED, "out of memory: launches of an iteration") : 0;
}
