/* Compares two runs case by case. */
#include "reproduction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool shares_samples(const struct record *a, const struct record *b, double *number) {
    for (size_t i = 0; i < a->case_count; i++)
        for (size_t j = 0; j < b->case_count; j++) {
            const struct record_case *x = &a->cases[i], *y = &b->cases[j];
            *number = x->number;
            if (x->number == y->number && x->sample_count > 2 &&
                x->sample_count == y->sample_count &&
                memcmp(x->samples_ns, y->samples_ns, x->sample_count * sizeof *x->samples_ns) == 0)
                return true;
        }
    return false;
}

int reproduction_comparable(const struct record *original, const struct record *again,
                            struct error *err) {
    const struct record_run *a = &original->run, *b = &again->run;
    const struct {
        const char *key, *first, *second;
    } texts[] = {
        {"suite_hash", a->suite_hash, b->suite_hash},
        {"device.name", a->device.name, b->device.name},
        {"kernel.name", a->kernel.name, b->kernel.name},
        {"kernel.value_type", a->kernel.value_type, b->kernel.value_type},
        /* A plug-in that was built again is another file. */
        {"kernel.source_hash", a->kernel.plugin ? "" : a->kernel.source_hash,
         a->kernel.plugin ? "" : b->kernel.source_hash},
    };
    double number;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].first, texts[i].second) != 0)
            return error_set(err, EXIT_FAILED, "%.200s: %s: %.80s, the entry's is %.80s",
                             again->path, texts[i].key, texts[i].second, texts[i].first);
    if (strcmp(a->started_at, b->started_at) == 0)
        return error_set(err, EXIT_FAILED, "%.200s: started_at: the entry's own: not a second run",
                         again->path);
    if (shares_samples(original, again, &number))
        return error_set(err, EXIT_FAILED,
                         "%.200s: case %g: samples_ns: the entry's own: not a second run",
                         again->path, number);
    return 0;
}

static void judge(struct reproduction *out) {
    const struct reproduction_case *worst = &out->cases[out->worst];

    if (!(fabs(out->mean_deviation) <= REPRODUCTION_MEAN_MOST))
        snprintf(out->why, sizeof out->why,
                 "the suite's mean deviates by %+.1f %%, %.0f %% is allowed",
                 100 * out->mean_deviation, 100 * REPRODUCTION_MEAN_MOST);
    else if (out->case_count == 0 || !(fabs(worst->deviation) <= REPRODUCTION_CASE_MOST))
        snprintf(out->why, sizeof out->why, "case %d deviates by %+.1f %%, %.0f %% is allowed",
                 worst->number, 100 * worst->deviation, 100 * REPRODUCTION_CASE_MOST);
    out->agrees = !out->why[0];
}

void reproduction_compare(const struct entry *entry, const struct entry *again,
                          struct reproduction *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < entry->case_count && i < SUITE_MAX_CASES; i++) {
        const struct entry_case *first = &entry->cases[i];
        const struct entry_case *second = entry_find_case(again, first->number);
        struct reproduction_case *c = &out->cases[out->case_count++];
        double again_ms = second ? second->latency_ms : NAN;
        *c = (struct reproduction_case){first->number, first->batch_seq_len, first->latency_ms,
                                        again_ms, again_ms / first->latency_ms - 1};
        if (!(fabs(c->deviation) <= fabs(out->cases[out->worst].deviation)))
            out->worst = i;
    }
    out->entry_mean_ms = entry->mean_latency_ms;
    out->again_mean_ms = again->mean_latency_ms;
    out->mean_deviation = out->again_mean_ms / out->entry_mean_ms - 1;
    judge(out);
}

void reproduction_note(const struct entry *entry, const struct entry *again,
                       const struct reproduction *reproduction, struct entry_reproduction *out) {
    const struct reproduction_case *worst = &reproduction->cases[reproduction->worst];

    snprintf(out->date, sizeof out->date, "%s", again->date);
    snprintf(out->source_hash, sizeof out->source_hash, "%s", again->kernel.source_hash);
    out->mean_deviation = reproduction->mean_deviation;
    out->worst_deviation = worst->deviation;
    out->worst_case = worst->number;
    out->same_device =
        again->device.uuid_hash[0] && strcmp(entry->device.uuid_hash, again->device.uuid_hash) == 0;
}
