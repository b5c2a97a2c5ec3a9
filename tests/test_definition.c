/* SOL-ExecBench's problem files as suites: what tests/definition/ comes to, what is said of it, and
 * that everything that is not supported is refused by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../cases/definition.h"
#include "../core/file.h"

static char *definition, *workload;

/* What the two files come to. */
struct outcome {
    int result;
    char *text;
    struct problem_notes notes;
    struct error err;
    struct suite suite; /* where result is 0 */
};

static void convert(const char *of_definition, const char *of_workload, struct outcome *out) {
    struct problem_file files[] = {{"d.json", of_definition, strlen(of_definition)},
                                   {"w.jsonl", of_workload, strlen(of_workload)}};
    memset(out, 0, sizeof *out);
    out->result = definition_to_suite(&files[0], &files[1], &out->text, &out->notes, &out->err);
    if (out->result) {
        assert_int_equal(out->err.code, EXIT_USAGE);
        assert_null(out->text);
        return;
    }
    if (suite_parse(out->text, strlen(out->text), "folder", &out->suite, &out->err))
        fail_msg("%s", out->err.text);
}

/* A copy of a text in which every `from` (the first `count`) is `to`; the caller's. */
static char *replaced(const char *text, const char *from, const char *to, int count) {
    size_t length = 0, size = strlen(text) * 2 + strlen(to) * 64 + 1;
    char *out = calloc(1, size);
    const char *at;
    if (!strstr(text, from))
        fail_msg("'%s' is not in the text", from);
    while (count-- > 0 && (at = strstr(text, from))) {
        length +=
            (size_t)snprintf(out + length, size - length, "%.*s%s", (int)(at - text), text, to);
        text = at + strlen(from);
    }
    snprintf(out + length, size - length, "%s", text);
    return out;
}

static bool has_note(const struct outcome *out, const char *part) {
    for (size_t i = 0; i < out->notes.count; i++)
        if (strstr(out->notes.texts[i], part))
            return true;
    return false;
}

static void assert_note(const struct outcome *out, const char *part) {
    if (!has_note(out, part))
        fail_msg("no note says '%s'", part);
}

/* --- what is supported ----------------------------------------------------------------------- */

static void the_files_become_a_suite(void **state) {
    static struct outcome out;
    static const int64_t tokens[] = {3, 8, 5};
    static const double atol[] = {0.0024, 0.0014, 0.01}, rtol[] = {0.01, 0.02, 0.01};
    static const double ratio[] = {0.98, 0.97, 0.99};
    (void)state;
    convert(definition, workload, &out);
    assert_int_equal(out.result, 0);
    assert_string_equal(out.suite.name, "047_moe_training_token_repeat_and_expert_computation");
    assert_int_equal(out.suite.case_count, 3);
    assert_int_equal(out.suite.routing, ROUTING_UNIFORM);
    assert_false(out.suite.ranked);
    assert_true(isnan(out.suite.matched_ratio));
    assert_true(out.suite.token_matched_ratio == 0.9);
    for (int i = 0; i < 3; i++) {
        const struct suite_case *c = &out.suite.cases[i];
        const struct moe_shape *shape = &c->shape;
        assert_int_equal(c->number, i + 1);
        assert_int_equal(shape->batch_seq_len, tokens[i]);
        assert_true(shape->hidden_size == 64 && shape->moe_intermediate_size == 32 &&
                    shape->num_experts == 8 && shape->num_experts_per_tok == 2);
        assert_true(c->atol == atol[i] && c->rtol == rtol[i]);
        assert_true(suite_matched_ratio(&out.suite, i + 1) == ratio[i]);
    }
    assert_non_null(strstr(out.text, "5c1e0a7e-0000-4000-8000-000000000002"));
    free(out.text);
}

/* Every choice that the files leave open, and both spellings. */
static void what_was_used_is_said(void **state) {
    static struct outcome out;
    (void)state;
    convert(definition, workload, &out);
    assert_note(&out, "required_matched_ratio is used, in 1 of 3 workloads");
    assert_note(&out, "required_match_ratio is used, in 1 of 3 workloads");
    assert_note(&out, "none in 1 of 3 workloads: 0.99, the benchmark's default");
    assert_note(&out, "max_atol or max_rtol: none in 1 of 3 workloads: 0.01");
    assert_note(&out, "get_inputs() is not run");
    assert_note(&out, "the reference in the definition is not run");
    assert_note(&out, "at least 0.9 of each token's elements");
    for (size_t i = 0; i < out.notes.count; i++)
        assert_non_null(strstr(out.text, out.notes.texts[i]));
    free(out.text);
    /* Both in one workload: the schema's counts. */
    char *both = replaced(workload, "\"required_match_ratio\": 0.98",
                          "\"required_match_ratio\": 0.5, \"required_matched_ratio\": 0.96", 1);
    convert(definition, both, &out);
    assert_int_equal(out.result, 0);
    assert_true(out.suite.cases[0].matched_ratio == 0.96);
    assert_note(&out, "in 2 of 3 workloads; required_match_ratio beside it is not");
    assert_false(has_note(&out, "required_match_ratio is used"));
    free(both);
    free(out.text);
}

