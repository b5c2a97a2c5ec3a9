/* Names become things: each step checks one part of the request and offers the nearest valid name.
 */
#include "run_plan.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/kernel.h"
#include "run_definition.h"

static const char default_folder[] = "records";

/* --- kernels --------------------------------------------------------------------------------- */

/* Kernels of one name would share a record: the same one is taken once, another is an error. */
static int add_kernel(struct run_plan *plan, const struct record_kernel *kernel, const char *plugin,
                      struct error *err) {
    for (size_t i = 0; i < plan->kernel_count; i++) {
        if (strcmp(plan->kernels[i].record.name, kernel->name))
            continue;
        if (strcmp(plan->kernels[i].plugin, plugin) == 0)
            return 0;
        return error_set(err, EXIT_USAGE, "run: two plug-ins have a kernel %s: %.200s and %.200s",
                         kernel->name, plan->kernels[i].plugin, plugin);
    }
    if (plan->kernel_count == sizeof plan->kernels / sizeof *plan->kernels)
        return error_set(err, EXIT_USAGE, "run: more than %zu kernels", plan->kernel_count);
    struct planned_kernel *added = &plan->kernels[plan->kernel_count++];
    added->record = *kernel;
    snprintf(added->plugin, sizeof added->plugin, "%s", plugin);
    return 0;
}

static int unknown_kernel(const struct run_plan *plan, const char *name, struct error *err) {
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; moe_cpu_kernels[i] && strcmp(plan->device.kind, "cpu"); i++)
        if (strcmp(moe_cpu_kernels[i]->name, name) == 0)
            return error_set(err, EXIT_USAGE,
                             "run: kernel %s runs on the CPU, not on %s; add --device cpu", name,
                             plan->device.kind);
    for (size_t i = 0; i < plan->device.kernel_count && count < 64; i++)
        names[count++] = plan->device.kernels[i].name;
    char what[64];
    snprintf(what, sizeof what, "kernel on %s", plan->device.kind);
    return options_unknown("run", what, name, names, count, err);
}

static int unknown_plugin_kernel(const struct plugin_choice *choice,
                                 const struct record_kernel *kernels, size_t count,
                                 struct error *err) {
    const char *names[64];
    char what[PLUGIN_PATH_BYTES + 32];
    for (size_t i = 0; i < count && i < 64; i++)
        names[i] = kernels[i].name;
    snprintf(what, sizeof what, "kernel of %.200s", choice->path);
    return options_unknown("run", what, choice->kernel, names, count < 64 ? count : 64, err);
}

/* All kernels of a plug-in for this device, or the one that is named. */
static int add_plugin(const char *text, int signal_fd, struct run_plan *plan, struct error *err) {
    struct plugin_choice choice;
    struct record_kernel *kernels;
    size_t count, added = 0;
    int result = 0;
    if (plugin_find("run", text, &choice, err) ||
        device_plugin_kernels(&plan->device, choice.path, signal_fd, &kernels, &count, err))
        return -1;
    for (size_t i = 0; i < count && !result; i++) {
        if (choice.kernel[0] && strcmp(choice.kernel, kernels[i].name))
            continue;
        result = add_kernel(plan, &kernels[i], choice.path, err);
        added++;
    }
    if (added == 0)
        result = unknown_plugin_kernel(&choice, kernels, count, err);
    free(kernels);
    return result;
}

/* The program says what it is: it is started for that, and again for each round. */
static int add_attached(const struct attach_words *attach, int signal_fd, struct run_plan *plan,
                        struct error *err) {
    struct record_kernel *kernels;
    size_t count;
    if (device_attached_kernel(&plan->device, attach, signal_fd, &kernels, &count, err))
        return -1;
    int result = add_kernel(plan, &kernels[0], "", err);
    free(kernels);
    return result;
}

static int choose_kernels(const struct option_list *wanted, int signal_fd, struct run_plan *plan,
                          struct error *err) {
    const struct device_info *device = &plan->device;
    for (size_t i = 0; i < wanted->count; i++) {
        size_t k = 0;
        if (plugin_is_path(wanted->values[i])) {
            if (add_plugin(wanted->values[i], signal_fd, plan, err))
                return -1;
            continue;
        }
        while (k < device->kernel_count && strcmp(device->kernels[k].name, wanted->values[i]))
            k++;
        if (k == device->kernel_count)
            return unknown_kernel(plan, wanted->values[i], err);
        if (add_kernel(plan, &device->kernels[k], "", err))
            return -1;
    }
    for (size_t k = 0; !wanted->count && k < device->kernel_count; k++)
        if (strcmp(device->kernels[k].name, "null") &&
            add_kernel(plan, &device->kernels[k], "", err))
            return -1;
    if (plan->kernel_count == 0)
        return error_set(err, EXIT_FAILED, "run: no kernel for %s in this build", device->kind);
    return 0;
}

