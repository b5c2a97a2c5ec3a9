/* A table and a line, or one JSON object. */
#include "verify_print.h"

#include <stdio.h>

#include "json_out.h"
#include "table.h"

static int print_deviations(const struct reproduction *second) {
    static const struct table_column columns[] = {{"case", false},
                                                  {"T", false},
                                                  {"entry ms", false},
                                                  {"again ms", false},
                                                  {"deviation %", false}};
    struct table table;

    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < second->case_count; i++) {
        const struct reproduction_case *c = &second->cases[i];
        table_cell(&table, "%d", c->number);
        table_cell(&table, "%.0f", c->batch_seq_len);
        table_cell(&table, "%s", number_text(c->entry_ms, 3).s);
        table_cell(&table, "%s", number_text(c->again_ms, 3).s);
        table_cell(&table, "%+.1f", 100 * c->deviation);
    }
    table_cell(&table, "mean");
    table_cell(&table, "%s", "");
    table_cell(&table, "%s", number_text(second->entry_mean_ms, 3).s);
    table_cell(&table, "%s", number_text(second->again_mean_ms, 3).s);
    table_cell(&table, "%+.1f", 100 * second->mean_deviation);
    int result = table_write_text(stdout, &table);
    table_free(&table);
    return result;
}

static int print_text(const struct verify_result *result) {
    const struct entry *entry = result->entry;

    if (!result->second) {
        printf("%s: consistent: %s, %s, %zu reproduction%s\n", result->folder, entry->name,
               entry_status_names[entry->status], entry->reproduction_count,
               entry->reproduction_count == 1 ? "" : "s");
        return 0;
    }
    int printed = print_deviations(result->second);
    if (result->kept[0])
        printf("reproduced on %s device: %s\n", result->same_device ? "the same" : "another",
               result->kept);
    return printed;
}

static json_t *cases_array(const struct reproduction *second) {
    json_t *array = json_array();

    for (size_t i = 0; i < second->case_count; i++) {
        const struct reproduction_case *c = &second->cases[i];
        json_array_append_new(array, json_pack("{s:i, s:o, s:o, s:o, s:o}", "case", c->number,
                                               "batch_seq_len", json_count(c->batch_seq_len),
                                               "entry_ms", json_number(c->entry_ms), "again_ms",
                                               json_number(c->again_ms), "deviation",
                                               json_number(c->deviation)));
    }
    return array;
}

static json_t *second_object(const struct verify_result *result) {
    const struct reproduction *second = result->second;

    if (!second)
        return json_null();
    return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "agrees", second->agrees, "why",
                     json_text(second->why), "entry_mean_ms", json_number(second->entry_mean_ms),
                     "again_mean_ms", json_number(second->again_mean_ms), "mean_deviation",
                     json_number(second->mean_deviation), "record", json_text(result->kept),
                     "cases", cases_array(second));
}

int verify_print(const struct verify_result *result, bool json) {
    if (!json)
        return print_text(result);
    return json_write(stdout,
                      json_pack("{s:o, s:o, s:s, s:b, s:I, s:o}", "entry",
                                json_text(result->folder), "name", json_text(result->entry->name),
                                "status", entry_status_names[result->entry->status], "consistent",
                                1, "reproductions", (json_int_t)result->entry->reproduction_count,
                                "second_run", second_object(result)));
}
