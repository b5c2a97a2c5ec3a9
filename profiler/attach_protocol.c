/* The words that worker and attached program exchange: one JSON object a line, the program asks,
 * the worker answers. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach_process.h"

static const char *const request_names[REQUEST_COUNT] = {"nothing", "hello", "case",
                                                         "refuse",  "next",  "begin"};

/* --- requests and answers -------------------------------------------------------------------- */

static int answer(struct attach_program *program, json_t *reply, struct error *err) {
    char *line = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
    json_decref(reply);
    program->pending = REQUEST_NONE;
    if (!line)
        return error_set(err, EXIT_FAILED, "out of memory: an answer to an attached program");
    int result = attach_write_line(program, line, err);
    free(line);
    return result;
}

/* The program hears it, too. */
static int protest(struct attach_program *program, const char *text, struct error *err) {
    error_set(err, EXIT_FAILED, "attach: %.100s %s", program->word, text);
    answer(program, json_pack("{s:s}", "error", text), NULL);
    return -1;
}

static enum attach_request kind_of(const json_t *request) {
    for (int kind = REQUEST_NONE + 1; kind < REQUEST_COUNT; kind++)
        if (json_object_get(request, request_names[kind]))
            return (enum attach_request)kind;
    return REQUEST_NONE;
}

static const char *what_is_early(enum attach_request asked, unsigned expected) {
    if (asked != REQUEST_CASE)
        return "out of turn";
    return expected & 1u << REQUEST_HELLO ? "before it said hello"
                                          : "before all forwards of the case at hand were run";
}

/* The program's next request, which may be any of the bits 1 << kind. *request is the caller's. */
static int hear(struct attach_program *program, unsigned expected, json_t **request,
                struct error *err) {
    const char *line;
    char text[256];
    if (attach_read_line(program, &line, err))
        return -1;
    *request = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    program->pending = json_is_object(*request) ? kind_of(*request) : REQUEST_NONE;
    if (program->pending != REQUEST_NONE && expected & 1u << program->pending)
        return 0;
    if (program->pending == REQUEST_NONE)
        snprintf(text, sizeof text, "sent what is not a request %s: %.80s", program->stage, line);
    else
        snprintf(text, sizeof text, "asked \"%s\" %s", request_names[program->pending],
                 what_is_early(program->pending, expected));
    json_decref(*request);
    *request = NULL;
    return protest(program, text, err);
}

static int hear_next(struct attach_program *program, unsigned expected, json_t **request,
                     struct error *err) {
    if (hear(program, expected | 1u << REQUEST_NEXT, request, err))
        return -1;
    if (program->pending == REQUEST_NEXT)
        program->converts = json_is_true(json_object_get(*request, "converts"));
    return 0;
}

/* --- hello ----------------------------------------------------------------------------------- */

