/* Reads workload.jsonl: the values of the axes, where the inputs come from, and the tolerance of
 * each workload. */
#include "workload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The benchmark's own defaults, of a workload that says nothing. */
static const double default_atol = 0.01, default_rtol = 0.01, default_ratio = 0.99;

static const char *const workload_keys[] = {"uuid", "axes", "inputs", "tolerance", NULL};
static const char *const trace_keys[] = {"definition", "workload", "solution", "evaluation", NULL};
static const char *const tolerance_keys[] = {"max_atol",
                                             "max_rtol",
                                             "required_matched_ratio",
                                             "required_match_ratio",
                                             "max_error_cap",
                                             "allow_negative_inf",
                                             NULL};
static const char *const input_keys[] = {"type", NULL};

int place_wrong(const struct place *place, const char *format, ...) {
    char text[320];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (place->line)
        return error_set(place->err, EXIT_USAGE, "%.150s:%zu: %s", place->path, place->line, text);
    return error_set(place->err, EXIT_USAGE, "%.150s: %s", place->path, text);
}

int place_check_keys(const struct place *place, const char *of, const json_t *object,
                     const char *const *keys) {
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (keys[i] && strcmp(key, keys[i]) != 0)
            i++;
        if (!keys[i])
            return place_wrong(place, "%s%.60s: not supported: what it would change is not known",
                               of, key);
    }
    return 0;
}

/* --- axes ------------------------------------------------------------------------------------ */

static bool is_var(const struct definition *definition, const char *name) {
    const json_t *axis = json_object_get(definition->axes, name);
    const char *type = json_string_value(json_object_get(axis, "type"));
    return type && strcmp(type, "var") == 0;
}

/* A value for every var axis, and for nothing else. */
static int check_axes(const struct place *place, const struct definition *definition,
                      const json_t *axes) {
    const char *name;
    json_t *value;

    if (!json_is_object(axes))
        return place_wrong(place, "axes: %s", axes ? "not an object" : "missing");
    json_object_foreach((json_t *)axes, name, value) {
        if (!is_var(definition, name))
            return place_wrong(place, "axes: %.60s: no var axis of the definition", name);
        if (!json_is_integer(value))
            return place_wrong(place, "axes: %.60s: not a whole number", name);
    }
    json_object_foreach((json_t *)definition->axes, name, value) {
        if (is_var(definition, name) && !json_object_get(axes, name))
            return place_wrong(place, "axes: %.60s: missing: a var axis of the definition", name);
    }
    return 0;
}

static int take_axes(const struct place *place, const struct definition *definition,
                     const json_t *axes, json_t *out) {
    if (check_axes(place, definition, axes))
        return -1;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const char *name = definition->axis_names[role];
        json_t *value = json_object_get(axes, name);
        if (!value)
            value = json_object_get(json_object_get(definition->axes, name), "value");
        json_object_set(out, axis_role_keys[role], value);
    }
    return 0;
}

/* --- inputs ---------------------------------------------------------------------------------- */

/* Whether an input is custom (1) or random (0). */
static int take_input(const struct place *place, const char *name, const json_t *input) {
    const char *type = json_string_value(json_object_get(input, "type"));
    char of[64];

    snprintf(of, sizeof of, "inputs: %s: ", name);
    if (!input)
        return place_wrong(place, "%smissing", of);
    if (!type)
        return place_wrong(place, "%stype: missing, or not a text", of);
    if (strcmp(type, "random") != 0 && strcmp(type, "custom") != 0)
        return place_wrong(place, "%stype: %.40s: not supported; random and custom are", of, type);
    if (place_check_keys(place, of, input, input_keys))
        return -1;
    return strcmp(type, "custom") == 0;
}

