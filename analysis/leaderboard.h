/* The leaderboard of a suite: published records and reported results, one board a device and
 * bound, ranked by mean latency. */
#ifndef MOESOL_ANALYSIS_LEADERBOARD_H
#define MOESOL_ANALYSIS_LEADERBOARD_H

#include "../cases/devices.h"
#include "../cases/suite.h"
#include "../core/record.h"
#include "bounds.h"

/* Times in ms; NaN where not known. */
struct board_case {
    int number;
    double batch_seq_len;
    double latency_ms, t_sol_ms, t_baseline_ms;
    double sol_fraction, sol_score;
};

struct board_entry {
    int rank;        /* 0: not ranked */
    char why[160];   /* why not; empty if ranked */
    bool reported;   /* by its source, not measured by this tool */
    char name[64];   /* of a published entry, else who made it; empty: not known */
    char author[64]; /* empty: not known */
    char kernel[64]; /* empty: not known */
    char status[32]; /* reported, measured, reproduced, or what is the matter */
    char date[16];
    char license[64];
    char source[RECORD_TEXT];
    char note[RECORD_TEXT];
    char device_name[RECORD_TEXT]; /* exact; empty: not known */
    char record_path[1024];        /* its record; empty: none is here */
    double mean_latency_ms, geomean_latency_ms;
    double sol_fraction, sol_score; /* means over the cases */
    double ratio_to_best;           /* a reported row keeps its source's */
    /* Digits of a reported row as its source gave them; empty otherwise. */
    char latency_text[32], score_text[32], ratio_text[32];
    struct board_case *cases; /* the suite's case_count */
};

struct board {
    char device[64]; /* short name */
    enum bound_kind bound;
    char baseline[160]; /* empty: none */
    char note[160];     /* what a reader must know of the whole board; empty: nothing */
    struct board_entry *entries;
    size_t entry_count;
    size_t case_count;
};

struct leaderboard {
    const struct suite *suite; /* the caller's */
    struct board *boards;
    size_t board_count;
    const struct device_row **unmeasured; /* known devices without any entry */
    size_t unmeasured_count;
    char (*skipped)[512]; /* one line for each record that could not be read */
    size_t skipped_count;
};

struct leaderboard_options {
    const char *device;              /* short name; NULL: all that have entries */
    const char *const *record_paths; /* folders or files besides the suite's own records */
    size_t record_path_count;
};

/* Collects SUITE/reported.csv and SUITE/records: a folder with an entry.json is an entry, whose
 * record is not read; any other *.jsonl is a record that counts by itself. Returns 0, or -1 with
 * *err; then nothing is to be freed. */
int leaderboard_build(const struct suite *suite, const struct leaderboard_options *options,
                      struct leaderboard *leaderboard, struct error *err);
void leaderboard_free(struct leaderboard *leaderboard);

/* What measures the suite on a device that nobody has measured. */
void leaderboard_command(const struct leaderboard *leaderboard, char *text, size_t size);

#endif
