/* Reads baselines.json and the record or column that it names. */
#include "baseline.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "entry.h"
#include "summary.h"

static void clear(struct baseline *baseline) {
    baseline->label[0] = '\0';
    for (size_t i = 0; i < SUITE_MAX_CASES; i++)
        baseline->t_ms[i] = NAN;
}

static int take_record(const struct suite *suite, const struct record *record, const char *kernel,
                       struct baseline *baseline, struct error *err) {
    const struct record_run *run = &record->run;
    struct summary summary;

    if (strcmp(run->kernel.name, kernel) != 0)
        return error_set(err, EXIT_FAILED, "baseline: %s is of kernel %s, baselines.json says %s",
                         record->path, run->kernel.name, kernel);
    if (!run->kernel.library_only)
        return error_set(err, EXIT_FAILED, "baseline: %s: kernel %s is not library-only",
                         record->path, kernel);
    if (strcmp(run->suite_hash, suite->hash) != 0)
        return error_set(err, EXIT_FAILED,
                         "baseline: %s was measured with another version of suite %s; "
                         "measure it again",
                         record->path, suite->name);
    if (summarize_record(record, &summary, err) != 0)
        return -1;
    for (size_t i = 0; i < suite->case_count; i++)
        for (size_t j = 0; j < summary.case_count; j++)
            if (summary.cases[j].number == suite->cases[i].number &&
                case_has_latency(&summary.cases[j]))
                baseline->t_ms[i] = summary.cases[j].latency_ns.median / 1e6;
    summary_free(&summary);
    return 0;
}

/* A record that was found to be wrong scores nobody. */
static int check_entry(const char *path, struct error *err) {
    struct error unread = {0};
    struct entry entry;
    char folder[1024];

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (entry_read(folder, &entry, &unread) != 0)
        return 0; /* no entry */
    int result = 0;
    if (entry.status == ENTRY_INVALID)
        result = error_set(err, EXIT_FAILED,
                           "baseline: %s: the entry is invalid: %.200s; name another record in "
                           "baselines.json, as the next version",
                           folder, entry.reason);
    entry_free(&entry);
    return result;
}

static int read_source(const struct suite *suite, const char *source, const char *kernel,
                       struct baseline *baseline, struct error *err) {
    struct record record;
    char path[1024];

    if (strcmp(source, "published") == 0) {
        for (size_t i = 0; i < suite->case_count; i++)
            baseline->t_ms[i] = suite->cases[i].published_t_baseline_ms;
        return 0;
    }
    if (!entry_path_is_inside(source)) /* a suite file must not lead out of its folder */
        return error_set(err, EXIT_FAILED,
                         "%s/baselines.json: source: %s; must be a path under the suite's folder",
                         suite->directory, source);
    if (!kernel)
        return error_set(err, EXIT_FAILED, "%s/baselines.json: %s: no kernel is named",
                         suite->directory, source);
    snprintf(path, sizeof path, "%s/%s", suite->directory, source);
    if (check_entry(path, err) != 0 || record_read(path, &record, err) != 0)
        return -1;
    int result = take_record(suite, &record, kernel, baseline, err);
    record_free(&record);
    return result;
}

static int read_row(const struct suite *suite, const json_t *row, struct baseline *baseline,
                    struct error *err) {
    const json_t *version = json_object_get(row, "version");
    const char *source = json_string_value(json_object_get(row, "source"));
    const char *kernel = json_string_value(json_object_get(row, "kernel"));

    if (!json_is_integer(version) || json_integer_value(version) < 1 || !source)
        return error_set(err, EXIT_FAILED,
                         "%s/baselines.json: a row needs \"version\" (1 or more) and \"source\"",
                         suite->directory);
    if (read_source(suite, source, kernel, baseline, err) != 0)
        return -1;
    snprintf(baseline->label, sizeof baseline->label, "v%lld, %s",
             (long long)json_integer_value(version),
             kernel ? kernel : "the source's own baseline column");
    return 0;
}

int baseline_read(const struct suite *suite, const char *device_short, struct baseline *baseline,
                  struct error *err) {
    char path[1024];
    json_error_t json_error;
    int result = 0;

    clear(baseline);
    snprintf(path, sizeof path, "%s/baselines.json", suite->directory);
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT ? 0 : error_set(err, EXIT_FAILED, "%s: %s", path, strerror(errno));
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &json_error);
    fclose(file);
    if (!root)
        return error_set(err, EXIT_FAILED, "%s:%d: not JSON: %s", path, json_error.line,
                         json_error.text);
    const json_t *row = json_object_get(root, device_short);
    if (row && read_row(suite, row, baseline, err) != 0) {
        clear(baseline);
        result = -1;
    }
    json_decref(root);
    return result;
}

double baseline_case_ms(const struct suite *suite, const struct baseline *baseline, int number) {
    for (size_t i = 0; i < suite->case_count; i++)
        if (suite->cases[i].number == number)
            return baseline->t_ms[i];
    return NAN;
}
