/* The tolerant reader. Its input is untrusted: every value is checked against its row before it is
 * stored, and an error says file, line and key. */
#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record_fields.h"

#define FILE_BYTES_MOST (256u << 20)

/* Where the reader is, for the error line. */
struct place {
    const char *path; /* NULL: not a file */
    size_t line;
    char key[192]; /* "phases[2].samples_ns[4]" */
    struct error *err;
};

static int wrong(const struct place *place, const char *what, const char *value) {
    const char *colon = place->key[0] ? ": " : "", *comma = *value ? ": " : "";
    if (!place->path)
        return error_set(place->err, EXIT_USAGE, "%s%s%s%s%s", place->key, colon, what, comma,
                         value);
    return error_set(place->err, EXIT_USAGE, "%.250s:%zu: %s%s%s%s%s", place->path, place->line,
                     place->key, colon, what, comma, value);
}

/* Appends a key, or an index where key is NULL; returns what leave() takes to go back. */
static size_t enter(struct place *place, const char *key, size_t index) {
    size_t length = strlen(place->key);
    char *end = place->key + length;
    if (key)
        snprintf(end, sizeof place->key - length, "%s%.64s", length ? "." : "", key);
    else
        snprintf(end, sizeof place->key - length, "[%zu]", index);
    return length;
}

static void leave(struct place *place, size_t length) { place->key[length] = '\0'; }

/* A short text of a value for the error line. */
static void value_text(const json_t *value, char *text, size_t size) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        snprintf(text, size, "an object");
        break;
    case JSON_ARRAY:
        snprintf(text, size, "an array");
        break;
    case JSON_STRING:
        snprintf(text, size, "\"%.60s\"", json_string_value(value));
        break;
    case JSON_INTEGER:
        snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        snprintf(text, size, "%g", json_real_value(value));
        break;
    default:
        snprintf(text, size, "%s",
                 json_is_null(value) ? "null" : (json_is_true(value) ? "true" : "false"));
    }
}

static int wrong_value(const struct place *place, const char *what, const json_t *value) {
    char text[80];
    value_text(value, text, sizeof text);
    return wrong(place, what, text);
}

static int wrong_type(const struct place *place, const char *wanted, const json_t *value) {
    char what[64];
    snprintf(what, sizeof what, "not %s", wanted);
    return wrong_value(place, what, value);
}

static bool is_time(const char *key) {
    size_t length = strlen(key);
    return length > 3 && strcmp(key + length - 3, "_ns") == 0;
}

static int read_number(const struct field *field, const json_t *value, struct place *place,
                       double *number) {
    if (!json_is_number(value))
        return wrong_type(place, "a number", value);
    *number = json_number_value(value);
    if (*number < field->least && is_time(field->key))
        return wrong_value(place, "negative time", value);
    if (!(*number >= field->least && *number <= field->most))
        return wrong_value(place, "out of range", value);
    bool whole = field->type == FIELD_INTEGER || field->type == FIELD_TRIPLE;
    if (whole && *number != floor(*number))
        return wrong_type(place, "a whole number", value);
    if (fabs(*number) == DBL_MAX) /* how the writer spells infinity, which JSON lacks */
        *number = *number > 0 ? HUGE_VAL : -HUGE_VAL;
    return 0;
}

static int copy_text(const char *text, char *buffer, size_t size, const struct place *place) {
    if (strlen(text) >= size) {
        char what[64];
        snprintf(what, sizeof what, "longer than %zu bytes", size - 1);
        return wrong(place, what, "");
    }
    memcpy(buffer, text, strlen(text) + 1);
    return 0;
}

static int read_status(const json_t *value, const struct place *place, enum record_status *status) {
    if (!json_is_string(value))
        return wrong_type(place, "a text", value);
    for (int i = 0; i < STATUS_COUNT; i++) {
        if (strcmp(json_string_value(value), record_status_names[i]) != 0)
            continue;
        *status = (enum record_status)i;
        return 0;
    }
    return wrong_value(place, "unknown status", value);
}

static int read_triple(const struct field *field, const json_t *value, struct place *place,
                       double *triple) {
    if (!json_is_array(value) || json_array_size(value) != 3)
        return wrong_type(place, "an array of three numbers", value);
    for (size_t i = 0; i < 3; i++) {
        size_t back = enter(place, NULL, i);
        if (read_number(field, json_array_get(value, i), place, &triple[i]))
            return -1;
        leave(place, back);
    }
    return 0;
}

static int read_object(const struct field_table *table, const json_t *value, struct place *place,
                       char *object);

/* The elements of an array or the members of an object: allocates room for them. *count is set as
 * they come, so that what is there can be freed after an error. */
