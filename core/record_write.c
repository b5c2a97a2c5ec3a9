/* The writer: composes a line by the tables, refuses what the reader would refuse, and writes the
 * line in one piece. */
#include <errno.h>
#include <math.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record_fields.h"
#include "record_line.h"

/* A value outside the range of its row is a defect of whoever measured it; the reader would refuse
 * the whole file for it. */
static int refuse(const struct field *field, double value, struct error *err) {
    return error_set(err, EXIT_FAILED, "cannot write the record: %s: out of range: %g", field->key,
                     value);
}

static int add_number(struct record_line *line, const struct field *field, double value,
                      struct error *err) {
    bool whole = field->type == FIELD_INTEGER || field->type == FIELD_TRIPLE;
    if (!(value >= field->least && value <= field->most) || (whole && value != floor(value)))
        return refuse(field, value, err);
    record_line_number(line, value);
    return 0;
}

static int add_numbers(struct record_line *line, const struct field *field, const double *numbers,
                       size_t count, struct error *err) {
    record_line_key(line, field->key);
    for (size_t i = 0; i < count; i++) {
        record_line_raw(line, i ? "," : "[");
        if (add_number(line, field, numbers[i], err))
            return -1;
    }
    record_line_raw(line, "]");
    return 0;
}

static int add_members(struct record_line *line, const struct field_table *table,
                       const char *object, struct error *err);

static int add_object(struct record_line *line, const struct field_table *table, const char *object,
                      struct error *err) {
    record_line_raw(line, "{");
    if (add_members(line, table, object, err))
        return -1;
    record_line_raw(line, "}");
    return 0;
}

/* An object in which nothing is known has no key. */
static int add_inner(struct record_line *line, const struct field *field, const char *object,
                     struct error *err) {
    size_t before = line->length;
    record_line_key(line, field->key);
    size_t begin = line->length;
    if (add_object(line, field->inner, object, err))
        return -1;
    if (line->length == begin + 2)
        line->length = before;
    return 0;
}

static int add_array(struct record_line *line, const struct field *field, const char *elements,
                     size_t count, struct error *err) {
    record_line_key(line, field->key);
    for (size_t i = 0; i < count; i++) {
        record_line_raw(line, i ? "," : "[");
        if (add_object(line, field->inner, elements + i * field->inner->struct_size, err))
            return -1;
    }
    record_line_raw(line, "]");
    return 0;
}

static int add_metrics(struct record_line *line, const struct field *field,
                       const struct record_metric *metrics, size_t count, struct error *err) {
    record_line_key(line, field->key);
    record_line_raw(line, "{");
    for (size_t i = 0; i < count; i++) {
        if (isnan(metrics[i].value))
            continue;
        record_line_key(line, metrics[i].name);
        if (add_number(line, field, metrics[i].value, err))
            return -1;
    }
    record_line_raw(line, "}");
    return 0;
}

static int add_elements(struct record_line *line, const struct field *field, const char *object,
                        struct error *err) {
    const void *elements = *(const void *const *)(object + field->offset);
    size_t count = *(const size_t *)(object + field->count_offset);

    if (count == 0)
        return 0;
    if (count > field->count_most)
        return error_set(err, EXIT_FAILED, "cannot write the record: %s: more than %zu elements",
                         field->key, field->count_most);
    if (field->type == FIELD_NUMBERS)
        return add_numbers(line, field, elements, count, err);
    if (field->type == FIELD_METRICS)
        return add_metrics(line, field, elements, count, err);
    return add_array(line, field, elements, count, err);
}

/* A member that holds one value. Returns 1 where it is not known. */
static int add_value(struct record_line *line, const struct field *field, const char *member,
                     struct error *err) {
    const double *number = (const double *)member;

    switch (field->type) {
    case FIELD_NUMBER:
    case FIELD_INTEGER:
        if (isnan(*number))
            return 1;
        record_line_key(line, field->key);
        return add_number(line, field, *number, err);
    case FIELD_TRIPLE:
        return isnan(number[0]) ? 1 : add_numbers(line, field, number, 3, err);
    case FIELD_TEXT:
        if (!*member)
            return 1;
        record_line_key(line, field->key);
        record_line_text(line, member);
        return 0;
    case FIELD_BOOL:
        record_line_key(line, field->key);
        record_line_raw(line, *(const bool *)member ? "true" : "false");
        return 0;
    case FIELD_STATUS:
        record_line_key(line, field->key);
        record_line_text(line, record_status_names[*(const enum record_status *)member]);
        return 0;
    default:
        return add_inner(line, field, member, err);
    }
}

