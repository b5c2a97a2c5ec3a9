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

static bool all_below(const double *numbers, size_t count, size_t limit) {
    for (size_t i = 0; i < count; i++)
        if (!(numbers[i] < (double)limit) || numbers[i] != floor(numbers[i]))
            return false;
    return true;
}

static bool sample_backwards(const struct record_timeline *timeline) {
    for (size_t i = 0; i < timeline->sample_count; i++)
        if (!(timeline->sample_end_ns[i] >= timeline->sample_start_ns[i]))
            return true;
    return false;
}

/* Multiprocessors are numbers of a device, phases an index. */
static const char *stamps_wrong(const struct record_timeline *timeline) {
    size_t count = timeline->stamp_count;
    if (timeline->stamp_sms_count != count || timeline->stamp_indices_count != count ||
        timeline->stamp_tiles_count != count || timeline->stamp_ns_count != count ||
        timeline->stamp_waited_count != count || timeline->stamp_inputs_count != count)
        return "the arrays of the stamps differ in length";
    if (!all_below(timeline->stamp_indices, count, timeline->stamp_phase_count))
        return "stamp_indices: not an index into stamp_phases";
    if (!all_below(timeline->stamp_sms, count, STAMP_SMS_MOST))
        return "stamp_sms: not the number of a multiprocessor";
    for (size_t i = 0; i < count; i++)
        if (!(timeline->stamp_waited_ns[i] <= timeline->stamp_ns[i]))
            return "a stamp waited longer than it took";
    return NULL;
}

const char *record_timeline_wrong(const struct record_timeline *timeline) {
    size_t launches = timeline->launch_count;
    if (timeline->launch_kinds_count != launches || timeline->launch_phases_count != launches ||
        timeline->launch_ns_count != launches)
        return "launch_phases, launch_kinds, launch_start_ns and launch_ns differ in length";
    if (!all_below(timeline->launch_kinds, launches, timeline->kind_count))
        return "launch_kinds: not an index into kinds";
    if (!all_below(timeline->launch_phases, launches, timeline->phase_count))
        return "launch_phases: not an index into phases";
    if (timeline->sample_end_count != timeline->sample_count)
        return "sample_start_ns and sample_end_ns differ in length";
    if (sample_backwards(timeline))
        return "a sample ends before it starts";
    for (size_t i = 0; i < timeline->series_count; i++)
        if (timeline->series[i].value_count != timeline->sample_count)
            return "a series has not one value for each sample";
    return stamps_wrong(timeline);
}

void record_run_init(struct record_run *run) { record_fields_init(&record_run_fields, run); }

void record_case_init(struct record_case *record_case) {
    record_fields_init(&record_case_fields, record_case);
}

void record_counters_init(struct record_counters *counters) {
    record_fields_init(&record_counters_fields, counters);
}

void record_timeline_init(struct record_timeline *timeline) {
    record_fields_init(&record_timeline_fields, timeline);
}

void record_timeline_free(struct record_timeline *timeline) {
    record_fields_free(&record_timeline_fields, timeline);
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
    for (size_t i = 0; i < record->timeline_count; i++)
        record_timeline_free(&record->timelines[i]);
    free(record->cases);
    free(record->counters);
    free(record->timelines);
    record_fields_free(&record_run_fields, &record->run);
    memset(record, 0, sizeof *record);
}