static int make_room(const struct field *field, size_t wanted, size_t size, struct place *place,
                     char *object, char **elements, size_t **count) {
    void **pointer = (void **)(object + field->offset);
    *count = (size_t *)(object + field->count_offset);
    if (wanted > field->count_most) {
        char what[64];
        snprintf(what, sizeof what, "more than %zu elements", field->count_most);
        return wrong(place, what, "");
    }
    *pointer = wanted ? calloc(wanted, size) : NULL;
    if (wanted && !*pointer)
        return error_set(place->err, EXIT_FAILED, "out of memory: a record");
    *elements = *pointer;
    return 0;
}

static int read_numbers(const struct field *field, const json_t *value, struct place *place,
                        char *object) {
    size_t *count = NULL;
    char *elements = NULL;

    if (!json_is_array(value))
        return wrong_type(place, "an array", value);
    size_t wanted = json_array_size(value);
    if (make_room(field, wanted, sizeof(double), place, object, &elements, &count))
        return -1;
    *count = wanted;
    double *numbers = (double *)elements;
    for (size_t i = 0; i < wanted; i++) {
        const json_t *element = json_array_get(value, i);
        numbers[i] = json_number_value(element);
        if (json_is_number(element) && numbers[i] >= field->least && numbers[i] < DBL_MAX)
            continue;
        size_t back = enter(place, NULL, i);
        if (read_number(field, element, place, &numbers[i]))
            return -1;
        leave(place, back);
    }
    return 0;
}

static int read_array(const struct field *field, const json_t *value, struct place *place,
                      char *object) {
    size_t *count = NULL, size = field->inner->struct_size;
    char *elements = NULL;

    if (!json_is_array(value))
        return wrong_type(place, "an array", value);
    size_t wanted = json_array_size(value);
    if (make_room(field, wanted, size, place, object, &elements, &count))
        return -1;
    for (size_t i = 0; i < wanted; i++) {
        size_t back = enter(place, NULL, i);
        (*count)++;
        if (read_object(field->inner, json_array_get(value, i), place, elements + i * size))
            return -1;
        leave(place, back);
    }
    return 0;
}

static int read_metrics(const struct field *field, const json_t *value, struct place *place,
                        char *object) {
    size_t *count = NULL;
    char *elements = NULL;
    const char *name;
    json_t *member;

    if (!json_is_object(value))
        return wrong_type(place, "an object", value);
    if (make_room(field, json_object_size(value), sizeof(struct record_metric), place, object,
                  &elements, &count))
        return -1;
    struct record_metric *metric = (struct record_metric *)elements;
    json_object_foreach((json_t *)value, name, member) {
        size_t back = enter(place, name, 0);
        (*count)++;
        if (copy_text(name, metric->name, sizeof metric->name, place) ||
            read_number(field, member, place, &metric->value))
            return -1;
        metric++;
        leave(place, back);
    }
    return 0;
}

static int read_value(const struct field *field, const json_t *value, struct place *place,
                      char *object) {
    void *member = object + field->offset;

    switch (field->type) {
    case FIELD_NUMBER:
    case FIELD_INTEGER:
        return read_number(field, value, place, member);
    case FIELD_TEXT:
        if (!json_is_string(value))
            return wrong_type(place, "a text", value);
        return copy_text(json_string_value(value), member, field->size, place);
    case FIELD_BOOL:
        if (!json_is_boolean(value))
            return wrong_type(place, "true or false", value);
        *(bool *)member = json_is_true(value);
        return 0;
    case FIELD_STATUS:
        return read_status(value, place, member);
    case FIELD_TRIPLE:
        return read_triple(field, value, place, member);
    case FIELD_NUMBERS:
        return read_numbers(field, value, place, object);
    case FIELD_ARRAY:
        return read_array(field, value, place, object);
    case FIELD_OBJECT:
        return read_object(field->inner, value, place, member);
    case FIELD_METRICS:
        return read_metrics(field, value, place, object);
    }
    return -1;
}

/* Fills an object by its table; keys without a row are left alone. The object is initialised here
 * and is to be freed by its table whatever comes back. */
static int read_object(const struct field_table *table, const json_t *value, struct place *place,
                       char *object) {
    record_fields_init(table, object);
    if (!json_is_object(value))
        return wrong_type(place, "an object", value);
    for (size_t i = 0; i < table->field_count; i++) {
        const struct field *field = &table->fields[i];
        const json_t *member = json_object_get(value, field->key);
        if (!member && !field->required)
            continue;
        size_t back = enter(place, field->key, 0);
        if (!member)
            return wrong(place, "missing", "");
        if (read_value(field, member, place, object))
            return -1;
        leave(place, back);
    }
    return 0;
}

static int check_case(const struct record_case *record_case, struct place *place) {
    size_t phase;
    if (record_case_consistent(record_case, &phase))
        return 0;
    char what[96];
    enter(place, "phases", 0);
    enter(place, NULL, phase);
    snprintf(what, sizeof what, "has %zu samples where the case has %zu",
             record_case->phases[phase].sample_count, record_case->sample_count);
    return wrong(place, what, "");
}