static int add_members(struct record_line *line, const struct field_table *table,
                       const char *object, struct error *err) {
    for (size_t i = 0; i < table->field_count; i++) {
        const struct field *field = &table->fields[i];
        bool elements = field->type == FIELD_NUMBERS || field->type == FIELD_ARRAY ||
                        field->type == FIELD_METRICS;
        int result = elements ? add_elements(line, field, object, err)
                              : add_value(line, field, object + field->offset, err);
        if (result < 0)
            return -1;
        if (result == 1 && field->required)
            return error_set(err, EXIT_FAILED, "cannot write the record: %s: missing", field->key);
    }
    return 0;
}

/* -1 for what is no regular file. */
static off_t file_size(FILE *file) {
    struct stat status;
    return fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

/* What a failed write left behind would run into the next line: it is taken out of the buffer, and
 * out of the file where that can be shortened (a pipe cannot). */
static int write_failed(FILE *file, off_t size, int reason, struct error *err) {
    __fpurge(file);
    clearerr(file);
    if (size >= 0 && ftruncate(fileno(file), size) == 0)
        fseeko(file, 0, SEEK_END);
    return error_set(err, EXIT_FAILED, "cannot write the record: %s",
                     reason ? strerror(reason) : "write error");
}

static int write_line(FILE *file, const struct field_table *table, const void *object,
                      const char *head, struct error *err) {
    struct record_line line = {0};
    int result = -1;

    record_line_raw(&line, head);
    if (add_members(&line, table, object, err))
        goto done;
    record_line_raw(&line, "}\n");
    if (line.failed) {
        error_set(err, EXIT_FAILED, "out of memory: a line of the record");
        goto done;
    }
    off_t size = file_size(file);
    errno = 0;
    bool written = fwrite(line.text, 1, line.length, file) == line.length && fflush(file) == 0;
    result = written ? 0 : write_failed(file, size, errno, err);
done:
    free(line.text);
    return result;
}

int record_write_run(FILE *file, const struct record_run *run, struct error *err) {
    char head[64];
    snprintf(head, sizeof head, "{\"schema\":\"%d.%d\",\"type\":\"run\"", RECORD_SCHEMA_MAJOR,
             RECORD_SCHEMA_MINOR);
    return write_line(file, &record_run_fields, run, head, err);
}

int record_write_case(FILE *file, const struct record_case *record_case, struct error *err) {
    size_t phase;
    if ((unsigned)record_case->status >= STATUS_COUNT)
        return error_set(err, EXIT_FAILED, "cannot write the record: status: out of range: %d",
                         (int)record_case->status);
    if (!record_case_consistent(record_case, &phase))
        return error_set(err, EXIT_FAILED,
                         "cannot write the record: phase %s has %zu samples where the case has %zu",
                         record_case->phases[phase].name, record_case->phases[phase].sample_count,
                         record_case->sample_count);
    return write_line(file, &record_case_fields, record_case, "{\"type\":\"case\"", err);
}

int record_write_counters(FILE *file, const struct record_counters *counters, struct error *err) {
    return write_line(file, &record_counters_fields, counters, "{\"type\":\"counters\"", err);
}

int record_write_timeline(FILE *file, const struct record_timeline *timeline, struct error *err) {
    const char *wrong = record_timeline_wrong(timeline);
    if (wrong)
        return error_set(err, EXIT_FAILED, "cannot write the record: timeline: %s", wrong);
    return write_line(file, &record_timeline_fields, timeline, "{\"type\":\"timeline\"", err);
}

int record_write_end(FILE *file, const struct record_end *end, struct error *err) {
    return write_line(file, &record_end_fields, end, "{\"type\":\"end\"", err);
}
