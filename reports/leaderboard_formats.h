/* The formats of `moesol leaderboard`, and what they have in common. A new format is one file with
 * one `const struct leaderboard_format` and a row in leaderboard_formats. */
#ifndef MOESOL_REPORTS_LEADERBOARD_FORMATS_H
#define MOESOL_REPORTS_LEADERBOARD_FORMATS_H

#include <stdio.h>

#include "../analysis/leaderboard.h"
#include "table.h"

struct leaderboard_format {
    const char *name;
    /* 0, or -1 where memory ran out. Write errors stay in the FILE. `one_device`: the user asked
     * for one device. */
    int (*write)(FILE *file, const struct leaderboard *leaderboard, bool one_device);
    /* Where it can also write a folder: index.html, and the report of each entry whose record is
     * here. NULL: it cannot. Returns 0, or -1 with *err. */
    int (*write_folder)(const char *folder, const struct leaderboard *leaderboard,
                        struct error *err);
};

extern const struct leaderboard_format leaderboard_text, leaderboard_markdown, leaderboard_html,
    leaderboard_csv, leaderboard_json;
extern const struct leaderboard_format *const leaderboard_formats[]; /* NULL-terminated */

/* One row an entry, for people. */
void leaderboard_table(const struct board *board, struct table *table);

/* "moe-token-repeat on H200: 16 cases, bound datasheet, baseline v1, cublas-grouped". */
void leaderboard_title(const struct leaderboard *leaderboard, const struct board *board, char *text,
                       size_t size);

/* "KERNEL, DATE: not ranked: why", or what a reader must know of a published entry; false where
 * there is nothing to say. */
bool leaderboard_remark(const struct board_entry *entry, char *text, size_t size);

#endif
