/* Fuzz target: the record's reader and writer. What the reader takes, the writer can write, and
 * what was written reads back to the same bytes. */
#include <string.h>

#include "../../core/record.h"
#include "fuzz.h"

/* Writes a whole record into memory; false where the writer refuses it. */
static bool write_record(const struct record *record, char **text, size_t *length) {
    struct error err = {0};
    FILE *file = open_memstream(text, length);
    int result = record_write_run(file, &record->run, &err);
    for (size_t i = 0; i < record->case_count && !result; i++)
        result = record_write_case(file, &record->cases[i], &err);
    for (size_t i = 0; i < record->counters_count && !result; i++)
        result = record_write_counters(file, &record->counters[i], &err);
    for (size_t i = 0; i < record->timeline_count && !result; i++)
        result = record_write_timeline(file, &record->timelines[i], &err);
    if (record->end.present && !result)
        result = record_write_end(file, &record->end, &err);
    fclose(file);
    if (result) {
        /* An empty text where one is required has no key in the file. */
        fuzz_check(strstr(err.text, ": missing") != NULL, "the writer refuses", err.text);
        free(*text);
    }
    return !result;
}

static void check_round_trip(const struct record *record) {
    struct record again;
    struct error err = {0};
    char *first, *second;
    size_t first_length, second_length;
    if (!write_record(record, &first, &first_length))
        return;
    fuzz_check(record_parse(first, first_length, "again", &again, &err) == 0, "not read back",
               err.text);
    fuzz_check(write_record(&again, &second, &second_length), "not written again", "");
    fuzz_check(first_length == second_length && memcmp(first, second, first_length) == 0,
               "another record came back", first);
    record_free(&again);
    free(first);
    free(second);
}

static void try_single_lines(const char *text, size_t length) {
    struct record_case record_case;
    struct record_counters counters;
    struct record_timeline timeline;
    struct error of_case = {0}, of_counters = {0}, of_timeline = {0};
    if (record_parse_case(text, length, &record_case, &of_case) == 0)
        record_case_free(&record_case);
    else
        fuzz_check_refused(&of_case);
    if (record_parse_counters(text, length, &counters, &of_counters) == 0)
        record_counters_free(&counters);
    else
        fuzz_check_refused(&of_counters);
    if (record_parse_timeline(text, length, &timeline, &of_timeline) == 0)
        record_timeline_free(&timeline);
    else
        fuzz_check_refused(&of_timeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct record record;
    struct error err = {0};
    try_single_lines((const char *)data, size);
    if (record_parse((const char *)data, size, "fuzz.jsonl", &record, &err)) {
        fuzz_check_refused(&err);
        return 0;
    }
    fuzz_check(err.code == EXIT_OK, "an error beside success", err.text);
    check_round_trip(&record);
    record_free(&record);
    return 0;
}
