/* Reads definition.json: whether it is the MoE token-repeat problem, by the names, shapes and types
 * of its tensors; then writes what the two files say as a suite. */
#include "definition.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/sha256.h"
#include "workload.h"

/* The main suite's, so that a case of the same shape has the same inputs. */
static const int seed = 47;
/* The benchmark has no such rule; every suite here has. */
static const double token_matched_ratio = 0.90;

/* Those that change nothing are for people: description, op_type, tags, hf_id. */
static const char *const definition_keys[] = {
    "name",        "description", "op_type", "tags",      "hf_id",
    "axes",        "inputs",      "outputs", "reference", "custom_inputs_entrypoint",
    "constraints", NULL};
static const char *const const_keys[] = {"type", "value", "description", NULL};
static const char *const var_keys[] = {"type", "description", NULL};
static const char *const tensor_keys[] = {"shape", "dtype", "description", NULL};

const char *const axis_role_keys[ROLE_COUNT] = {
    "batch_seq_len", "hidden_size", "moe_intermediate_size", "num_experts", "num_experts_per_tok"};

const char *const problem_input_names[PROBLEM_INPUTS] = {"hidden_states",   "topk_idx",
                                                         "topk_weight",     "expert_gate_projs",
                                                         "expert_up_projs", "expert_down_projs"};

/* Definitions whose own inputs function is known to draw what moesol draws, by its name. */
static const struct {
    const char *definition, *entrypoint;
} known_inputs[] = {
    {"moe_training_token_repeat_and_expert_computation", "get_inputs"},
};

struct tensor {
    const char *dtype;
    size_t rank;
    enum axis_role roles[3];
};
static const struct tensor input_tensors[PROBLEM_INPUTS] = {
    {"float16", 2, {ROLE_TOKENS, ROLE_HIDDEN}},
    {"int64", 2, {ROLE_TOKENS, ROLE_TOPK}},
    {"float16", 2, {ROLE_TOKENS, ROLE_TOPK}},
    {"float16", 3, {ROLE_EXPERTS, ROLE_INTERMEDIATE, ROLE_HIDDEN}},
    {"float16", 3, {ROLE_EXPERTS, ROLE_INTERMEDIATE, ROLE_HIDDEN}},
    {"float16", 3, {ROLE_EXPERTS, ROLE_HIDDEN, ROLE_INTERMEDIATE}},
};
static const char output_name[] = "output";
static const struct tensor output_tensor = {"float16", 2, {ROLE_TOKENS, ROLE_HIDDEN}};

/* --- axes and tensors ------------------------------------------------------------------------ */

static int check_axis(const struct place *place, const char *name, const json_t *axis) {
    const char *type = json_string_value(json_object_get(axis, "type"));
    const json_t *value = json_object_get(axis, "value");
    char of[80];

    snprintf(of, sizeof of, "axes: %.60s: ", name);
    if (!type)
        return place_wrong(place, "%stype: missing, or not a text", of);
    if (strcmp(type, "var") == 0)
        return place_check_keys(place, of, axis, var_keys);
    if (strcmp(type, "const") != 0)
        return place_wrong(place, "%stype: %.40s: not supported; const and var are", of, type);
    if (!json_is_integer(value))
        return place_wrong(place, "%svalue: %s", of, value ? "not a whole number" : "missing");
    return place_check_keys(place, of, axis, const_keys);
}

static int check_axes(const struct place *place, const json_t *axes) {
    const char *name;
    json_t *axis;

    if (!json_is_object(axes))
        return place_wrong(place, "axes: %s", axes ? "not an object" : "missing");
    json_object_foreach((json_t *)axes, name, axis) {
        if (check_axis(place, name, axis))
            return -1;
    }
    return 0;
}

/* Dimension by dimension: the first tensor that has an axis gives its name, all others must agree.
 */
