/* entry.json: read with its first fault remembered, and written. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/file.h"
#include "entry.h"

/* A folder is carried by a pull request; its summary is a few kilobytes. */
static const size_t entry_bytes_most = 1 << 20;

/* --- reading --------------------------------------------------------------------------------- */

/* The first fault ends the reading: later takes do nothing. */
struct taker {
    const char *folder;
    char where[96]; /* "summary.cases[2]." */
    struct error *err;
    bool failed;
};

static void fault(struct taker *taker, const char *key, const char *what) {
    if (!taker->failed)
        error_set(taker->err, EXIT_FAILED, "%.300s/%s: %s%s: %s", taker->folder, ENTRY_FILE,
                  taker->where, key, what);
    taker->failed = true;
}

static void take_text(struct taker *taker, const json_t *object, const char *key, bool required,
                      char *text, size_t size) {
    const json_t *value = json_object_get(object, key);

    text[0] = '\0';
    if (!value || json_is_null(value)) {
        if (required)
            fault(taker, key, "missing");
        return;
    }
    if (!json_is_string(value) || json_string_length(value) >= size)
        fault(taker, key, json_is_string(value) ? "too long" : "is no text");
    else
        memcpy(text, json_string_value(value), json_string_length(value) + 1);
}

/* Not negative, but for a deviation; NaN where it may be missing and is. */
static void take_number(struct taker *taker, const json_t *object, const char *key, bool required,
                        double least, double *number) {
    const json_t *value = json_object_get(object, key);

    *number = NAN;
    if (!value || json_is_null(value)) {
        if (required)
            fault(taker, key, "missing");
        return;
    }
    if (!json_is_number(value) || !(json_number_value(value) >= least))
        fault(taker, key, json_is_number(value) ? "out of range" : "is no number");
    else
        *number = json_number_value(value);
}

static void take_flag(struct taker *taker, const json_t *object, const char *key, bool *flag) {
    const json_t *value = json_object_get(object, key);

    *flag = json_is_true(value);
    if (!json_is_boolean(value))
        fault(taker, key, "is neither true nor false");
}

static int take_name(struct taker *taker, const json_t *object, const char *key,
                     const char *const *names, int count) {
    char text[32];

    take_text(taker, object, key, true, text, sizeof text);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    fault(taker, key, "unknown word");
    return 0;
}

static void take_hash(struct taker *taker, const json_t *object, const char *key, bool required,
                      char hash[65]) {
    take_text(taker, object, key, required, hash, 65);
    if (hash[0] && (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64))
        fault(taker, key, "is no SHA-256");
}

static void take_path(struct taker *taker, const json_t *object, struct entry_file *file) {
    take_text(taker, object, "path", true, file->path, sizeof file->path);
    take_hash(taker, object, "sha256", true, file->sha256);
    if (!entry_path_is_inside(file->path))
        fault(taker, "path", "leads out of the folder");
}

/* The elements of an array, zeroed; NULL where there are none or something is wrong. */
static void *take_array(struct taker *taker, const json_t *object, const char *key, size_t most,
                        size_t size, size_t *count) {
    const json_t *array = json_object_get(object, key);
    void *elements = NULL;

    *count = 0;
    if (array && !json_is_array(array))
        fault(taker, key, "is no array");
    else if (json_array_size(array) > most)
        fault(taker, key, "has too many elements");
    else if (json_array_size(array) > 0 && !(elements = calloc(json_array_size(array), size)))
        fault(taker, key, "out of memory");
    if (elements)
        *count = json_array_size(array);
    return elements;
}

static void enter(struct taker *taker, const char *key, size_t index) {
    snprintf(taker->where, sizeof taker->where, "%.60s[%zu].", key, index);
}