static int read_case(const json_t *root, struct place *place, struct record_case *record_case) {
    if (read_object(&record_case_fields, root, place, (char *)record_case) == 0 &&
        check_case(record_case, place) == 0)
        return 0;
    record_case_free(record_case);
    return -1;
}

static int read_counters(const json_t *root, struct place *place,
                         struct record_counters *counters) {
    if (read_object(&record_counters_fields, root, place, (char *)counters) == 0)
        return 0;
    record_counters_free(counters);
    return -1;
}

static int read_timeline(const json_t *root, struct place *place,
                         struct record_timeline *timeline) {
    const char *what;
    if (read_object(&record_timeline_fields, root, place, (char *)timeline) == 0) {
        if (!(what = record_timeline_wrong(timeline)))
            return 0;
        wrong(place, what, "");
    }
    record_timeline_free(timeline);
    return -1;
}

/* --- lines ----------------------------------------------------------------------------------- */

/* One more element for a growing array, for *count of them; NULL with the error set. */
static void *one_more(void **array, size_t count, size_t size, const struct place *place) {
    if ((count & (count - 1)) == 0) { /* full at every power of two */
        void *grown = realloc(*array, (count ? 2 * count : 1) * size);
        if (!grown) {
            error_set(place->err, EXIT_FAILED, "out of memory: a record");
            return NULL;
        }
        *array = grown;
    }
    return (char *)*array + count * size;
}

static int add_case(const json_t *root, struct place *place, struct record *record) {
    struct record_case *record_case =
        one_more((void **)&record->cases, record->case_count, sizeof *record_case, place);
    if (!record_case || read_case(root, place, record_case))
        return -1;
    record->case_count++;
    return 0;
}

static int add_counters(const json_t *root, struct place *place, struct record *record) {
    struct record_counters *counters =
        one_more((void **)&record->counters, record->counters_count, sizeof *counters, place);
    if (!counters || read_counters(root, place, counters))
        return -1;
    record->counters_count++;
    return 0;
}

static int add_timeline(const json_t *root, struct place *place, struct record *record) {
    struct record_timeline *timeline =
        one_more((void **)&record->timelines, record->timeline_count, sizeof *timeline, place);
    if (!timeline || read_timeline(root, place, timeline))
        return -1;
    record->timeline_count++;
    return 0;
}

/* The schema stands in the first line and decides whether the rest can be understood at all. */
static int check_schema(const json_t *root, struct place *place) {
    const json_t *schema = json_object_get(root, "schema");
    char *end = NULL;

    enter(place, "schema", 0);
    if (!schema)
        return wrong(place, "missing; not a record of moesol", "");
    if (!json_is_string(schema))
        return wrong_type(place, "a text like \"1.0\"", schema);
    const char *text = json_string_value(schema);
    long major = strtol(text, &end, 10);
    if (end == text || *end != '.')
        return wrong_type(place, "a text like \"1.0\"", schema);
    if (major > RECORD_SCHEMA_MAJOR)
        return wrong_value(place, "newer than this moesol reads (1.x); update moesol", schema);
    if (major < RECORD_SCHEMA_MAJOR)
        return wrong_value(place, "not a schema that this moesol reads (1.x)", schema);
    leave(place, 0);
    return 0;
}

static const char *line_type(const json_t *root, struct place *place) {
    const json_t *type = json_object_get(root, "type");
    enter(place, "type", 0);
    if (!type)
        wrong(place, "missing", "");
    else if (!json_is_string(type))
        wrong_type(place, "a text", type);
    else
        leave(place, 0);
    return json_string_value(type);
}

static int read_line(const json_t *root, struct place *place, struct record *record) {
    if (!json_is_object(root))
        return wrong_type(place, "an object", root);
    if (place->line == 1 && check_schema(root, place))
        return -1;
    const char *type = line_type(root, place);
    if (!type)
        return -1;
    bool is_run = strcmp(type, "run") == 0;
    if (place->line == 1 && !is_run)
        return wrong(place, "the first line is not a run line", type);
    if (is_run && place->line > 1)
        return wrong(place, "a second run line; a record holds one run", "");
    if (is_run)
        return read_object(&record_run_fields, root, place, (char *)&record->run);
    if (strcmp(type, "end") == 0) {
        if (read_object(&record_end_fields, root, place, (char *)&record->end))
            return -1;
        record->end.present = true;
        return 0;
    }
    bool is_case = strcmp(type, "case") == 0, is_counters = strcmp(type, "counters") == 0,
         is_timeline = strcmp(type, "timeline") == 0;
    if (is_case || is_counters ||
        is_timeline) /* a run that was taken up again goes on after its end */
        memset(&record->end, 0, sizeof record->end);
    if (is_case)
        return add_case(root, place, record);
    if (is_timeline)
        return add_timeline(root, place, record);
    return is_counters ? add_counters(root, place, record) : 0;
}