/* All custom or all random, as the benchmark has it. Returns which, as take_input() does. */
static int take_inputs(const struct place *place, const struct definition *definition,
                       const json_t *inputs) {
    int custom = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(inputs))
        return place_wrong(place, "inputs: %s", inputs ? "not an object" : "missing");
    json_object_foreach((json_t *)inputs, key, value) {
        size_t i = 0;
        while (i < PROBLEM_INPUTS && strcmp(key, problem_input_names[i]) != 0)
            i++;
        if (i == PROBLEM_INPUTS)
            return place_wrong(place, "inputs: %.60s: no input of the definition", key);
    }
    for (size_t i = 0; i < PROBLEM_INPUTS; i++) {
        const char *name = problem_input_names[i];
        int one = take_input(place, name, json_object_get(inputs, name));
        if (one < 0)
            return -1;
        if (i > 0 && one != custom)
            return place_wrong(place, "inputs: %s is %s and %s is %s: custom ones cannot be mixed",
                               problem_input_names[0], custom ? "custom" : "random", name,
                               one ? "custom" : "random");
        custom = one;
    }
    if (custom && !definition->entrypoint)
        return place_wrong(place, "inputs: custom, but the definition has no "
                                  "custom_inputs_entrypoint");
    if (!custom && definition->entrypoint)
        return place_wrong(place,
                           "inputs: random, but the definition has a custom_inputs_entrypoint, "
                           "%.60s, which would give them; take one of the two out",
                           definition->entrypoint);
    return custom;
}

/* --- tolerance ------------------------------------------------------------------------------- */

/* A number of the tolerance in [0, most]. Returns 1 where it is there, 0 where it is not, or -1. */
static int take_number(const struct place *place, const json_t *tolerance, const char *key,
                       double most, double *number) {
    const json_t *value = json_object_get(tolerance, key);
    if (!value)
        return 0;
    if (!json_is_number(value))
        return place_wrong(place, "tolerance: %s: not a number", key);
    *number = json_number_value(value);
    if (!(*number >= 0 && *number <= most))
        return place_wrong(place, "tolerance: %s: out of range: %g; from 0 to %g", key, *number,
                           most);
    return 1;
}

/* The schema spells it required_matched_ratio, files of the data set required_match_ratio. */
static int take_ratio(const struct place *place, const json_t *tolerance, double *ratio,
                      struct workload_counts *counts) {
    double schema = default_ratio, data_set = default_ratio;
    int has_schema = take_number(place, tolerance, "required_matched_ratio", 1, &schema);
    int has_data_set = take_number(place, tolerance, "required_match_ratio", 1, &data_set);
    if (has_schema < 0 || has_data_set < 0)
        return -1;
    *ratio = has_schema ? schema : data_set;
    counts->both += has_schema && has_data_set;
    counts->matched_ratio += has_schema;
    counts->match_ratio += has_data_set && !has_schema;
    counts->no_ratio += !has_schema && !has_data_set;
    return 0;
}

static int take_tolerance(const struct place *place, const json_t *tolerance, json_t *out,
                          struct workload_counts *counts) {
    const json_t *cap = json_object_get(tolerance, "max_error_cap");
    const json_t *negative = json_object_get(tolerance, "allow_negative_inf");
    double atol = default_atol, rtol = default_rtol, ratio;

    if (tolerance && !json_is_object(tolerance))
        return place_wrong(place, "tolerance: not an object");
    if (place_check_keys(place, "tolerance: ", tolerance, tolerance_keys))
        return -1;
    if (cap && !json_is_null(cap))
        return place_wrong(place, "tolerance: max_error_cap: not supported");
    if (negative && !json_is_false(negative))
        return place_wrong(place, "tolerance: allow_negative_inf: only false is supported");
    int has_atol = take_number(place, tolerance, "max_atol", 1e6, &atol);
    int has_rtol = take_number(place, tolerance, "max_rtol", 1, &rtol);
    if (has_atol < 0 || has_rtol < 0 || take_ratio(place, tolerance, &ratio, counts))
        return -1;
    counts->no_tolerance += !has_atol || !has_rtol;
    json_object_set_new(out, "atol", json_real(atol));
    json_object_set_new(out, "rtol", json_real(rtol));
    json_object_set_new(out, "matched_ratio", json_real(ratio));
    return 0;
}