/* Whoever compares two records by their suite's hash compares the same problem. */
static void the_hash_is_over_both_files(void **state) {
    static struct outcome first, again, other;
    (void)state;
    convert(definition, workload, &first);
    convert(definition, workload, &again);
    assert_string_equal(first.suite.hash, again.suite.hash);
    free(again.text);
    char *changed = replaced(definition, "of our own", "of others", 1);
    convert(changed, workload, &other);
    assert_string_not_equal(first.suite.hash, other.suite.hash);
    free(other.text);
    free(changed);
    changed = replaced(workload, "0.0014", "0.0015", 1);
    convert(definition, changed, &other);
    assert_string_not_equal(first.suite.hash, other.suite.hash);
    free(other.text);
    free(changed);
    free(first.text);
}

static void random_inputs_are_drawn(void **state) {
    static struct outcome out;
    (void)state;
    char *plain = replaced(definition, "\"get_inputs\"", "null", 1);
    char *random = replaced(workload, "\"custom\"", "\"random\"", 18);
    convert(plain, random, &out);
    assert_int_equal(out.result, 0);
    assert_note(&out, "inputs: random: moesol draws those of the problem");
    assert_false(has_note(&out, "get_inputs"));
    free(out.text);
    /* Under any name, then: nothing depends on it. */
    char *named = replaced(plain, "047_moe_training_token_repeat_and_expert_computation",
                           "My MoE/../layer", 1);
    convert(named, random, &out);
    assert_int_equal(out.result, 0);
    assert_string_equal(out.suite.name, "my_moe_.._layer");
    free(out.text);
    free(named);
    free(plain);
    free(random);
}

/* Axes are known by their place in the tensors, not by their names, and any of them may vary. */
static void axes_may_have_other_names_and_vary(void **state) {
    static struct outcome out;
    (void)state;
    char *renamed = replaced(definition, "\"hidden_size\"", "\"D\"", 64);
    char *variable = replaced(renamed, "\"const\",\n      \"value\": 64", "\"var\"", 1);
    char *valued = replaced(workload, "\"axes\": {", "\"axes\": {\"D\": 128, ", 3);
    convert(variable, valued, &out);
    assert_int_equal(out.result, 0);
    assert_true(out.suite.cases[2].shape.hidden_size == 128);
    free(out.text);
    free(renamed);
    free(variable);
    free(valued);
}

/* As the benchmark stores a workload in a set of traces. */
static void a_trace_without_results_is_a_workload(void **state) {
    static struct outcome out;
    static const char name[] = "047_moe_training_token_repeat_and_expert_computation";
    char line[2048], first[1024];
    (void)state;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(workload, "\n"), workload);
    snprintf(line, sizeof line,
             "{\"definition\":\"%s\",\"workload\":%s,\"solution\":null,\"evaluation\":null}", name,
             first);
    convert(definition, line, &out);
    assert_int_equal(out.result, 0);
    assert_int_equal(out.suite.case_count, 1);
    free(out.text);
    snprintf(line, sizeof line, "{\"definition\":\"other\",\"workload\":%s}", first);
    convert(definition, line, &out);
    assert_string_equal(out.err.text, "w.jsonl:1: definition: other, the definition's name is "
                                      "047_moe_training_token_repeat_and_expert_computation");
    snprintf(line, sizeof line, "{\"definition\":\"%s\",\"workload\":%s,\"solution\":\"x\"}", name,
             first);
    convert(definition, line, &out);
    assert_string_equal(out.err.text, "w.jsonl:1: solution: a result, and no part of a workload");
}

/* --- what is not ----------------------------------------------------------------------------- */