/* --- cases ----------------------------------------------------------------------------------- */

/* "--case 99 of suite tiny; the nearest is 16": by number, or by tokens for "T=...". */
static int unknown_case(const struct suite *suite, const char *pattern, struct error *err) {
    bool by_tokens = toupper((unsigned char)pattern[0]) == 'T' && pattern[1] == '=';
    double wanted = strtod(by_tokens ? pattern + 2 : pattern, NULL), least = INFINITY;
    const struct suite_case *nearest = NULL;
    for (size_t i = 0; i < suite->case_count; i++) {
        const struct suite_case *candidate = &suite->cases[i];
        double value =
            by_tokens ? (double)candidate->shape.batch_seq_len : (double)candidate->number;
        if (fabs(value - wanted) < least) {
            least = fabs(value - wanted);
            nearest = candidate;
        }
    }
    if (!nearest)
        return error_set(err, EXIT_USAGE, "run: suite %s has no cases", suite->name);
    if (by_tokens)
        return error_set(
            err, EXIT_USAGE, "run: suite %s has no case: %.80s; the nearest is T=%lld (case %d)",
            suite->name, pattern, (long long)nearest->shape.batch_seq_len, nearest->number);
    return error_set(err, EXIT_USAGE,
                     "run: suite %s has no case: %.80s; it has %zu, the nearest is %d", suite->name,
                     pattern, suite->case_count, nearest->number);
}

static int mark_cases(const struct suite *suite, const char *pattern, bool *marked,
                      struct error *err) {
    bool any = false;
    for (size_t i = 0; i < suite->case_count; i++) {
        int matches = suite_case_matches(&suite->cases[i], pattern);
        if (matches < 0)
            return error_set(err, EXIT_USAGE,
                             "run: not a case pattern: %.80s; give a number (3), a range (2-5), a "
                             "token count (T=%lld) or a list with commas",
                             pattern, (long long)suite->cases[0].shape.batch_seq_len);
        any = any || matches;
        marked[i] = marked[i] || matches;
    }
    return any ? 0 : unknown_case(suite, pattern, err);
}

static int choose_cases(const struct option_list *patterns, struct run_plan *plan,
                        struct error *err) {
    bool marked[SUITE_MAX_CASES] = {false};
    for (size_t i = 0; i < patterns->count; i++)
        if (mark_cases(&plan->suite, patterns->values[i], marked, err))
            return -1;
    plan->wanted.cases = plan->cases;
    for (size_t i = 0; i < plan->suite.case_count; i++)
        if (!patterns->count || marked[i])
            plan->cases[plan->wanted.case_count++] = plan->suite.cases[i].number;
    if (plan->wanted.case_count == 0)
        return error_set(err, EXIT_USAGE, "run: suite %s has no cases", plan->suite.name);
    return 0;
}

/* --- how much -------------------------------------------------------------------------------- */

static int share(int total, int rounds) { return (total + rounds - 1) / rounds; }

static int at_least(int value, int least) { return value > least ? value : least; }

/* The rounds together make at least 10 warm-ups and 50 samples; on the CPU 5 samples, and about a
 * second for a case. */
static void choose_options(const struct run_request *request, struct run_plan *plan) {
    struct measure_options *options = &plan->options;
    int rounds = plan->wanted.round_count;
    options->collect = true;
    options->back_to_back = request->back_to_back;
    options->sample_count = at_least(share(50, rounds), 3);
    if (strcmp(plan->device.kind, "cuda") == 0) {
        options->warmup_count = at_least(share(10, rounds), 2);
        options->sample_min = options->sample_count;
    } else {
        options->warmup_count = 1;
        options->sample_min = share(5, rounds);
        options->budget_s = 0.75 / rounds;
    }
    if (request->samples > 0) {
        options->sample_count = options->sample_min = (int)request->samples;
        options->budget_s = 0;
    }
}

static int choose_counters(const struct run_request *request, struct run_plan *plan,
                           struct error *err) {
    bool cuda = strcmp(plan->device.kind, "cuda") == 0;
    plan->counters_level = request->counters ? request->counters : cuda ? "basic" : "none";
    plan->wanted.counters = strcmp(plan->counters_level, "none") != 0;
    if (plan->wanted.counters && !cuda)
        return error_set(err, EXIT_USAGE,
                         "run: no hardware counters on the CPU: --counters %s; leave it out",
                         plan->counters_level);
    return 0;
}