/* --- lines ----------------------------------------------------------------------------------- */

/* A line is a workload, or a trace whose solution and evaluation are empty. */
static const json_t *workload_of(const struct place *place, const struct definition *definition,
                                 const json_t *line) {
    const json_t *workload = json_object_get(line, "workload");
    if (!workload)
        return line;
    const char *name = json_string_value(json_object_get(line, "definition"));
    if (place_check_keys(place, "", line, trace_keys))
        return NULL;
    if (!name || strcmp(name, definition->name) != 0) {
        place_wrong(place, "definition: %.80s, the definition's name is %.80s",
                    name ? name : "missing, or not a text", definition->name);
        return NULL;
    }
    for (int i = 2; trace_keys[i]; i++) {
        const json_t *result = json_object_get(line, trace_keys[i]);
        if (result && !json_is_null(result)) {
            place_wrong(place, "%s: a result, and no part of a workload", trace_keys[i]);
            return NULL;
        }
    }
    return workload;
}

static int take_uuid(const struct place *place, const json_t *workload, const json_t *cases,
                     json_t *out) {
    json_t *uuid = json_object_get(workload, "uuid");
    const char *text = json_string_value(uuid);
    size_t i;
    json_t *other;

    if (!text || !*text)
        return place_wrong(place, "uuid: missing, or not a text");
    if (json_string_length(uuid) > 64 || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
                                                      "STUVWXYZ0123456789-_.") != strlen(text))
        return place_wrong(place, "uuid: only letters, digits, and - _ . , 64 at most");
    json_array_foreach((json_t *)cases, i, other) {
        if (json_equal(json_object_get(other, "uuid"), uuid))
            return place_wrong(place, "uuid: %s: that of workload %zu, too", text, i + 1);
    }
    json_object_set(out, "uuid", uuid);
    return 0;
}

static int take_workload(const struct place *place, const struct definition *definition,
                         const json_t *line, json_t *cases, struct workload_counts *counts) {
    const json_t *workload = workload_of(place, definition, line);
    if (!workload)
        return -1;
    if (!json_is_object(workload))
        return place_wrong(place, "not an object");
    if (place_check_keys(place, "", workload, workload_keys))
        return -1;
    if (json_array_size(cases) == SUITE_MAX_CASES)
        return place_wrong(place, "more than %d workloads", SUITE_MAX_CASES);
    json_t *out = json_pack("{s:i}", "case", (int)json_array_size(cases) + 1);
    int custom = take_inputs(place, definition, json_object_get(workload, "inputs"));
    if (custom < 0 || take_uuid(place, workload, cases, out) ||
        take_axes(place, definition, json_object_get(workload, "axes"), out) ||
        take_tolerance(place, json_object_get(workload, "tolerance"), out, counts)) {
        json_decref(out);
        return -1;
    }
    counts->workloads++;
    counts->custom += (size_t)custom;
    json_array_append_new(cases, out);
    return 0;
}

static bool is_blank(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r", text[i]) || !text[i])
            return false;
    return true;
}

int workload_read(const struct definition *definition, const struct problem_file *file,
                  json_t *cases, struct workload_counts *counts, struct error *err) {
    struct place place = {.path = file->path, .err = err};
    const char *at = file->text, *end = file->text + file->length;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        json_error_t problem;
        place.line++;
        if (!is_blank(at, length)) {
            json_t *line = json_loadb(at, length, JSON_REJECT_DUPLICATES, &problem);
            if (!line)
                return place_wrong(&place, "not JSON: %.120s", problem.text);
            int result = take_workload(&place, definition, line, cases, counts);
            json_decref(line);
            if (result)
                return -1;
        }
        at += length + (newline != NULL);
    }
    place.line = 0;
    return counts->workloads ? 0 : place_wrong(&place, "no workload in it");
}