static void take_cases(struct taker *taker, const json_t *summary, struct entry *entry) {
    entry->cases = take_array(taker, summary, "cases", SUITE_MAX_CASES, sizeof *entry->cases,
                              &entry->case_count);
    for (size_t i = 0; i < entry->case_count; i++) {
        struct entry_case *c = &entry->cases[i];
        const json_t *object = json_array_get(json_object_get(summary, "cases"), i);
        double number;
        enter(taker, "summary.cases", i);
        take_number(taker, object, "case", true, 1, &number);
        c->number = number <= SUITE_MAX_CASES ? (int)number : 0;
        take_number(taker, object, "batch_seq_len", true, 1, &c->batch_seq_len);
        take_number(taker, object, "latency_ms", true, 0, &c->latency_ms);
        take_number(taker, object, "low_ms", false, 0, &c->low_ms);
        take_number(taker, object, "high_ms", false, 0, &c->high_ms);
        take_number(taker, object, "t_sol_ms", false, 0, &c->t_sol_ms);
        c->status = (enum record_status)take_name(taker, object, "status", record_status_names,
                                                  STATUS_COUNT);
    }
}

static void take_files(struct taker *taker, const json_t *root, struct entry *entry) {
    entry->files = take_array(taker, root, "files", ENTRY_FILES_MOST, sizeof *entry->files,
                              &entry->file_count);
    for (size_t i = 0; i < entry->file_count; i++) {
        enter(taker, "files", i);
        take_path(taker, json_array_get(json_object_get(root, "files"), i), &entry->files[i]);
    }
}

static void take_reproductions(struct taker *taker, const json_t *root, struct entry *entry) {
    entry->reproductions = take_array(taker, root, "reproductions", ENTRY_REPRODUCTIONS_MOST,
                                      sizeof *entry->reproductions, &entry->reproduction_count);
    for (size_t i = 0; i < entry->reproduction_count; i++) {
        struct entry_reproduction *r = &entry->reproductions[i];
        const json_t *object = json_array_get(json_object_get(root, "reproductions"), i);
        double number;
        enter(taker, "reproductions", i);
        take_path(taker, object, &r->record);
        take_text(taker, object, "date", true, r->date, sizeof r->date);
        take_hash(taker, object, "source_hash", false, r->source_hash);
        take_number(taker, object, "mean_deviation", true, -1, &r->mean_deviation);
        take_number(taker, object, "worst_deviation", true, -1, &r->worst_deviation);
        take_number(taker, object, "worst_case", true, 1, &number);
        r->worst_case = number <= SUITE_MAX_CASES ? (int)number : 0;
        take_flag(taker, object, "same_device", &r->same_device);
    }
}

static void take_kernel(struct taker *taker, const json_t *object, struct record_kernel *kernel) {
    snprintf(taker->where, sizeof taker->where, "kernel.");
    take_text(taker, object, "name", true, kernel->name, sizeof kernel->name);
    take_text(taker, object, "author", false, kernel->author, sizeof kernel->author);
    take_text(taker, object, "license", false, kernel->license, sizeof kernel->license);
    take_text(taker, object, "source", false, kernel->source, sizeof kernel->source);
    take_hash(taker, object, "source_hash", false, kernel->source_hash);
    take_text(taker, object, "value_type", true, kernel->value_type, sizeof kernel->value_type);
    take_flag(taker, object, "ranked", &kernel->ranked);
    take_flag(taker, object, "library_only", &kernel->library_only);
    take_flag(taker, object, "plugin", &kernel->plugin);
}

static void take_origin(struct taker *taker, const json_t *root, struct entry *entry) {
    const json_t *suite = json_object_get(root, "suite"), *device = json_object_get(root, "device");

    snprintf(taker->where, sizeof taker->where, "suite.");
    take_text(taker, suite, "name", true, entry->suite_name, sizeof entry->suite_name);
    take_hash(taker, suite, "hash", true, entry->suite_hash);
    take_number(taker, suite, "cases", true, 1, &entry->suite_case_count);
    snprintf(taker->where, sizeof taker->where, "device.");
    take_text(taker, device, "kind", true, entry->device.kind, sizeof entry->device.kind);
    take_text(taker, device, "short_name", true, entry->device_short, sizeof entry->device_short);
    take_text(taker, device, "name", false, entry->device.name, sizeof entry->device.name);
    take_hash(taker, device, "uuid_hash", false, entry->device.uuid_hash);
    take_kernel(taker, json_object_get(root, "kernel"), &entry->kernel);
}