static int check_shape(const struct place *place, const char *of, const json_t *shape,
                       const struct tensor *wanted, struct definition *definition) {
    if (!json_is_array(shape) || json_array_size(shape) != wanted->rank)
        return place_wrong(place, "%sshape: not %zu axes, as the MoE token-repeat problem has", of,
                           wanted->rank);
    for (size_t i = 0; i < wanted->rank; i++) {
        enum axis_role role = wanted->roles[i];
        const char *name = json_string_value(json_array_get(shape, i));
        if (!name || !json_object_get(definition->axes, name))
            return place_wrong(place, "%sshape: %.60s: no axis of the definition", of,
                               name ? name : "not a text");
        if (!definition->axis_names[role])
            definition->axis_names[role] = name;
        if (strcmp(name, definition->axis_names[role]) != 0)
            return place_wrong(place, "%sshape: axis %zu is %.60s; here the problem has %.60s", of,
                               i + 1, name, definition->axis_names[role]);
    }
    return 0;
}

static int check_tensor(const struct place *place, const char *kind, const char *name,
                        const json_t *tensor, const struct tensor *wanted,
                        struct definition *definition) {
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
    char of[80];

    snprintf(of, sizeof of, "%s: %s: ", kind, name);
    if (!json_is_object(tensor))
        return place_wrong(place, "%s%s; only the MoE token-repeat problem is supported", of,
                           tensor ? "not an object" : "missing");
    if (place_check_keys(place, of, tensor, tensor_keys))
        return -1;
    if (!dtype || strcmp(dtype, wanted->dtype) != 0)
        return place_wrong(place, "%sdtype: %.40s; the MoE token-repeat problem has %s", of,
                           dtype ? dtype : "missing, or not a text", wanted->dtype);
    return check_shape(place, of, json_object_get(tensor, "shape"), wanted, definition);
}

static int check_tensors(const struct place *place, struct definition *definition) {
    const json_t *inputs = json_object_get(definition->root, "inputs");
    const json_t *outputs = json_object_get(definition->root, "outputs");
    const char *names[PROBLEM_INPUTS + 1] = {NULL}, *const output_names[] = {output_name, NULL};

    if (!json_is_object(inputs) || !json_is_object(outputs))
        return place_wrong(place, "%s: missing, or not an object",
                           json_is_object(inputs) ? "outputs" : "inputs");
    memcpy(names, problem_input_names, sizeof problem_input_names);
    if (place_check_keys(place, "inputs: ", inputs, names) ||
        place_check_keys(place, "outputs: ", outputs, output_names))
        return -1;
    for (size_t i = 0; i < PROBLEM_INPUTS; i++)
        if (check_tensor(place, "inputs", names[i], json_object_get(inputs, names[i]),
                         &input_tensors[i], definition))
            return -1;
    return check_tensor(place, "outputs", output_name, json_object_get(outputs, output_name),
                        &output_tensor, definition);
}

/* --- code, which is not run ------------------------------------------------------------------ */

static bool defines(const char *code, const char *function) {
    char text[80];
    int length = snprintf(text, sizeof text, "def %s(", function);
    for (const char *at = code; length < (int)sizeof text && (at = strstr(at, text)); at++)
        if (at == code || at[-1] == '\n')
            return true;
    return false;
}

/* "047_name" is what the benchmark calls a definition in its own order. */
static const char *bare_name(const char *name) {
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && name[digits] == '_' ? name + digits + 1 : name;
}

static bool inputs_are_known(const struct definition *definition) {
    for (size_t i = 0; i < sizeof known_inputs / sizeof *known_inputs; i++)
        if (strcmp(bare_name(definition->name), known_inputs[i].definition) == 0 &&
            strcmp(definition->entrypoint, known_inputs[i].entrypoint) == 0)
            return true;
    return false;
}