static const struct refusal {
    const char *from, *to, *said;
} definition_refusals[] =
    {
        {"{\n  \"name\"", "{\n  \"name", "d.json:2: not JSON: "},
        {"\"op_type\"", "\"op_tpye\"", "d.json: op_tpye: not supported"},
        {"\"name\": \"047", "\"name\": 47, \"hf_id\": \"", "d.json: name: missing, or not a text"},
        {"\"047_moe", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa_moe", "d.json: name: longer than 63 bytes"},
        {"\"type\": \"var\"", "\"type\": \"expr\", \"expression\": \"a * b\"",
         "d.json: axes: batch_seq_len: type: expr: not supported; const and var are"},
        {"\"value\": 64", "\"value\": 64.5",
         "d.json: axes: hidden_size: value: not a whole number"},
        {"\"value\": 64", "\"value\": 64, \"step\": 2",
         "d.json: axes: hidden_size: step: not support"},
        {"\"type\": \"var\",", "", "d.json: axes: batch_seq_len: type: missing"},
        {"\"topk_idx\"", "\"topk_ids\"", "d.json: inputs: topk_ids: not supported"},
        {"\"dtype\": \"int64\"", "\"dtype\": \"int32\"",
         "d.json: inputs: topk_idx: dtype: int32; the MoE token-repeat problem has int64"},
        {"\"dtype\": \"float16\"", "\"dtype\": \"bfloat16\"",
         "d.json: inputs: hidden_states: dtype: bfloat16; the MoE token-repeat problem has "
         "float16"},
        {"\"batch_seq_len\",\n        \"num_experts_per_tok\"", "\"batch_seq_len\"",
         "d.json: inputs: topk_idx: shape: not 2 axes"},
        {"\"batch_seq_len\",\n        \"num_experts_per_tok\"", "\"hidden_size\", \"num_experts\"",
         "d.json: inputs: topk_idx: shape: axis 1 is hidden_size; here the problem has "
         "batch_seq_len"},
        {"\"moe_intermediate_size\",\n        \"hidden_size\"",
         "\"hidden_size\", \"moe_intermediate_size\"",
         "d.json: inputs: expert_gate_projs: shape: axis 3 is moe_intermediate_size; here the "
         "problem "
         "has hidden_size"},
        {"\"batch_seq_len\",\n        \"hidden_size\"", "\"rows\", \"hidden_size\"",
         "d.json: inputs: hidden_states: shape: rows: no axis of the definition"},
        {"\"output\": {", "\"result\": {", "d.json: outputs: result: not supported"},
        {"\"outputs\": {", "\"outputs\": {\"lse\": {},", "d.json: outputs: lse: not supported"},
        {"def run(", "def forward(", "d.json: reference: defines no function run"},
        {"\"reference\": \"", "\"description\": \"x\", \"reference\": [], \"tags\": \"",
         "d.json:"}, /* a key twice: the line is the reader's */
        {"def get_inputs(", "def inputs(",
         "d.json: custom_inputs_entrypoint: the reference defines no such function"},
        {"\"get_inputs\"", "\"run\"",
         "d.json: custom_inputs_entrypoint: run of 047_moe_training_token_repeat_and_expert_"
         "computation: not supported"},
        {"047_moe_training", "048_moe_inference",
         "d.json: custom_inputs_entrypoint: get_inputs of 048_moe_inference_token_repeat"},
        {"\"constraints\": []", "\"constraints\": [\"num_experts > 1\"]",
         "d.json: constraints: not supported: num_experts > 1"},
        {"\"value\": 8", "\"value\": 1",
         "w.jsonl: case 1: num_experts_per_tok: more than num_experts"},
        {"\"value\": 64", "\"value\": 0", "w.jsonl: case 1: hidden_size: out of range: 0"},
},
  workload_refusals[] = {
      {"{\"uuid\"", "{\"uuid", "w.jsonl:1: not JSON: "},
      {"\n", "\n[]\n", "w.jsonl:2: not an object"},
      {"\"tolerance\"", "\"correctness\"", "w.jsonl:1: correctness: not supported"},
      {"\"uuid\": \"5c1e0a7e-0000-4000-8000-000000000001\"", "\"uuid\": \"\"",
       "w.jsonl:1: uuid: missing"},
      {"000000000001", "000000000002",
       "w.jsonl:2: uuid: 5c1e0a7e-0000-4000-8000-000000000002: that "
       "of workload 1, too"},
      {"5c1e0a7e", "<b>", "w.jsonl:1: uuid: only letters"},
      {"\"batch_seq_len\": 3", "", "w.jsonl:1: axes: batch_seq_len: missing"},
      {"\"batch_seq_len\": 3", "\"batch_seq_len\": 3.0",
       "w.jsonl:1: axes: batch_seq_len: not a whole number"},
      {"\"batch_seq_len\": 8", "\"batch_seq_len\": 8, \"hidden_size\": 32",
       "w.jsonl:2: axes: hidden_size: no var axis of the definition"},
      {"\"batch_seq_len\": 8", "\"batch_seq_len\": -8",
       "w.jsonl: case 2: batch_seq_len: out of range: -8"},
      {"\"topk_idx\": {\"type\": \"custom\"}, ", "", "w.jsonl:1: inputs: topk_idx: missing"},
      {"\"topk_idx\": {\"type\": \"custom\"}", "\"topk_idx\": {\"type\": \"random\"}",
       "w.jsonl:1: inputs: hidden_states is custom and topk_idx is random: custom ones cannot be"},
      {"{\"type\": \"custom\"}",
       "{\"type\": \"safetensors\", \"path\": \"x.safetensors\", \"tensor_key\": \"x\"}",
       "w.jsonl:1: inputs: hidden_states: type: safetensors: not supported; random and custom are"},
      {"{\"type\": \"custom\"}", "{\"type\": \"scalar\", \"value\": 1}",
       "w.jsonl:1: inputs: hidden_states: type: scalar: not supported"},
      {"{\"type\": \"custom\"}", "{\"type\": \"custom\", \"seed\": 1}",
       "w.jsonl:1: inputs: hidden_states: seed: not supported"},
      {"\"inputs\": {", "\"inputs\": {\"eps\": {\"type\": \"custom\"}, ",
       "w.jsonl:1: inputs: eps: no input of the definition"},
      {"\"max_atol\": 0.0024", "\"max_atol\": -1", "w.jsonl:1: tolerance: max_atol: out of range"},
      {"\"max_atol\": 0.0024", "\"max_atol\": \"0\"",
       "w.jsonl:1: tolerance: max_atol: not a number"},
      {"\"max_atol\"", "\"atol\"", "w.jsonl:1: tolerance: atol: not supported"},
      {"\"required_match_ratio\": 0.98", "\"required_match_ratio\": 98",
       "w.jsonl:1: tolerance: required_match_ratio: out of range: 98; from 0 to 1"},
      {"\"max_rtol\": 0.02", "\"max_error_cap\": 0.5",
       "w.jsonl:2: tolerance: max_error_cap: not supported"},
      {"\"max_rtol\": 0.02", "\"allow_negative_inf\": true",
       "w.jsonl:2: tolerance: allow_negative_inf: only false is supported"},
};

static void expect_refusal(const char *of_definition, const char *of_workload, const char *said) {
    static struct outcome out;
    convert(of_definition, of_workload, &out);
    if (!out.result)
        fail_msg("taken; '%s' was expected", said);
    if (strncmp(out.err.text, said, strlen(said)) != 0)
        fail_msg("'%s' begins not with '%s'", out.err.text, said);
}

static void what_is_not_supported_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof definition_refusals / sizeof *definition_refusals; i++) {
        const struct refusal *r = &definition_refusals[i];
        char *changed = replaced(definition, r->from, r->to, 1);
        expect_refusal(changed, workload, r->said);
        free(changed);
    }
    for (size_t i = 0; i < sizeof workload_refusals / sizeof *workload_refusals; i++) {
        const struct refusal *r = &workload_refusals[i];
        char *changed = replaced(workload, r->from, r->to, 1);
        expect_refusal(definition, changed, r->said);
        free(changed);
    }
}

