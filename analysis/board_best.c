/* Builds the leaderboard of a record's suite and takes its first entry. */
#include "board_best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "leaderboard.h"

static void take_first(const struct leaderboard *leaderboard, struct board_best *best) {
    for (size_t b = 0; b < leaderboard->board_count; b++) {
        const struct board *board = &leaderboard->boards[b];
        for (size_t i = 0; board->bound == BOUND_DATASHEET && i < board->entry_count; i++) {
            const struct board_entry *entry = &board->entries[i];
            if (entry->rank != 1 || !isnan(best->mean_latency_ms))
                continue;
            best->mean_latency_ms = entry->mean_latency_ms;
            snprintf(best->kernel, sizeof best->kernel, "%s", entry->kernel);
            snprintf(best->name, sizeof best->name, "%s", entry->name);
            snprintf(best->date, sizeof best->date, "%s", entry->date);
        }
    }
}

/* A record cannot point anywhere: only a plain name is looked up. */
static bool read_suite(const struct record_run *run, struct suite *suite, struct board_best *best) {
    const char *name = run->suite_name;
    struct error err = {0};

    if (!name[0] || name[0] == '.' || strchr(name, '/') || suite_read(name, suite, &err) != 0) {
        snprintf(best->missing, sizeof best->missing, "suite %.100s is not found here",
                 name[0] ? name : "(no name)");
        return false;
    }
    if (strcmp(suite->hash, run->suite_hash) != 0) {
        snprintf(best->missing, sizeof best->missing,
                 "the record was measured with another version of suite %.100s", name);
        return false;
    }
    return true;
}

int board_best_find(const struct summary *summary, struct board_best *best, struct error *err) {
    const struct leaderboard_options options = {.device = summary->device_short};
    struct suite *suite = malloc(sizeof *suite);
    struct leaderboard leaderboard;
    int result = 0;

    *best = (struct board_best){.mean_latency_ms = NAN};
    if (!suite)
        return error_set(err, EXIT_FAILED, "out of memory for a suite");
    if (read_suite(&summary->record->run, suite, best)) {
        result = leaderboard_build(suite, &options, &leaderboard, err);
        if (result == 0) {
            take_first(&leaderboard, best);
            leaderboard_free(&leaderboard);
            if (isnan(best->mean_latency_ms))
                snprintf(best->missing, sizeof best->missing,
                         "the leaderboard has no ranked entry on %s yet", summary->device_short);
        }
    }
    free(suite);
    return result;
}
