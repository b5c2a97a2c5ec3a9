/* Reads suite.json. The file is untrusted input: unknown keys, wrong types and numbers that would
 * overflow a size or never finish a draw are refused, with the file's name and the key. */
#include "suite.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/sha256.h"

#define SUITE_BYTES_MOST (1u << 20)

/* Keys of the file's objects; whatever else is there is a slip of the pen. */
static const char *const suite_keys[] = {"name",          "title",
                                         "seed",          "routing",
                                         "matched_ratio", "token_matched_ratio",
                                         "atol_over_rms", "ranked",
                                         "cases",         "hidden_size",
                                         "rtol",          "moe_intermediate_size",
                                         "num_experts",   "num_experts_per_tok",
                                         "notes"};
static const char *const case_keys[] = {"case",
                                        "uuid",
                                        "batch_seq_len",
                                        "hidden_size",
                                        "moe_intermediate_size",
                                        "num_experts",
                                        "num_experts_per_tok",
                                        "atol",
                                        "rtol",
                                        "matched_ratio",
                                        "published_t_sol_ms",
                                        "published_t_baseline_ms",
                                        "published_t_baseline_remeasured_ms"};
static const char *const routing_keys[] = {"kind", "exponent", "hot_fraction"};
static const char *const routing_kinds[] = {
    [ROUTING_UNIFORM] = "uniform", [ROUTING_ZIPF] = "zipf", [ROUTING_ONE_HOT] = "one_hot"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An object of the file, what it is called in an error, and the object whose values it inherits. */
struct source {
    const json_t *object;
    const json_t *defaults; /* NULL: none */
    char where[560];        /* "cases/tiny/suite.json: case 3" */
    struct error *err;
};

static int wrong(const struct source *source, const char *key, const char *what) {
    return error_set(source->err, EXIT_USAGE, "%.350s: %s: %s", source->where, key, what);
}

static int check_keys(const struct source *source, const char *const *keys, size_t count) {
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)source->object, key, value) {
        size_t i = 0;
        while (i < count && strcmp(keys[i], key) != 0)
            i++;
        if (i < count)
            continue;
        const char *nearest = error_nearest(key, keys, count);
        return error_set(source->err, EXIT_USAGE, "%.300s: unknown key: %.60s%s%s", source->where,
                         key, nearest ? "; the nearest is " : "", nearest ? nearest : "");
    }
    return 0;
}

static const json_t *look_up(const struct source *source, const char *key) {
    const json_t *value = json_object_get(source->object, key);
    return value || !source->defaults ? value : json_object_get(source->defaults, key);
}

/* A number in [least, most]. An absent one leaves *number alone, and is an error if `required`. */
static int take_number(const struct source *source, const char *key, bool required, double least,
                       double most, double *number) {
    const json_t *value = look_up(source, key);
    char what[96];

    if (!value)
        return required ? wrong(source, key, "missing") : 0;
    if (!json_is_number(value))
        return wrong(source, key, "not a number");
    double found = json_number_value(value);
    if (!(found >= least && found <= most)) {
        snprintf(what, sizeof what, "out of range: %g; from %g to %g", found, least, most);
        return wrong(source, key, what);
    }
    *number = found;
    return 0;
}

static int take_integer(const struct source *source, const char *key, double least, double most,
                        int64_t *integer) {
    double number = NAN;
    if (take_number(source, key, true, least, most, &number))
        return -1;
    if (number != floor(number))
        return wrong(source, key, "not a whole number");
    *integer = (int64_t)number;
    return 0;
}

