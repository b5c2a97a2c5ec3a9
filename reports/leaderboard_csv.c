/* The leaderboard as CSV: one row an entry; empty fields are not known. */
#include <math.h>

#include "csv.h"
#include "escape.h"
#include "leaderboard_formats.h"

static void write_entry(FILE *file, const struct leaderboard *leaderboard,
                        const struct board *board, const struct board_entry *entry) {
    escape_csv(file, leaderboard->suite->name);
    csv_text(file, board->device);
    csv_text(file, bounds[board->bound].name);
    csv_text(file, board->baseline);
    csv_number(file, entry->rank > 0 ? entry->rank : NAN);
    csv_text(file, entry->name);
    csv_text(file, entry->kernel);
    csv_text(file, entry->status);
    csv_number(file, entry->mean_latency_ms);
    csv_number(file, entry->geomean_latency_ms);
    csv_number(file, entry->sol_score);
    csv_number(file, entry->sol_fraction);
    csv_number(file, entry->ratio_to_best);
    csv_text(file, entry->date);
    csv_text(file, entry->license);
    csv_text(file, entry->source);
    csv_text(file, entry->why[0] ? entry->why : entry->note);
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