static void take_entry(struct taker *taker, const json_t *root, struct entry *entry) {
    const json_t *summary = json_object_get(root, "summary");
    double schema;

    take_number(taker, root, "schema", true, 1, &schema);
    if (schema > ENTRY_SCHEMA)
        fault(taker, "schema", "of a newer version of this tool");
    take_text(taker, root, "name", true, entry->name, sizeof entry->name);
    take_text(taker, root, "author", false, entry->author, sizeof entry->author);
    take_text(taker, root, "license", false, entry->license, sizeof entry->license);
    take_text(taker, root, "source", false, entry->source, sizeof entry->source);
    take_text(taker, root, "date", true, entry->date, sizeof entry->date);
    entry->status =
        (enum entry_status)take_name(taker, root, "status", entry_status_names, ENTRY_STATUS_COUNT);
    take_text(taker, root, "reason", entry->status >= ENTRY_WITHDRAWN, entry->reason,
              sizeof entry->reason);
    take_text(taker, root, "note", false, entry->note, sizeof entry->note);
    take_text(taker, root, "baseline", false, entry->baseline, sizeof entry->baseline);
    take_text(taker, root, "tool_version", false, entry->tool_version, sizeof entry->tool_version);
    take_text(taker, root, "source_revision", false, entry->source_revision,
              sizeof entry->source_revision);
    take_text(taker, root, "command", false, entry->command, sizeof entry->command);
    take_origin(taker, root, entry);
    snprintf(taker->where, sizeof taker->where, "summary.");
    take_number(taker, summary, "rounds", true, 1, &entry->round_count);
    take_number(taker, summary, "mean_latency_ms", true, 0, &entry->mean_latency_ms);
    take_number(taker, summary, "geomean_latency_ms", true, 0, &entry->geomean_latency_ms);
    take_cases(taker, summary, entry);
    snprintf(taker->where, sizeof taker->where, "record.");
    take_path(taker, json_object_get(root, "record"), &entry->record);
    taker->where[0] = '\0';
    take_files(taker, root, entry);
    taker->where[0] = '\0';
    take_reproductions(taker, root, entry);
}

int entry_read(const char *folder, struct entry *entry, struct error *err) {
    struct taker taker = {.folder = folder, .err = err};
    char path[1200], *text;
    json_error_t problem;
    size_t size;

    memset(entry, 0, sizeof *entry);
    snprintf(path, sizeof path, "%s/%s", folder, ENTRY_FILE);
    if (file_read(path, entry_bytes_most, &text, &size, err) != 0)
        return -1;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    free(text);
    if (!root)
        return error_set(err, EXIT_FAILED, "%.300s:%d: not JSON: %.120s", path, problem.line,
                         problem.text);
    if (json_is_object(root))
        take_entry(&taker, root, entry);
    else
        fault(&taker, "", "is no object");
    json_decref(root);
    if (!taker.failed)
        return 0;
    entry_free(entry);
    return -1;
}

/* --- writing --------------------------------------------------------------------------------- */

static json_t *text(const char *value) {
    json_t *string = value[0] ? json_string(value) : json_null();
    return string ? string : json_null();
}

static json_t *number(double value) {
    if (!isfinite(value))
        return json_null();
    return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value)
                                                       : json_real(value);
}

static json_t *file_object(const struct entry_file *file) {
    return json_pack("{s:o, s:o}", "path", text(file->path), "sha256", text(file->sha256));
}