static int choose_timeline(const struct run_request *request, struct run_plan *plan,
                           struct error *err) {
    plan->wanted.timeline = request->timeline;
    if (request->timeline && strcmp(plan->device.kind, "cuda"))
        return error_set(err, EXIT_USAGE,
                         "run: no counters over time on the CPU: --timeline; leave it out");
    return 0;
}

/* --fault KIND:CASE, for the tests of what a failing kernel does. */
static int choose_fault(const char *text, struct run_plan *plan, struct error *err) {
    const char *colon = text ? strchr(text, ':') : NULL;
    if (!text)
        return 0;
    for (int kind = FAULT_NONE + 1; colon && kind < FAULT_COUNT; kind++) {
        size_t length = strlen(worker_fault_names[kind]);
        if ((size_t)(colon - text) == length &&
            strncmp(text, worker_fault_names[kind], length) == 0) {
            plan->fault = (enum worker_fault)kind;
            plan->fault_case = atoi(colon + 1);
            return 0;
        }
    }
    return error_set(err, EXIT_USAGE,
                     "run: not a fault: %.80s; give crash, hang, exit, stray, chain, flood, "
                     "chatter or carry, and :N",
                     text);
}

/* --- all of it ------------------------------------------------------------------------------- */

/* The suite where it does not depend on the device; *chosen says whether it is read. */
static int choose_suite(const struct run_request *request, struct run_plan *plan, bool *chosen,
                        struct error *err) {
    const char *name = request->arguments.count ? request->arguments.values[0] : NULL;
    const char *definition = request->definition, *workload = request->workload;
    *chosen = name || definition || workload;
    if (!definition != !workload)
        return error_set(err, EXIT_USAGE, "run: %s without %s: the problem needs both files",
                         definition ? "--definition" : "--workload",
                         definition ? "--workload" : "--definition");
    if (definition && name)
        return error_set(err, EXIT_USAGE,
                         "run: SUITE and --definition: %.80s, %.200s; give one of the two", name,
                         definition);
    if (definition)
        return run_definition_read(definition, workload, plan->folder, &plan->suite,
                                   &plan->suite_text, err);
    return name ? suite_read(name, &plan->suite, err) : 0;
}

static int choose_suite_and_device(const struct run_request *request, int signal_fd,
                                   struct run_plan *plan, struct error *err) {
    bool chosen;
    /* A suite that was named is read first: a wrong name is told before a device is waited for. */
    if (choose_suite(request, plan, &chosen, err) ||
        device_choose("run", request->device, signal_fd, &plan->device, err))
        return -1;
    if (chosen)
        return 0;
    bool cuda = strcmp(plan->device.kind, "cuda") == 0;
    return suite_read(cuda ? "moe-token-repeat" : "tiny", &plan->suite, err);
}

int run_plan_make(const struct run_request *request, int signal_fd, struct run_plan *plan,
                  struct error *err) {
    memset(plan, 0, sizeof *plan);
    plan->wanted.round_count = (int)request->rounds;
    plan->samples_asked = request->samples > 0 ? (double)request->samples : NAN;
    plan->time_limit_s = request->time_limit_s > 0 ? request->time_limit_s : NAN;
    plan->resume = request->resume != NULL;
    plan->attach = request->attach.bytes ? &request->attach : NULL;
    plan->folder = plan->resume      ? request->resume
                   : request->output ? request->output
                                     : default_folder;
    if (plan->resume && request->output)
        return error_set(err, EXIT_USAGE,
                         "run: --resume %.80s names the folder already; leave -o out",
                         request->resume);
    if (choose_fault(request->fault, plan, err) ||
        choose_suite_and_device(request, signal_fd, plan, err)) {
        free(plan->suite_text);
        return -1;
    }
    if ((request->attach.bytes ? add_attached(&request->attach, signal_fd, plan, err)
                               : choose_kernels(&request->kernels, signal_fd, plan, err)) ||
        choose_cases(&request->cases, plan, err) || choose_counters(request, plan, err) ||
        choose_timeline(request, plan, err)) {
        run_plan_free(plan);
        return -1;
    }
    choose_options(request, plan);
    return 0;
}

void run_plan_free(struct run_plan *plan) {
    device_info_free(&plan->device);
    free(plan->suite_text);
    plan->suite_text = NULL;
}

int run_plan_record_path(const struct run_plan *plan, size_t kernel, char *path, size_t size,
                         struct error *err) {
    char device[160], name[64];
    device_file_name(&plan->device, device, sizeof device);
    sanitise_name(plan->kernels[kernel].record.name, name, sizeof name);
    int length = snprintf(path, size, "%s/%s-%s.jsonl", plan->folder, device, name);
    if (length < 0 || (size_t)length >= size)
        return error_set(err, EXIT_USAGE, "run: folder name too long: %.80s...", plan->folder);
    return 0;
}
