/* Collects pairs of moments and compares them with samples. */
#include "parent_clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void parent_clock_settle(void (*mark)(void *self, bool end), void *mark_self) {
    for (int i = 0; i < PARENT_CLOCK_SETTLE_TRIES; i++) {
        double begin_s = now_s(), written_s;
        mark(mark_self, false);
        written_s = now_s();
        while (now_s() < written_s + PARENT_CLOCK_SETTLE_S)
            ;
        if (now_s() < begin_s + PARENT_CLOCK_SETTLE_MOST_S)
            return;
    }
}

void parent_clock_reset(struct parent_clock *clock) {
    clock->count = 0;
    clock->open = clock->misused = false;
}

void parent_clock_free(struct parent_clock *clock) {
    free(clock->spans_s);
    *clock = (struct parent_clock){0};
}

static bool grow(struct parent_clock *clock) {
    size_t capacity = clock->capacity ? 2 * clock->capacity : 64;
    double *grown = realloc(clock->spans_s, capacity * sizeof *grown);
    if (!grown)
        return false;
    clock->spans_s = grown;
    clock->capacity = capacity;
    return true;
}

void parent_clock_mark(struct parent_clock *clock, bool end, double at_s) {
    if ((end && !clock->open) || (clock->count == clock->capacity && !grow(clock))) {
        clock->misused = true;
        return;
    }
    clock->open = !end;
    if (end)
        clock->spans_s[clock->count++] = at_s - clock->begun_s - PARENT_CLOCK_SETTLE_S;
    else
        clock->begun_s = at_s;
}

/* One iteration, as both saw it. */
struct pair {
    double parent_s, worker_s;
};

static int compare_pairs(const void *left, const void *right) {
    const struct pair *a = left, *b = right;
    double x = fabs(a->parent_s - a->worker_s), y = fabs(b->parent_s - b->worker_s);
    return (x > y) - (x < y);
}

/* The half that agrees best, summed up. */
static struct pair sum_best(struct pair *pairs, size_t count) {
    struct pair sum = {0, 0};
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < (count + 1) / 2; i++) {
        sum.parent_s += pairs[i].parent_s;
        sum.worker_s += pairs[i].worker_s;
    }
    return sum;
}

enum parent_clock_verdict parent_clock_judge(const struct parent_clock *clock,
                                             struct record_case *record_case, char *reason) {
    size_t count = record_case->sample_count, half = (count + 1) / 2;
    if (clock->misused || clock->open || clock->count != count || count == 0) {
        snprintf(reason, RECORD_TEXT,
                 "the worker sent %zu samples, but the parent's clock saw %zu timed iterations",
                 count, clock->count);
        return PARENT_CLOCK_MISSING;
    }
    struct pair *pairs = malloc(count * sizeof *pairs);
    if (!pairs) {
        snprintf(reason, RECORD_TEXT, "out of memory for the parent's clock");
        return PARENT_CLOCK_MISSING;
    }
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct pair){clock->spans_s[i], 1e-9 * record_case->samples_ns[i]};
    struct pair sum = sum_best(pairs, count);
    free(pairs);
    double launches = isnan(record_case->launch_count) ? 0 : record_case->launch_count;
    double slack_s = PARENT_CLOCK_ONCE_S +
                     (double)half * (PARENT_CLOCK_SLACK_S + launches * PARENT_CLOCK_LAUNCH_S);
    double difference_s = fabs(sum.parent_s - sum.worker_s);
    record_case->parent_clock_ratio = sum.worker_s > 0 ? fmax(0, sum.parent_s / sum.worker_s) : NAN;
    if (difference_s <= PARENT_CLOCK_SHARE * sum.parent_s + slack_s)
        return PARENT_CLOCK_AGREES;
    snprintf(reason, RECORD_TEXT,
             "the parent's clock saw %.4g ms an iteration where the samples say %.4g ms "
             "(%.0f %% may differ)",
             1e3 * sum.parent_s / (double)half, 1e3 * sum.worker_s / (double)half,
             100 * PARENT_CLOCK_SHARE);
    return PARENT_CLOCK_DIFFERS;
}