static json_t *cases_array(const struct entry *entry) {
    json_t *array = json_array();

    for (size_t i = 0; i < entry->case_count; i++) {
        const struct entry_case *c = &entry->cases[i];
        json_array_append_new(array, json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:s}", "case",
                                               c->number, "batch_seq_len", number(c->batch_seq_len),
                                               "latency_ms", number(c->latency_ms), "low_ms",
                                               number(c->low_ms), "high_ms", number(c->high_ms),
                                               "t_sol_ms", number(c->t_sol_ms), "status",
                                               record_status_names[c->status]));
    }
    return array;
}

static json_t *files_array(const struct entry *entry) {
    json_t *array = json_array();

    for (size_t i = 0; i < entry->file_count; i++)
        json_array_append_new(array, file_object(&entry->files[i]));
    return array;
}

static json_t *reproductions_array(const struct entry *entry) {
    json_t *array = json_array();

    for (size_t i = 0; i < entry->reproduction_count; i++) {
        const struct entry_reproduction *r = &entry->reproductions[i];
        json_t *object = file_object(&r->record);
        json_object_set_new(object, "date", text(r->date));
        json_object_set_new(object, "source_hash", text(r->source_hash));
        json_object_set_new(object, "mean_deviation", number(r->mean_deviation));
        json_object_set_new(object, "worst_deviation", number(r->worst_deviation));
        json_object_set_new(object, "worst_case", json_integer(r->worst_case));
        json_object_set_new(object, "same_device", json_boolean(r->same_device));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *kernel_object(const struct record_kernel *kernel) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b}", "name", text(kernel->name),
                     "author", text(kernel->author), "license", text(kernel->license), "source",
                     text(kernel->source), "source_hash", text(kernel->source_hash), "value_type",
                     text(kernel->value_type), "ranked", kernel->ranked, "library_only",
                     kernel->library_only, "plugin", kernel->plugin);
}

static json_t *entry_object(const struct entry *entry) {
    json_t *root = json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "schema",
                             ENTRY_SCHEMA, "name", text(entry->name), "author", text(entry->author),
                             "license", text(entry->license), "source", text(entry->source), "date",
                             text(entry->date), "status", entry_status_names[entry->status],
                             "reason", text(entry->reason), "note", text(entry->note));
    json_t *rest = json_pack(
        "{s:{s:o, s:o, s:o}, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:o}", "suite", "name",
        text(entry->suite_name), "hash", text(entry->suite_hash), "cases",
        number(entry->suite_case_count), "device", "kind", text(entry->device.kind), "short_name",
        text(entry->device_short), "name", text(entry->device.name), "uuid_hash",
        text(entry->device.uuid_hash), "kernel", kernel_object(&entry->kernel), "baseline",
        text(entry->baseline), "tool_version", text(entry->tool_version), "source_revision",
        text(entry->source_revision), "command", text(entry->command));
    json_t *summary =
        json_pack("{s:o, s:o, s:o, s:o}", "rounds", number(entry->round_count), "mean_latency_ms",
                  number(entry->mean_latency_ms), "geomean_latency_ms",
                  number(entry->geomean_latency_ms), "cases", cases_array(entry));
    if (!root || !rest || !summary || json_object_update(root, rest) ||
        json_object_set(root, "summary", summary) ||
        json_object_set_new(root, "record", file_object(&entry->record)) ||
        json_object_set_new(root, "files", files_array(entry)) ||
        json_object_set_new(root, "reproductions", reproductions_array(entry))) {
        json_decref(root);
        root = NULL;
    }
    json_decref(rest);
    json_decref(summary);
    return root;
}

int entry_write(const char *folder, const struct entry *entry, struct error *err) {
    char path[1200];
    json_t *root = entry_object(entry);
    char *dump = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    size_t length = dump ? strlen(dump) : 0;
    int result = -1;

    json_decref(root);
    snprintf(path, sizeof path, "%s/%s", folder, ENTRY_FILE);
    if (!dump) {
        error_set(err, EXIT_FAILED, "%.300s: out of memory, or a text in it is not UTF-8", path);
    } else {
        dump[length] = '\n'; /* in place of the NUL */
        result = file_write(path, dump, length + 1, err);
    }
    free(dump);
    return result;
}
