/* Fuzz target: SOL-ExecBench's problem files. The input is a definition and a workload with a line
 * of --- between; without that line it is tried as either, beside one that is well. What is taken
 * is a suite that the suite reader takes, too. */
#include <string.h>

#include "../../cases/definition.h"
#include "fuzz.h"

static const char good_definition[] =
    "{\"name\":\"x\",\"axes\":{\"T\":{\"type\":\"var\"},\"H\":{\"type\":\"const\",\"value\":8},"
    "\"I\":{\"type\":\"const\",\"value\":8},\"E\":{\"type\":\"const\",\"value\":4},"
    "\"K\":{\"type\":\"const\",\"value\":2}},\"inputs\":{"
    "\"hidden_states\":{\"dtype\":\"float16\",\"shape\":[\"T\",\"H\"]},"
    "\"topk_idx\":{\"dtype\":\"int64\",\"shape\":[\"T\",\"K\"]},"
    "\"topk_weight\":{\"dtype\":\"float16\",\"shape\":[\"T\",\"K\"]},"
    "\"expert_gate_projs\":{\"dtype\":\"float16\",\"shape\":[\"E\",\"I\",\"H\"]},"
    "\"expert_up_projs\":{\"dtype\":\"float16\",\"shape\":[\"E\",\"I\",\"H\"]},"
    "\"expert_down_projs\":{\"dtype\":\"float16\",\"shape\":[\"E\",\"H\",\"I\"]}},"
    "\"outputs\":{\"output\":{\"dtype\":\"float16\",\"shape\":[\"T\",\"H\"]}},"
    "\"reference\":\"def run():\"}";
static const char good_workload[] =
    "{\"uuid\":\"a\",\"axes\":{\"T\":3},\"inputs\":{\"hidden_states\":{\"type\":\"random\"},"
    "\"topk_idx\":{\"type\":\"random\"},\"topk_weight\":{\"type\":\"random\"},"
    "\"expert_gate_projs\":{\"type\":\"random\"},\"expert_up_projs\":{\"type\":\"random\"},"
    "\"expert_down_projs\":{\"type\":\"random\"}}}\n";

static struct problem_file file_of(const char *text, size_t length) {
    return (struct problem_file){"file", text, length};
}

static int try_files(struct problem_file definition, struct problem_file workload) {
    static struct suite suite;
    static struct problem_notes notes;
    struct error err = {0};
    char *text;
    if (definition_to_suite(&definition, &workload, &text, &notes, &err)) {
        fuzz_check_refused(&err);
        fuzz_check(text == NULL, "a suite beside an error", err.text);
        return -1;
    }
    if (suite_parse(text, strlen(text), "folder", &suite, &err))
        fuzz_check(false, "a suite that is none", err.text);
    fuzz_check(suite.name[0] != '.' && !strchr(suite.name, '/'), "not a file name", suite.name);
    fuzz_check(notes.count >= 3 && notes.count <= PROBLEM_NOTES_MOST, "notes", text);
    for (size_t i = 0; i < suite.case_count; i++)
        fuzz_check(suite.cases[i].matched_ratio >= 0 && suite.cases[i].matched_ratio <= 1 &&
                       suite.cases[i].atol >= 0 && suite.cases[i].rtol >= 0,
                   "a tolerance", text);
    free(text);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char between[] = "\n---\n";
    const char *text = (const char *)data;
    struct problem_file definition = file_of(good_definition, sizeof good_definition - 1);
    struct problem_file workload = file_of(good_workload, sizeof good_workload - 1);
    const char *at = size ? memmem(text, size, between, sizeof between - 1) : NULL;
    fuzz_check(try_files(definition, workload) == 0, "what is well is refused", "");
    if (at) {
        size_t first = (size_t)(at - text), after = first + sizeof between - 1;
        try_files(file_of(text, first), file_of(text + after, size - after));
        return 0;
    }
    try_files(file_of(text, size), workload);
    try_files(definition, file_of(text, size));
    return 0;
}