/* Which inputs are meant must be clear. */
static void inputs_and_their_function_must_agree(void **state) {
    (void)state;
    char *plain = replaced(definition, "\"get_inputs\"", "null", 1);
    char *random = replaced(workload, "\"custom\"", "\"random\"", 18);
    expect_refusal(plain, workload, "w.jsonl:1: inputs: custom, but the definition has no custom_");
    expect_refusal(definition, random,
                   "w.jsonl:1: inputs: random, but the definition has a custom_"
                   "inputs_entrypoint, get_inputs");
    free(plain);
    free(random);
}

static void empty_files_are_refused(void **state) {
    (void)state;
    expect_refusal("", workload, "d.json");
    expect_refusal("[]", workload, "d.json: not an object");
    expect_refusal("{}", workload, "d.json: name: missing");
    expect_refusal(definition, "", "w.jsonl: no workload in it");
    expect_refusal(definition, "\n \r\n", "w.jsonl: no workload in it");
}

static int read_files(void **state) {
    struct error err = {0};
    size_t size;
    (void)state;
    if (file_read("tests/definition/definition.json", 1 << 20, &definition, &size, &err) ||
        file_read("tests/definition/workload.jsonl", 1 << 20, &workload, &size, &err))
        return error_print(&err);
    return 0;
}

static int free_files(void **state) {
    (void)state;
    free(definition);
    free(workload);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_become_a_suite),
        cmocka_unit_test(what_was_used_is_said),
        cmocka_unit_test(the_hash_is_over_both_files),
        cmocka_unit_test(random_inputs_are_drawn),
        cmocka_unit_test(axes_may_have_other_names_and_vary),
        cmocka_unit_test(a_trace_without_results_is_a_workload),
        cmocka_unit_test(what_is_not_supported_is_named),
        cmocka_unit_test(inputs_and_their_function_must_agree),
        cmocka_unit_test(empty_files_are_refused),
    };
    return cmocka_run_group_tests(tests, read_files, free_files);
}
