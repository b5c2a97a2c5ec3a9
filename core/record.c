/* Initialising and freeing records; both follow the tables of record_fields.c. */
#include "record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record_fields.h"

const char *const record_status_names[STATUS_COUNT] = {
    [STATUS_OK] = "ok",
    [STATUS_NOISY] = "noisy",
    [STATUS_THROTTLED] = "throttled",
    [STATUS_ABOVE_ROOF] = "above-roof",
    [STATUS_WRONG] = "wrong",
    [STATUS_CRASHED] = "crashed",
    [STATUS_TIMEOUT] = "timeout",
    [STATUS_UNSUPPORTED] = "unsupported",
    [STATUS_IMPOSSIBLE] = "impossible",
};

void record_fields_init(const struct field_table *table, void *object) {
    memset(object, 0, table->struct_size);
    for (size_t i = 0; i < table->field_count; i++) {
        const struct field *field = &table->fields[i];
        double *number = (double *)((char *)object + field->offset);
        if (field->type == FIELD_NUMBER || field->type == FIELD_INTEGER)
            *number = NAN;
        else if (field->type == FIELD_TRIPLE)
            number[0] = number[1] = number[2] = NAN;
        else if (field->type == FIELD_OBJECT)
            record_fields_init(field->inner, number);
    }
}

static void free_field(const struct field *field, char *object) {
    void **pointer = (void **)(object + field->offset);

    if (field->type == FIELD_OBJECT)
        record_fields_free(field->inner, object + field->offset);
    if (field->type == FIELD_ARRAY && *pointer) {
        size_t count = *(const size_t *)(object + field->count_offset);
        for (size_t i = 0; i < count; i++)
            record_fields_free(field->inner, (char *)*pointer + i * field->inner->struct_size);
    }
    if (field->type == FIELD_ARRAY || field->type == FIELD_NUMBERS || field->type == FIELD_METRICS)
        free(*pointer);
}

void record_fields_free(const struct field_table *table, void *object) {
    for (size_t i = 0; i < table->field_count; i++)
        free_field(&table->fields[i], object);
    record_fields_init(table, object);
}

bool record_case_consistent(const struct record_case *record_case, size_t *phase) {
    for (size_t i = 0; i < record_case->phase_count; i++) {
        size_t count = record_case->phases[i].sample_count;
        if (count == 0 || count == record_case->sample_count)
            continue;
        *phase = i;
        return false;
    }
    return true;
}

void record_run_init(struct record_run *run) { record_fields_init(&record_run_fields, run); }

void record_case_init(struct record_case *record_case) {
    record_fields_init(&record_case_fields, record_case);
}

void record_counters_init(struct record_counters *counters) {
    record_fields_init(&record_counters_fields, counters);
}

void record_case_free(struct record_case *record_case) {
    record_fields_free(&record_case_fields, record_case);
}

void record_counters_free(struct record_counters *counters) {
    record_fields_free(&record_counters_fields, counters);
}

void record_free(struct record *record) {
    for (size_t i = 0; i < record->case_count; i++)
        record_case_free(&record->cases[i]);
    for (size_t i = 0; i < record->counters_count; i++)
        record_counters_free(&record->counters[i]);
    free(record->cases);
    free(record->counters);
    record_fields_free(&record_run_fields, &record->run);
    memset(record, 0, sizeof *record);
}
