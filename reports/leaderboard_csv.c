/* The leaderboard as CSV: one row an entry; empty fields are not known. */
#include <math.h>

#include "escape.h"
#include "leaderboard_formats.h"

static void number(FILE *file, double value) {
    if (isnan(value))
        fputc(',', file);
    else
        fprintf(file, ",%.9g", value);
}

static void text(FILE *file, const char *value) {
    fputc(',', file);
    escape_csv(file, value);
}

static void write_entry(FILE *file, const struct leaderboard *leaderboard,
                        const struct board *board, const struct board_entry *entry) {
    escape_csv(file, leaderboard->suite->name);
    text(file, board->device);
    text(file, bounds[board->bound].name);
    text(file, board->baseline);
    number(file, entry->rank > 0 ? entry->rank : NAN);
    text(file, entry->name);
    text(file, entry->kernel);
    text(file, entry->status);
    number(file, entry->mean_latency_ms);
    number(file, entry->geomean_latency_ms);
    number(file, entry->sol_score);
    number(file, entry->sol_fraction);
    number(file, entry->ratio_to_best);
    text(file, entry->date);
    text(file, entry->license);
    text(file, entry->source);
    text(file, entry->why[0] ? entry->why : entry->note);
    fputc('\n', file);
}

static int write_csv(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    (void)one_device;
    fputs("suite,device,bound,baseline,rank,name,kernel,status,mean_latency_ms,geomean_latency_ms,"
          "sol_score,sol_fraction,ratio_to_best,date,license,source,note\n",
          file);
    for (size_t b = 0; b < leaderboard->board_count; b++)
        for (size_t i = 0; i < leaderboard->boards[b].entry_count; i++)
            write_entry(file, leaderboard, &leaderboard->boards[b],
                        &leaderboard->boards[b].entries[i]);
    return 0;
}

const struct leaderboard_format leaderboard_csv = {.name = "csv", .write = write_csv};