static int take_text(const struct source *source, const char *key, char *text, size_t size) {
    const json_t *value = json_object_get(source->object, key);
    const char *found = json_string_value(value);

    if (!found || !*found)
        return wrong(source, key, value ? "not a text" : "missing");
    if (strlen(found) >= size)
        return wrong(source, key, "too long");
    for (const char *c = found; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return wrong(source, key, "has control characters");
    memcpy(text, found, strlen(found) + 1);
    return 0;
}

/* The name becomes part of file names. */
static int check_name(const struct source *source, const char *name) {
    size_t valid = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.");
    if (name[valid] || name[0] == '.' || name[0] == '-')
        return wrong(source, "name", "only lower-case letters, digits, and - _ . inside");
    return 0;
}

static int read_routing(const struct source *suite_source, struct suite *suite) {
    struct source source = *suite_source;
    char kind[32];
    size_t i = 0;

    source.object = json_object_get(suite_source->object, "routing");
    if (!source.object)
        return 0; /* uniform */
    snprintf(source.where + strlen(source.where), sizeof source.where - strlen(source.where),
             ": routing");
    if (!json_is_object(source.object))
        return wrong(suite_source, "routing", "not an object");
    if (check_keys(&source, routing_keys, COUNT(routing_keys)) ||
        take_text(&source, "kind", kind, sizeof kind))
        return -1;
    while (i < COUNT(routing_kinds) && strcmp(kind, routing_kinds[i]) != 0)
        i++;
    if (i == COUNT(routing_kinds))
        return wrong(&source, "kind", "none of uniform, zipf, one_hot");
    suite->routing = (enum suite_routing)i;
    if (suite->routing == ROUTING_ZIPF)
        return take_number(&source, "exponent", true, 0, 8, &suite->zipf_exponent);
    if (suite->routing == ROUTING_ONE_HOT)
        return take_number(&source, "hot_fraction", true, 0, 1, &suite->hot_fraction);
    return 0;
}

/* Repeats are drawn again (draw.h), so the last of K distinct experts must stay likely enough. */
static int check_zipf(const struct source *source, const struct suite *suite,
                      const struct moe_shape *shape) {
    double total = 0.0, left = 0.0;

    for (int64_t e = 0; e < shape->num_experts; e++) {
        double weight = pow((double)(e + 1), -suite->zipf_exponent);
        total += weight;
        if (e >= shape->num_experts_per_tok - 1)
            left += weight;
    }
    if (left / total < 1.0 / 1024.0)
        return wrong(source, "routing",
                     "exponent too steep: after the most likely experts less than 1/1024 is left");
    return 0;
}

/* Sizes stay far below what 64 bits hold; rows (T * K) fit 32 bits (kernels count on that). */
static int read_shape(const struct source *source, const struct suite *suite,
                      struct moe_shape *shape) {
    if (take_integer(source, "batch_seq_len", 1, 1 << 24, &shape->batch_seq_len) ||
        take_integer(source, "hidden_size", 1, 1 << 20, &shape->hidden_size) ||
        take_integer(source, "moe_intermediate_size", 1, 1 << 20, &shape->moe_intermediate_size) ||
        take_integer(source, "num_experts", 1, SUITE_EXPERTS_MOST, &shape->num_experts) ||
        take_integer(source, "num_experts_per_tok", 1, 256, &shape->num_experts_per_tok))
        return -1;
    if (shape->num_experts_per_tok > shape->num_experts)
        return wrong(source, "num_experts_per_tok", "more than num_experts");
    if (shape->batch_seq_len * shape->num_experts_per_tok > INT32_MAX)
        return wrong(source, "batch_seq_len", "times num_experts_per_tok does not fit 32 bits");
    if (suite->routing == ROUTING_ZIPF)
        return check_zipf(source, suite, shape);
    return 0;
}

/* Notes and uuids are for people and other tools: nothing here depends on them. */
static int check_notes(const struct source *source) {
    const json_t *notes = json_object_get(source->object, "notes");
    size_t i;
    json_t *note;

    if (notes && !json_is_array(notes))
        return wrong(source, "notes", "not an array of texts");
    json_array_foreach((json_t *)notes, i, note) {
        if (!json_is_string(note))
            return wrong(source, "notes", "not an array of texts");
    }
    return 0;
}

static int check_uuid(const struct source *source) {
    const json_t *uuid = json_object_get(source->object, "uuid");
    return uuid && !json_is_string(uuid) ? wrong(source, "uuid", "not a text") : 0;
}

static int read_case(const struct source *suite_source, struct suite *suite, size_t index) {
    struct suite_case *out = &suite->cases[index];
    struct source source = *suite_source;
    int64_t number = 0;

    source.object = json_array_get(json_object_get(suite_source->object, "cases"), index);
    source.defaults = suite_source->object;
    snprintf(source.where + strlen(source.where), sizeof source.where - strlen(source.where),
             ": case %zu", index + 1);
    if (!json_is_object(source.object))
        return wrong(suite_source, "cases", "not an array of objects");
    out->atol = out->rtol = NAN;
    out->published_t_sol_ms = NAN;
    out->published_t_baseline_ms = NAN;
    out->published_t_baseline_remeasured_ms = NAN;
    if (check_keys(&source, case_keys, COUNT(case_keys)) || check_uuid(&source) ||
        take_integer(&source, "case", 1, SUITE_MAX_CASES, &number))
        return -1;
    if (number != (int64_t)index + 1)
        return wrong(&source, "case", "not the case's place in the suite, which begins with 1");
    out->number = (int)number;
    if (read_shape(&source, suite, &out->shape) ||
        take_number(&source, "atol", false, 0, 1e6, &out->atol) ||
        take_number(&source, "rtol", true, 0, 1, &out->rtol) ||
        take_number(&source, "matched_ratio", true, 0, 1, &out->matched_ratio) ||
        take_number(&source, "published_t_sol_ms", suite->ranked, 1e-9, 1e9,
                    &out->published_t_sol_ms) ||
        take_number(&source, "published_t_baseline_ms", suite->ranked, 1e-9, 1e9,
                    &out->published_t_baseline_ms) ||
        take_number(&source, "published_t_baseline_remeasured_ms", false, 1e-9, 1e9,
                    &out->published_t_baseline_remeasured_ms))
        return -1;
    if (isnan(out->atol) && isnan(suite->atol_over_rms))
        return wrong(&source, "atol", "missing, and the suite has no atol_over_rms");
    return 0;
}

static int read_head(const struct source *source, struct suite *suite) {
    const json_t *ranked = json_object_get(source->object, "ranked");
    int64_t seed = 0;

    if (!json_is_object(source->object))
        return wrong(source, "suite", "not an object");
    if (check_keys(source, suite_keys, COUNT(suite_keys)) ||
        take_text(source, "name", suite->name, sizeof suite->name) ||
        check_name(source, suite->name) ||
        take_text(source, "title", suite->title, sizeof suite->title) ||
        take_integer(source, "seed", 0, 9007199254740992.0, &seed) ||
        take_number(source, "matched_ratio", false, 0, 1, &suite->matched_ratio) ||
        take_number(source, "token_matched_ratio", true, 0, 1, &suite->token_matched_ratio) ||
        take_number(source, "atol_over_rms", false, 0, 1, &suite->atol_over_rms) ||
        read_routing(source, suite) || check_notes(source))
        return -1;
    suite->seed = (uint64_t)seed;
    if (ranked && !json_is_boolean(ranked))
        return wrong(source, "ranked", "not true or false");
    suite->ranked = json_is_true(ranked);
    return 0;
}

static int read_root(const struct source *source, struct suite *suite) {
    suite->zipf_exponent = suite->hot_fraction = suite->atol_over_rms = suite->matched_ratio = NAN;
    if (read_head(source, suite))
        return -1;
    const json_t *cases = json_object_get(source->object, "cases");
    if (!json_is_array(cases) || json_array_size(cases) == 0)
        return wrong(source, "cases", cases ? "not an array with a case" : "missing");
    if (json_array_size(cases) > SUITE_MAX_CASES)
        return wrong(source, "cases", "more than 256");
    suite->case_count = json_array_size(cases);
    for (size_t i = 0; i < suite->case_count; i++)
        if (read_case(source, suite, i))
            return -1;
    return 0;
}

/* --- the file -------------------------------------------------------------------------------- */

static int read_text(const char *path, char **text, size_t *length, struct error *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, EXIT_USAGE, "cannot read the suite: %.300s: %s", path,
                         strerror(errno));
    *text = malloc(SUITE_BYTES_MOST);
    *length = *text ? fread(*text, 1, SUITE_BYTES_MOST, file) : 0;
    bool failed = ferror(file) || !*text;
    fclose(file);
    if (!failed && *length < SUITE_BYTES_MOST)
        return 0;
    free(*text);
    return error_set(err, EXIT_USAGE, "cannot read the suite: %.300s: %s", path,
                     failed ? "read error" : "larger than 1 MiB");
}