static int check_code(const struct place *place, struct definition *definition) {
    const char *code = json_string_value(json_object_get(definition->root, "reference"));
    const json_t *entrypoint = json_object_get(definition->root, "custom_inputs_entrypoint");

    if (!code || !defines(code, "run"))
        return place_wrong(place, "reference: %s",
                           code ? "defines no function run" : "missing, or not a text");
    if (!entrypoint || json_is_null(entrypoint))
        return 0;
    definition->entrypoint = json_string_value(entrypoint);
    if (!definition->entrypoint || !defines(code, definition->entrypoint))
        return place_wrong(place, "custom_inputs_entrypoint: %s",
                           definition->entrypoint ? "the reference defines no such function"
                                                  : "not a text");
    if (inputs_are_known(definition))
        return 0;
    return place_wrong(place,
                       "custom_inputs_entrypoint: %.60s of %.70s: not supported: it is Python, "
                       "which is not run, and what it gives is not known",
                       definition->entrypoint, definition->name);
}

/* --- the definition -------------------------------------------------------------------------- */

static int check_constraints(const struct place *place, const json_t *constraints) {
    if (!constraints || json_is_null(constraints))
        return 0;
    if (!json_is_array(constraints))
        return place_wrong(place, "constraints: not an array");
    const char *first = json_string_value(json_array_get(constraints, 0));
    if (json_array_size(constraints) == 0)
        return 0;
    return place_wrong(place, "constraints: not supported: %.100s", first ? first : "not a text");
}

static int read_definition(const struct place *place, struct definition *definition) {
    if (!json_is_object(definition->root))
        return place_wrong(place, "not an object");
    if (place_check_keys(place, "", definition->root, definition_keys))
        return -1;
    definition->name = json_string_value(json_object_get(definition->root, "name"));
    definition->axes = json_object_get(definition->root, "axes");
    if (!definition->name || !*definition->name)
        return place_wrong(place, "name: missing, or not a text");
    if (strlen(definition->name) >= sizeof((struct suite *)0)->name)
        return place_wrong(place, "name: longer than %zu bytes: %.40s...",
                           sizeof((struct suite *)0)->name - 1, definition->name);
    if (check_axes(place, definition->axes) || check_tensors(place, definition) ||
        check_code(place, definition))
        return -1;
    return check_constraints(place, json_object_get(definition->root, "constraints"));
}

