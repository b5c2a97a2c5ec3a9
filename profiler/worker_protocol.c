/* Jobs and messages between the parent and its workers, as JSON. */
#include "worker_protocol.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const mode_names[WORKER_MODE_COUNT] = {"describe", "ceilings", "measure",
                                                          "count", "sample"};
const char *const worker_fault_names[FAULT_COUNT] = {"none",  "crash", "hang",    "exit", "stray",
                                                     "chain", "flood", "chatter", "carry"};
static const char *const message_names[MESSAGE_KIND_COUNT] = {
    "begin", "error", "done", "timed", "ran", "run", "case", "counters", "timeline"};

/* Index of `name` in a table, -1 if it is not there. */
static int find_name(const char *name, const char *const *names, int count) {
    for (int i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* The words of a command, each with its '\0'. */
static json_t *pack_words(const char *command, size_t bytes) {
    json_t *words = json_array();
    for (const char *word = command; word < command + bytes; word += strlen(word) + 1)
        if (json_array_append_new(words, json_string(word))) {
            json_decref(words);
            return NULL; /* not UTF-8 */
        }
    return words;
}

char *worker_job_write(const struct worker_job *job) {
    json_t *cases = json_array();
    for (size_t i = 0; cases && i < job->case_count; i++)
        json_array_append_new(cases, json_integer(job->cases[i]));
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:b, s:s, s:s, s:i, s:{s:i, s:i, s:f, "
        "s:i, s:b, s:b}}",
        "mode", mode_names[job->mode], "device_kind", job->device_kind, "device_index",
        job->device_index, "suite", job->suite, "kernel", job->kernel, "plugin", job->plugin,
        "plugin_sha256", job->plugin_sha256, "attach", pack_words(job->attach, job->attach_bytes),
        "cases", cases, "round", job->round, "check_reference", job->check_reference,
        "counters_level", job->counters_level, "fault", worker_fault_names[job->fault],
        "fault_case", job->fault_case, "options", "warmup_count", job->options.warmup_count,
        "sample_count", job->options.sample_count, "budget_s", job->options.budget_s, "sample_min",
        job->options.sample_min, "back_to_back", job->options.back_to_back, "collect",
        job->options.collect);
    if (!root)
        return NULL;
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static int copy_text(char *to, size_t size, const char *from, const char *key, struct error *err) {
    if (strlen(from) >= size)
        return error_set(err, EXIT_USAGE, "worker job: %s: longer than %zu bytes", key, size - 1);
    strcpy(to, from);
    return 0;
}

static int take_cases(const json_t *cases, struct worker_job *job, struct error *err) {
    size_t count = json_array_size(cases);
    if (!json_is_array(cases) || count > SUITE_MAX_CASES)
        return error_set(err, EXIT_USAGE, "worker job: cases: not an array of at most %d numbers",
                         SUITE_MAX_CASES);
    for (size_t i = 0; i < count; i++) {
        json_t *number = json_array_get(cases, i);
        if (!json_is_integer(number) || json_integer_value(number) < 1 ||
            json_integer_value(number) > SUITE_MAX_CASES)
            return error_set(err, EXIT_USAGE, "worker job: cases: entry %zu is no case number", i);
        job->cases[i] = (int)json_integer_value(number);
    }
    job->case_count = count;
    return 0;
}

static int take_words(const json_t *words, struct worker_job *job, struct error *err) {
    if (!json_is_array(words))
        return error_set(err, EXIT_USAGE, "worker job: attach: not an array of words");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        size_t bytes = word ? strlen(word) + 1 : 0;
        if (!bytes || bytes > sizeof job->attach - job->attach_bytes)
            return error_set(err, EXIT_USAGE,
                             "worker job: attach: word %zu is none, or all are longer than %zu "
                             "bytes",
                             i, sizeof job->attach);
        memcpy(job->attach + job->attach_bytes, word, bytes);
        job->attach_bytes += bytes;
    }
    return 0;
}

static int take_job(json_t *root, struct worker_job *job, struct error *err) {
    const char *mode, *kind, *suite, *kernel, *plugin, *plugin_sha256, *level, *fault;
    json_t *cases, *attach;
    json_error_t problem;
    int check_reference, back_to_back, collect;
    struct measure_options *options = &job->options;
    if (json_unpack_ex(
            root, &problem, 0,
            "{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:b, s:s, s:s, s:i, s:{s:i, s:i, "
            "s:F, s:i, s:b, s:b}}",
            "mode", &mode, "device_kind", &kind, "device_index", &job->device_index, "suite",
            &suite, "kernel", &kernel, "plugin", &plugin, "plugin_sha256", &plugin_sha256, "attach",
            &attach, "cases", &cases, "round", &job->round, "check_reference", &check_reference,
            "counters_level", &level, "fault", &fault, "fault_case", &job->fault_case, "options",
            "warmup_count", &options->warmup_count, "sample_count", &options->sample_count,
            "budget_s", &options->budget_s, "sample_min", &options->sample_min, "back_to_back",
            &back_to_back, "collect", &collect))
        return error_set(err, EXIT_USAGE, "worker job: %s", problem.text);
    int mode_index = find_name(mode, mode_names, WORKER_MODE_COUNT);
    int fault_index = find_name(fault, worker_fault_names, FAULT_COUNT);
    if (mode_index < 0 || fault_index < 0)
        return error_set(err, EXIT_USAGE, "worker job: unknown %s: %.80s",
                         mode_index < 0 ? "mode" : "fault", mode_index < 0 ? mode : fault);
    job->mode = (enum worker_mode)mode_index;
    job->fault = (enum worker_fault)fault_index;
    job->check_reference = check_reference;
    options->back_to_back = back_to_back;
    options->collect = collect;
    if (copy_text(job->device_kind, sizeof job->device_kind, kind, "device_kind", err) ||
        copy_text(job->suite, sizeof job->suite, suite, "suite", err) ||
        copy_text(job->kernel, sizeof job->kernel, kernel, "kernel", err) ||
        copy_text(job->plugin, sizeof job->plugin, plugin, "plugin", err) ||
        copy_text(job->plugin_sha256, sizeof job->plugin_sha256, plugin_sha256, "plugin_sha256",
                  err) ||
        copy_text(job->counters_level, sizeof job->counters_level, level, "counters_level", err))
        return -1;
    return take_words(attach, job, err) ? -1 : take_cases(cases, job, err);
}

int worker_job_parse(const char *text, size_t length, struct worker_job *job, struct error *err) {
    json_error_t problem;
    memset(job, 0, sizeof *job);
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        return error_set(err, EXIT_USAGE, "worker job: not JSON: %s", problem.text);
    int result = take_job(root, job, err);
    json_decref(root);
    return result;
}

int worker_message_write(FILE *file, const struct worker_message *message, struct error *err) {
    json_t *root = json_pack("{s:s}", "event", message_names[message->kind]);
    if (root && message->kind == MESSAGE_BEGIN)
        json_object_set_new(root, "case", json_integer(message->case_number));
    if (root && message->kind == MESSAGE_ERROR) {
        /* A kernel's own text may hold anything; json_string() refuses what is not UTF-8. */
        json_t *text = json_string(message->text);
        json_object_set_new(root, "code", json_integer(message->code));
        json_object_set_new(root, "text", text ? text : json_string("(text is not UTF-8)"));
    }
    char *line = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!line)
        return error_set(err, EXIT_FAILED, "out of memory: a worker's message");
    bool failed = fprintf(file, "%s\n", line) < 0 || fflush(file);
    free(line);
    if (failed)
        return error_set(err, EXIT_FAILED, "the worker's pipe is closed");
    return 0;
}

static int take_message(const json_t *root, struct worker_message *message, struct error *err) {
    const char *event = json_string_value(json_object_get(root, "event"));
    const char *name = event ? event : json_string_value(json_object_get(root, "type"));
    int first = event ? MESSAGE_BEGIN : MESSAGE_RUN;
    int last = event ? MESSAGE_RAN : MESSAGE_TIMELINE;
    int kind = find_name(name, message_names, MESSAGE_KIND_COUNT);
    if (kind < first || kind > last)
        return error_set(err, EXIT_FAILED, "the worker sent an unknown line: %.80s",
                         name ? name : "(no event and no type)");
    message->kind = (enum worker_message_kind)kind;
    json_t *number = json_object_get(root, "case");
    json_t *code = json_object_get(root, "code");
    const char *text = json_string_value(json_object_get(root, "text"));
    if (kind == MESSAGE_BEGIN && !json_is_integer(number))
        return error_set(err, EXIT_FAILED, "the worker sent a begin without a case");
    if (kind == MESSAGE_BEGIN)
        message->case_number = (int)json_integer_value(number);
    if (kind == MESSAGE_ERROR) {
        message->code = json_integer_value(code) == EXIT_USAGE ? EXIT_USAGE : EXIT_FAILED;
        snprintf(message->text, sizeof message->text, "%s", text ? text : "(no text)");
    }
    return 0;
}

int worker_message_parse(const char *line, size_t length, struct worker_message *message,
                         struct error *err) {
    json_error_t problem;
    memset(message, 0, sizeof *message);
    json_t *root = json_loadb(line, length, 0, &problem);
    if (!json_is_object(root)) {
        json_decref(root);
        return error_set(err, EXIT_FAILED, "the worker sent a line that is no JSON object: %.60s",
                         line);
    }
    int result = take_message(root, message, err);
    json_decref(root);
    return result;
}
