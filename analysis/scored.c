/* Scores against the `datasheet` bound and the suite's baseline of the device. */
#include "scored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "score.h"

struct cached {
    char suite_name[64];
    char device[64];
    bool found;
    char missing[RECORD_TEXT];
    struct suite suite;
    struct baseline baseline;
};

struct scorer {
    struct cached **entries;
    size_t count;
};

struct scorer *scorer_new(void) {
    return calloc(1, sizeof(struct scorer));
}

void scorer_free(struct scorer *scorer) {
    if (!scorer)
        return;
    for (size_t i = 0; i < scorer->count; i++)
        free(scorer->entries[i]);
    free(scorer->entries);
    free(scorer);
}

/* A record's suite name goes to suite_read(), which also takes paths: a name only, so that a record
 * cannot point anywhere. */
static bool plain_name(const char *name) { return name[0] && name[0] != '.' && !strchr(name, '/'); }

static int fill(struct cached *cached, const char *device, struct error *err) {
    struct error suite_error = {0};

    if (!plain_name(cached->suite_name) ||
        suite_read(cached->suite_name, &cached->suite, &suite_error) != 0) {
        snprintf(cached->missing, sizeof cached->missing, "suite %s is not found here",
                 cached->suite_name[0] ? cached->suite_name : "(no name)");
        return 0;
    }
    cached->found = true;
    return baseline_read(&cached->suite, device, &cached->baseline, err);
}

static struct cached *look_up(struct scorer *scorer, const char *suite_name, const char *device,
                              struct error *err) {
    for (size_t i = 0; i < scorer->count; i++)
        if (strcmp(scorer->entries[i]->suite_name, suite_name) == 0 &&
            strcmp(scorer->entries[i]->device, device) == 0)
            return scorer->entries[i];
    struct cached **entries =
        realloc(scorer->entries, (scorer->count + 1) * sizeof *scorer->entries);
    struct cached *cached = calloc(1, sizeof *cached);
    if (entries)
        scorer->entries = entries;
    if (!entries || !cached) {
        free(cached);
        error_set(err, EXIT_FAILED, "out of memory for a baseline");
        return NULL;
    }
    snprintf(cached->suite_name, sizeof cached->suite_name, "%s", suite_name);
    snprintf(cached->device, sizeof cached->device, "%s", device);
    if (fill(cached, device, err) != 0) {
        free(cached);
        return NULL;
    }
    scorer->entries[scorer->count++] = cached;
    return cached;
}

static void take_baseline(const struct cached *cached, const struct summary *summary,
                          struct scored *scored) {
    const struct record_run *run = &summary->record->run;

    if (!cached->found) {
        snprintf(scored->missing, sizeof scored->missing, "%s", cached->missing);
        return;
    }
    if (strcmp(cached->suite.hash, run->suite_hash) != 0) {
        snprintf(scored->missing, sizeof scored->missing,
                 "the record was measured with another version of suite %s", run->suite_name);
        return;
    }
    if (!cached->baseline.label[0]) {
        snprintf(scored->missing, sizeof scored->missing, "suite %s has no baseline for %s",
                 run->suite_name, summary->device_short);
        return;
    }
    snprintf(scored->baseline, sizeof scored->baseline, "%s", cached->baseline.label);
    for (size_t i = 0; i < summary->case_count; i++)
        scored->t_baseline_ms[i] =
            baseline_case_ms(&cached->suite, &cached->baseline, summary->cases[i].number);
}

int score_summary(struct scorer *scorer, const struct summary *summary, struct scored *scored,
                  struct error *err) {
    size_t count = summary->case_count, used = 0;
    double sum = 0;

    memset(scored, 0, sizeof *scored);
    scored->bound = BOUND_DATASHEET;
    scored->mean_score = NAN;
    struct cached *cached =
        look_up(scorer, summary->record->run.suite_name, summary->device_short, err);
    if (!cached)
        return -1;
    scored->t_baseline_ms = malloc((count + 1) * sizeof(double));
    scored->score = malloc((count + 1) * sizeof(double));
    if (!scored->t_baseline_ms || !scored->score) {
        scored_free(scored);
        return error_set(err, EXIT_FAILED, "out of memory for the scores of a record");
    }
    for (size_t i = 0; i < count; i++)
        scored->t_baseline_ms[i] = scored->score[i] = NAN;
    take_baseline(cached, summary, scored);
    for (size_t i = 0; i < count; i++) {
        const struct case_summary *c = &summary->cases[i];
        scored->score[i] = sol_score(c->latency_ns.median / 1e6, c->bound_ns[scored->bound] / 1e6,
                                     scored->t_baseline_ms[i]);
        if (!case_has_latency(c))
            continue;
        sum += scored->score[i];
        used++;
    }
    if (used > 0)
        scored->mean_score = sum / (double)used;
    return 0;
}

void scored_free(struct scored *scored) {
    free(scored->t_baseline_ms);
    free(scored->score);
    memset(scored, 0, sizeof *scored);
}