/* jansson's text tells the column; its line is always 1 here. */
static int not_json(const struct place *place, const json_error_t *problem) {
    char what[160];
    snprintf(what, sizeof what, "not JSON: %.100s (column %d)", problem->text, problem->column);
    return wrong(place, what, "");
}

static int parse_lines(const char *text, size_t length, struct place *place,
                       struct record *record) {
    const char *end = text + length;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line_length = (size_t)((newline ? newline : end) - text);
        json_error_t problem;
        place->line++;
        place->key[0] = '\0';
        json_t *root = json_loadb(text, line_length, JSON_REJECT_DUPLICATES, &problem);
        if (!root && (newline || place->line == 1))
            return not_json(place, &problem);
        if (!root) {
            record->cut = true;
            record->dropped_line = place->line;
            record->end.present = false;
            return 0;
        }
        int result = read_line(root, place, record);
        json_decref(root);
        if (result)
            return -1;
        text += line_length + (newline ? 1 : 0);
    }
    return 0;
}

int record_parse(const char *text, size_t length, const char *path, struct record *record,
                 struct error *err) {
    struct place place = {.path = path, .line = 0, .err = err};

    memset(record, 0, sizeof *record);
    snprintf(record->path, sizeof record->path, "%s", path ? path : "");
    record_run_init(&record->run);
    if (length == 0) {
        place.line = 1;
        return wrong(&place, "empty file; a record begins with a run line", "");
    }
    if (parse_lines(text, length, &place, record) == 0)
        return 0;
    record_free(record);
    return -1;
}

static char *read_file(const char *path, size_t *length, struct error *err) {
    size_t room = 1u << 16, count;
    char *text = NULL;
    FILE *file = fopen(path, "re");

    if (!file) {
        error_set(err, EXIT_USAGE, "cannot read the record: %.300s: %s", path, strerror(errno));
        return NULL;
    }
    *length = 0;
    do {
        if (*length + room > FILE_BYTES_MOST) {
            error_set(err, EXIT_USAGE, "cannot read the record: %.300s: larger than %u bytes", path,
                      FILE_BYTES_MOST);
            goto fail;
        }
        char *grown = realloc(text, *length + room);
        if (!grown) {
            error_set(err, EXIT_FAILED, "out of memory: the record %.300s", path);
            goto fail;
        }
        text = grown;
        errno = 0;
        count = fread(text + *length, 1, room, file);
        *length += count;
        room = *length; /* doubles */
    } while (count > 0 && !feof(file) && !ferror(file));
    if (ferror(file)) {
        error_set(err, EXIT_USAGE, "cannot read the record: %.300s: %s", path, strerror(errno));
        goto fail;
    }
    fclose(file);
    return text;
fail:
    free(text);
    fclose(file);
    return NULL;
}

int record_read(const char *path, struct record *record, struct error *err) {
    size_t length;
    char *text = read_file(path, &length, err);
    if (!text)
        return -1;
    int result = record_parse(text, length, path, record, err);
    free(text);
    return result;
}

/* --- lines of the worker's pipe ----------------------------------------------------------------
 */

static json_t *load_line(const char *line, size_t length, const char *wanted, struct place *place) {
    json_error_t problem;
    json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
    const char *type;

    if (!root) {
        not_json(place, &problem);
        return NULL;
    }
    if (!json_is_object(root)) {
        wrong_type(place, "an object", root);
    } else if ((type = line_type(root, place))) {
        if (strcmp(type, wanted) == 0)
            return root;
        wrong(place, "not the line type expected", type);
    }
    json_decref(root);
    return NULL;
}

int record_parse_case(const char *line, size_t length, struct record_case *record_case,
                      struct error *err) {
    struct place place = {.err = err};
    json_t *root = load_line(line, length, record_case_fields.type, &place);
    if (!root)
        return -1;
    int result = read_case(root, &place, record_case);
    json_decref(root);
    return result;
}

int record_parse_counters(const char *line, size_t length, struct record_counters *counters,
                          struct error *err) {
    struct place place = {.err = err};
    json_t *root = load_line(line, length, record_counters_fields.type, &place);
    if (!root)
        return -1;
    int result = read_counters(root, &place, counters);
    json_decref(root);
    return result;
}

int record_parse_timeline(const char *line, size_t length, struct record_timeline *timeline,
                          struct error *err) {
    struct place place = {.err = err};
    json_t *root = load_line(line, length, record_timeline_fields.type, &place);
    if (!root)
        return -1;
    int result = read_timeline(root, &place, timeline);
    json_decref(root);
    return result;
}