/* --- the suite ------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
add_note(struct problem_notes *notes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notes->texts[notes->count], sizeof notes->texts[0], format, arguments);
    va_end(arguments);
    notes->count++;
}

static void note_files(const struct problem_file *definition, const struct problem_file *workload,
                       struct problem_notes *notes) {
    char of_definition[65], of_workload[65];
    sha256_hex(definition->text, definition->length, of_definition);
    sha256_hex(workload->text, workload->length, of_workload);
    add_note(notes, "from a SOL-ExecBench definition, SHA-256 %s, and its workloads, SHA-256 %s",
             of_definition, of_workload);
    add_note(notes, "the reference in the definition is not run: its tensors have the names, "
                    "shapes and types of the MoE token-repeat problem, and outputs are compared "
                    "with moesol's own oracle of that problem");
}

static void note_inputs(const struct definition *definition, const struct workload_counts *counts,
                        struct problem_notes *notes) {
    static const char drawn[] =
        "hidden_states N(0,1), projections 0.02 N(0,1), topk_idx distinct experts uniformly at "
        "random, topk_weight uniform numbers over their sum";
    if (counts->custom)
        add_note(notes,
                 "inputs: custom: %.60s() is not run; moesol draws what that function of this "
                 "definition's name does, by its own generator: %s",
                 definition->entrypoint, drawn);
    else
        add_note(notes,
                 "inputs: random: moesol draws those of the problem: %s; the benchmark draws "
                 "N(0,1) for every fp16 tensor, and ids from -1024 to 1023, so most are no expert",
                 drawn);
}

static void note_tolerance(const struct workload_counts *counts, struct problem_notes *notes) {
    size_t all = counts->workloads;
    if (counts->matched_ratio)
        add_note(notes, "match ratio: required_matched_ratio is used, in %zu of %zu workloads%s",
                 counts->matched_ratio, all,
                 counts->both ? "; required_match_ratio beside it is not" : "");
    if (counts->match_ratio)
        add_note(notes,
                 "match ratio: required_match_ratio is used, in %zu of %zu workloads; the "
                 "benchmark's schema spells it required_matched_ratio, knows no other, and then "
                 "takes its default, 0.99",
                 counts->match_ratio, all);
    if (counts->no_ratio)
        add_note(notes, "match ratio: none in %zu of %zu workloads: 0.99, the benchmark's default",
                 counts->no_ratio, all);
    if (counts->no_tolerance)
        add_note(notes,
                 "max_atol or max_rtol: none in %zu of %zu workloads: 0.01, the benchmark's "
                 "default",
                 counts->no_tolerance, all);
    add_note(notes,
             "at least %g of each token's elements must match, too: moesol's rule, not the "
             "benchmark's",
             token_matched_ratio);
}

/* The suite's name becomes part of file names. */
static json_t *suite_name(const char *definition_name) {
    static const char valid[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    char name[sizeof((struct suite *)0)->name] = "";
    for (size_t i = 0; definition_name[i] && i < sizeof name - 1; i++) {
        char c = (char)tolower((unsigned char)definition_name[i]);
        name[i] = strchr(i ? valid : "abcdefghijklmnopqrstuvwxyz0123456789", c) ? c : '_';
    }
    return json_string(name);
}

/* Takes over `cases`. */
static char *suite_text_of(const struct definition *definition, json_t *cases,
                           const struct problem_notes *notes) {
    json_t *texts = json_array();
    for (size_t i = 0; i < notes->count; i++)
        json_array_append_new(texts, json_string(notes->texts[i]));
    json_t *root = json_pack(
        "{s:o, s:s, s:i, s:{s:s}, s:f, s:o, s:o}", "name", suite_name(definition->name), "title",
        "MoE token-repeat problem from a SOL-ExecBench definition", "seed", seed, "routing", "kind",
        "uniform", "token_matched_ratio", token_matched_ratio, "notes", texts, "cases", cases);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    return text;
}

/* The suite reader has the last word on every size. */
static int check_suite(const struct place *place, const char *text) {
    static const char folder[] = ".", told[] = "./suite.json: ";
    struct suite *suite = malloc(sizeof *suite);
    struct error problem = {0};
    int result = -1;
    if (!suite)
        error_set(&problem, EXIT_FAILED, "out of memory: a suite");
    else
        result = suite_parse(text, strlen(text), folder, suite, &problem);
    free(suite);
    if (!result)
        return 0;
    bool prefixed = strncmp(problem.text, told, sizeof told - 1) == 0;
    return place_wrong(place, "%s", problem.text + (prefixed ? sizeof told - 1 : 0));
}

int definition_to_suite(const struct problem_file *definition_file,
                        const struct problem_file *workload, char **suite_text,
                        struct problem_notes *notes, struct error *err) {
    struct place place = {.path = definition_file->path, .err = err};
    struct definition definition = {0};
    struct workload_counts counts = {0};
    json_error_t problem;
    json_t *cases = json_array();
    int result = -1;

    *suite_text = NULL;
    memset(notes, 0, sizeof *notes);
    definition.root = json_loadb(definition_file->text, definition_file->length,
                                 JSON_REJECT_DUPLICATES, &problem);
    if (!definition.root) {
        place.line = problem.line > 0 ? (size_t)problem.line : 0;
        place_wrong(&place, "not JSON: %.120s", problem.text);
        goto done;
    }
    if (read_definition(&place, &definition) ||
        workload_read(&definition, workload, cases, &counts, err))
        goto done;
    note_files(definition_file, workload, notes);
    note_inputs(&definition, &counts, notes);
    note_tolerance(&counts, notes);
    *suite_text = suite_text_of(&definition, json_incref(cases), notes);
    place.path = workload->path;
    result = *suite_text ? check_suite(&place, *suite_text)
                         : error_set(err, EXIT_FAILED, "out of memory: a suite");
    if (result) {
        free(*suite_text);
        *suite_text = NULL;
    }
done:
    json_decref(cases);
    json_decref(definition.root);
    return result;
}