const struct suite_case *suite_find_case(const struct suite *suite, double number) {
    for (size_t i = 0; i < suite->case_count; i++)
        if (suite->cases[i].number == number)
            return &suite->cases[i];
    return NULL;
}

double suite_matched_ratio(const struct suite *suite, double number) {
    const struct suite_case *suite_case = suite_find_case(suite, number);
    return suite_case ? suite_case->matched_ratio : suite->matched_ratio;
}

int suite_parse(const char *text, size_t length, const char *folder, struct suite *suite,
                struct error *err) {
    struct source source = {.err = err};
    json_error_t problem;

    memset(suite, 0, sizeof *suite);
    if (strlen(folder) >= sizeof suite->directory)
        return error_set(err, EXIT_USAGE, "path too long: %.80s...", folder);
    snprintf(suite->directory, sizeof suite->directory, "%s", folder);
    snprintf(source.where, sizeof source.where, "%s/suite.json", folder);
    sha256_hex(text, length, suite->hash);
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        return error_set(err, EXIT_USAGE, "%.300s:%d: not JSON: %.120s", source.where, problem.line,
                         problem.text);
    source.object = root;
    int result = read_root(&source, suite);
    json_decref(root);
    return result;
}

static int read_folder(const char *folder, struct suite *suite, struct error *err) {
    char path[sizeof suite->directory + sizeof "/suite.json"];
    size_t length = 0;
    char *text = NULL;

    snprintf(path, sizeof path, "%s/suite.json", folder);
    if (read_text(path, &text, &length, err))
        return -1;
    int result = suite_parse(text, length, folder, suite, err);
    free(text);
    return result;
}