static bool is_plain_name(const char *name) {
    size_t length = strlen(name);
    return length > 0 && length < 64 && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static int take_hello(struct attach_program *program, const json_t *said,
                      struct attach_hello *hello, struct error *err) {
    const char *name, *value_type;
    int protocol, library_only;
    char text[256];
    if (json_unpack((json_t *)said, "{s:i, s:s, s:s, s:b}", "protocol", &protocol, "name", &name,
                    "value_type", &value_type, "library_only", &library_only))
        return protest(program, "said hello without protocol, name, value_type and library_only",
                       err);
    if (protocol != ATTACH_PROTOCOL) {
        snprintf(text, sizeof text, "speaks protocol %d, this tool %d; copy its moesol.py again",
                 protocol, ATTACH_PROTOCOL);
        return protest(program, text, err);
    }
    if (!is_plain_name(name) || strlen(value_type) >= sizeof hello->value_type) {
        snprintf(text, sizeof text,
                 "has the name %.80s of type %.20s; a name is up to 63 of a-z, 0-9 and dashes",
                 name, value_type);
        return protest(program, text, err);
    }
    snprintf(hello->name, sizeof hello->name, "%s", name);
    snprintf(hello->value_type, sizeof hello->value_type, "%s", value_type);
    hello->library_only = library_only;
    return answer(program, json_pack("{s:b}", "hello", 1), err);
}

int attach_wait_hello(struct attach_program *program, struct attach_hello *hello,
                      struct error *err) {
    json_t *request;
    if (hear(program, 1u << REQUEST_HELLO, &request, err))
        return -1;
    int result = take_hello(program, json_object_get(request, "hello"), hello, err);
    json_decref(request);
    return result;
}

/* --- a case ---------------------------------------------------------------------------------- */

static json_t *pack_tensor(const struct attach_tensor *tensor) {
    char handle[2 * sizeof tensor->ipc + 1];
    json_t *shape = json_array();
    for (size_t i = 0; i < sizeof tensor->ipc; i++)
        snprintf(handle + 2 * i, 3, "%02x", tensor->ipc[i]);
    for (int i = 0; i < tensor->dimensions; i++)
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    return json_pack("{s:s, s:i, s:o, s:s}", "ipc", handle, "offset_bytes", 0, "shape", shape,
                     "dtype", tensor->dtype);
}

static json_t *pack_case(const char *suite, const struct suite_case *suite_case,
                         const struct attach_tensor *tensors, size_t count) {
    const struct moe_shape *shape = &suite_case->shape;
    char name[32];
    json_t *packed = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(packed, tensors[i].name, pack_tensor(&tensors[i]));
    snprintf(name, sizeof name, "T=%lld", (long long)shape->batch_seq_len);
    return json_pack(
        "{s:{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:o}}", "case", "suite", suite, "name", name,
        "number", suite_case->number, "tokens", (json_int_t)shape->batch_seq_len, "hidden_size",
        (json_int_t)shape->hidden_size, "intermediate_size",
        (json_int_t)shape->moe_intermediate_size, "num_experts", (json_int_t)shape->num_experts,
        "top_k", (json_int_t)shape->num_experts_per_tok, "tensors", packed);
}

/* Waits until it asks for a case. */
static int hear_case(struct attach_program *program, struct error *err) {
    json_t *request;
    program->stage = "between two cases";
    if (program->pending == REQUEST_CASE)
        return 0;
    if (hear(program, 1u << REQUEST_CASE, &request, err))
        return -1;
    json_decref(request);
    return 0;
}

int attach_offer(struct attach_program *program, const char *suite,
                 const struct suite_case *suite_case, const struct attach_tensor *tensors,
                 size_t tensor_count, char *refusal, size_t size, struct error *err) {
    json_t *request;
    if (hear_case(program, err))
        return -1;
    program->stage = "before its first forward of a case";
    if (answer(program, pack_case(suite, suite_case, tensors, tensor_count), err) ||
        hear_next(program, 1u << REQUEST_REFUSE, &request, err))
        return -1;
    if (program->pending == REQUEST_NEXT) {
        json_decref(request);
        return 0;
    }
    const char *reason = json_string_value(json_object_get(request, "refuse"));
    snprintf(refusal, size, "%s", reason ? reason : "the program gave no reason");
    json_decref(request);
    return answer(program, json_object(), err) ? -1 : 1;
}

/* --- forwards -------------------------------------------------------------------------------- */

static json_t *pack_go(const int64_t *experts, int count) {
    json_t *changed = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(changed, json_integer(experts[i]));
    return json_pack("{s:b, s:o}", "next", 1, "changed_experts", changed);
}

int attach_convert(struct attach_program *program, const int64_t *experts, int expert_count,
                   struct error *err) {
    json_t *request;
    if (!program->converts)
        return 0;
    program->stage = "while it converted a case's tensors";
    if (answer(program, pack_go(experts, expert_count), err) ||
        hear(program, 1u << REQUEST_BEGIN, &request, err))
        return -1;
    json_decref(request);
    return 0;
}

int attach_run(struct attach_program *program, struct error *err) {
    json_t *request;
    json_t *reply = program->pending == REQUEST_BEGIN ? json_object() : pack_go(NULL, 0);
    program->stage = "in a forward";
    if (answer(program, reply, err) || hear_next(program, 0, &request, err))
        return -1;
    json_decref(request);
    return 0;
}

int attach_end_case(struct attach_program *program, struct error *err) {
    program->stage = "at the end of a case";
    if (program->pending == REQUEST_NEXT &&
        answer(program, json_pack("{s:b, s:[]}", "next", 0, "changed_experts"), err))
        return -1;
    return hear_case(program, err);
}
