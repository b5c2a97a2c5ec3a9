/* The leaderboard as JSON, a form that is kept stable: one object a board, null where something is
 * not known. With --device the object itself (an array only where the device has boards of two
 * bounds), else an array of them. */
#include "json_out.h"
#include "leaderboard_formats.h"

static json_t *case_object(const struct board_case *c) {
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "case", c->number, "batch_seq_len",
                     json_count(c->batch_seq_len), "latency_ms", json_number(c->latency_ms),
                     "t_sol_ms", json_number(c->t_sol_ms), "t_baseline_ms",
                     json_number(c->t_baseline_ms), "sol_fraction", json_number(c->sol_fraction),
                     "sol_score", json_number(c->sol_score));
}

static json_t *entry_object(const struct board *board, const struct board_entry *entry) {
    json_t *cases = json_array();

    for (size_t i = 0; i < board->case_count; i++)
        json_array_append_new(cases, case_object(&entry->cases[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rank",
        entry->rank > 0 ? json_integer(entry->rank) : json_null(), "name", json_text(entry->name),
        "kernel", json_text(entry->kernel), "status", json_text(entry->status), "mean_latency_ms",
        json_number(entry->mean_latency_ms), "geomean_latency_ms",
        json_number(entry->geomean_latency_ms), "sol_fraction", json_number(entry->sol_fraction),
        "sol_score", json_number(entry->sol_score), "ratio_to_best",
        json_number(entry->ratio_to_best), "date", json_text(entry->date), "license",
        json_text(entry->license), "source", json_text(entry->source), "cases", cases);
}

static json_t *challenges(const struct leaderboard *leaderboard) {
    json_t *array = json_array();
    char command[256];

    leaderboard_command(leaderboard, command, sizeof command);
    for (size_t i = 0; i < leaderboard->unmeasured_count; i++)
        json_array_append_new(array, json_pack("{s:s, s:s}", "device",
                                               leaderboard->unmeasured[i]->short_name, "command",
                                               command));
    return array;
}

static json_t *board_object(const struct leaderboard *leaderboard, const char *device,
                            const struct board *board) {
    json_t *entries = json_array();

    for (size_t i = 0; board && i < board->entry_count; i++)
        json_array_append_new(entries, entry_object(board, &board->entries[i]));
    return json_pack(
        "{s:s, s:o, s:s, s:o, s:I, s:o, s:o, s:o}", "suite", leaderboard->suite->name, "device",
        json_text(device), "bound", bounds[board ? board->bound : BOUND_DATASHEET].name, "baseline",
        board ? json_text(board->baseline) : json_null(), "cases",
        (json_int_t)leaderboard->suite->case_count, "entries", entries, "note",
        board ? json_text(board->note) : json_null(), "not_measured", challenges(leaderboard));
}

static int write_json(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    json_t *boards = json_array();
    size_t count = leaderboard->board_count;

    for (size_t i = 0; i < count; i++)
        json_array_append_new(boards, board_object(leaderboard, leaderboard->boards[i].device,
                                                   &leaderboard->boards[i]));
    if (one_device && count == 0 && leaderboard->unmeasured_count > 0)
        json_array_append_new(
            boards, board_object(leaderboard, leaderboard->unmeasured[0]->short_name, NULL));
    if (!one_device || json_array_size(boards) != 1)
        return json_write(file, boards);
    json_t *only = json_incref(json_array_get(boards, 0));
    json_decref(boards);
    return json_write(file, only);
}

const struct leaderboard_format leaderboard_json = {"json", write_json};