static int unknown_suite(const char *name, char **names, size_t count, struct error *err) {
    const char *nearest = error_nearest(name, (const char *const *)names, count);
    if (nearest)
        return error_set(err, EXIT_USAGE, "unknown suite: %.80s; the nearest is %s", name, nearest);
    return error_set(err, EXIT_USAGE,
                     "unknown suite: %.80s; `moesol list suites` names them, a path has a slash",
                     name);
}

/* A record names its suite by this name, so it must lead back to the folder. */
static int read_named(const char *name, const char *folder, struct suite *suite,
                      struct error *err) {
    if (read_folder(folder, suite, err))
        return -1;
    if (strcmp(suite->name, name) == 0)
        return 0;
    return error_set(err, EXIT_USAGE, "%.300s/suite.json: name: not the folder's: %s", folder,
                     suite->name);
}

int suite_read(const char *name_or_path, struct suite *suite, struct error *err) {
    char folder[sizeof suite->directory];
    size_t count, length = strlen(name_or_path), found = 0;

    memset(suite, 0, sizeof *suite);
    if (strchr(name_or_path, '/') || strcmp(name_or_path, ".") == 0) {
        while (length > 1 && name_or_path[length - 1] == '/')
            length--;
        if (length >= sizeof folder)
            return error_set(err, EXIT_USAGE, "path too long: %.80s...", name_or_path);
        snprintf(folder, sizeof folder, "%.*s", (int)length, name_or_path);
        return read_folder(folder, suite, err);
    }
    if (data_path(name_or_path, folder, sizeof folder, err))
        return -1;
    char **names = suite_names(&count);
    while (found < count && strcmp(names[found], name_or_path) != 0)
        found++;
    int result = found < count ? read_named(name_or_path, folder, suite, err)
                               : unknown_suite(name_or_path, names, count, err);
    suite_names_free(names);
    return result;
}
