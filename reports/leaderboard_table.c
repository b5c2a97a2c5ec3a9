/* The leaderboard's table: a reported row is shown with the digits its source gave, a measured one
 * with what the measurement supports. */
#include <string.h>

#include "leaderboard_formats.h"

const struct leaderboard_format *const leaderboard_formats[] = {
    &leaderboard_text, &leaderboard_markdown, &leaderboard_html,
    &leaderboard_csv,  &leaderboard_json,     NULL};

static const struct table_column columns[] = {
    {"rank", false},   {"mean ms", false},        {"geomean ms", false},
    {"% SOL", false},  {"SOL fraction %", false}, {"ratio", false},
    {"status", true},  {"kernel", true},          {"by", true},
    {"license", true}, {"source", true},          {"date", true},
};

/* A published entry may have another name than its kernel. */
static void kernel_cell(const struct board_entry *entry, struct table *table) {
    bool named = entry->name[0] && strcmp(entry->name, entry->author) != 0 &&
                 strcmp(entry->name, entry->kernel) != 0;

    if (named)
        table_cell(table, "%s (%s)", entry->name, known_text(entry->kernel));
    else
        table_cell(table, "%s", known_text(entry->kernel));
}

static void entry_row(const struct board_entry *entry, struct table *table) {
    if (entry->rank > 0)
        table_cell(table, "%d", entry->rank);
    else
        table_cell(table, TABLE_UNKNOWN);
    table_cell(table, "%s",
               entry->latency_text[0] ? entry->latency_text
                                      : number_text(entry->mean_latency_ms, 3).s);
    table_cell(table, "%s", number_text(entry->geomean_latency_ms, 3).s);
    table_cell(table, "%s",
               entry->score_text[0] ? entry->score_text : percent_text(entry->sol_score, 1).s);
    table_cell(table, "%s", percent_text(entry->sol_fraction, 1).s);
    table_cell(table, "%s",
               entry->ratio_text[0] ? entry->ratio_text : number_text(entry->ratio_to_best, 2).s);
    table_cell(table, "%s", entry->status);
    kernel_cell(entry, table);
    table_cell(table, "%s", known_text(entry->author));
    table_cell(table, "%s", entry->license[0] ? entry->license : "unknown");
    table_cell(table, "%s", entry->source[0] ? entry->source : "none");
    table_cell(table, "%s", known_text(entry->date));
}

void leaderboard_table(const struct board *board, struct table *table) {
    table_init(table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < board->entry_count; i++)
        entry_row(&board->entries[i], table);
}

void leaderboard_title(const struct leaderboard *leaderboard, const struct board *board, char *text,
                       size_t size) {
    snprintf(text, size, "%s on %s: %zu cases, bound %s, baseline %s", leaderboard->suite->name,
             board->device, board->case_count, bounds[board->bound].name,
             board->baseline[0] ? board->baseline : "none");
}

bool leaderboard_remark(const struct board_entry *entry, char *text, size_t size) {
    /* What is known of a reported row stands below the board once. */
    const char *note = entry->reported ? "" : entry->note;

    if (!entry->why[0] && !note[0])
        return false;
    snprintf(text, size, "%s, %s: %s%s", known_text(entry->kernel), known_text(entry->date),
             entry->why[0] ? "not ranked: " : "", entry->why[0] ? entry->why : note);
    return true;
}
