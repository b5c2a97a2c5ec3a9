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

/* One member of the object at hand; takes the value. 0, or -1 where memory ran out. */
static int put_member(FILE *file, bool *first, const char *key, json_t *value) {
    if (!value)
        return -1;
    fprintf(file, "%s\n \"%s\": ", *first ? "" : ",", key);
    *first = false;
    int result =
        json_dumpf(value, file, JSON_ENCODE_ANY | JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(value);
    return ferror(file) ? 0 : result;
}

/* Entry by entry: a board may have ten thousand. */
static int put_entries(FILE *file, const struct board *board) {
    fputs(",\n \"entries\": [", file);
    for (size_t i = 0; board && i < board->entry_count; i++) {
        json_t *entry = entry_object(board, &board->entries[i]);
        if (!entry)
            return -1;
        fputs(i > 0 ? ",\n" : "\n", file);
        int result = json_dumpf(entry, file, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
        json_decref(entry);
        if (result != 0 && !ferror(file))
            return -1;
    }
    fputs("]", file);
    return 0;
}

static int put_board(FILE *file, const struct leaderboard *leaderboard, const char *device,
                     const struct board *board) {
    bool first = true;
    int result = 0;

    fputs("{", file);
    result |= put_member(file, &first, "suite", json_text(leaderboard->suite->name));
    result |= put_member(file, &first, "device", json_text(device));
    result |= put_member(file, &first, "bound",
                         json_string(bounds[board ? board->bound : BOUND_DATASHEET].name));
    result |=
        put_member(file, &first, "baseline", board ? json_text(board->baseline) : json_null());
    result |=
        put_member(file, &first, "cases", json_integer((json_int_t)leaderboard->suite->case_count));
    result |= put_entries(file, board);
    result |= put_member(file, &first, "note", board ? json_text(board->note) : json_null());
    result |= put_member(file, &first, "not_measured", challenges(leaderboard));
    fputs("\n}", file);
    return result == 0 ? 0 : -1;
}

static int write_json(FILE *file, const struct leaderboard *leaderboard, bool one_device) {
    size_t count = leaderboard->board_count;
    bool absent = one_device && count == 0 && leaderboard->unmeasured_count > 0;
    bool alone = one_device && (count == 1 || absent);
    int result = 0;

    fputs(alone ? "" : "[", file);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "", file);
        result |=
            put_board(file, leaderboard, leaderboard->boards[i].device, &leaderboard->boards[i]);
    }
    if (absent)
        result |= put_board(file, leaderboard, leaderboard->unmeasured[0]->short_name, NULL);
    fputs(alone ? "\n" : "]\n", file);
    return result;
}

const struct leaderboard_format leaderboard_json = {.name = "json", .write = write_json};
