/* A whole run as asked for: plan, ceilings, then each kernel over all cases into its own record.
 * This process never touches a device; its workers do (run_worker.h).
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cases/draw.h"
#include "../core/build_info.h"
#include "../core/output.h"
#include "child.h"
#include "run_definition.h"
#include "run_kernel.h"
#include "run_plan.h"

/* The records that a run leaves, and what was found in them. */
struct run {
    const struct run_plan *plan;
    const char *command;
    int signal_fd;
    struct record_run line; /* the `run` line, but for the kernel */
    struct progress progress;
    struct run_tally tally;
};

/* Told before anything is measured, not after the first kernel. */
static int check_no_record_is_there(const struct run_plan *plan, struct error *err) {
    char path[1024];
    for (size_t k = 0; k < plan->kernel_count && !plan->resume; k++) {
        if (run_plan_record_path(plan, k, path, sizeof path, err))
            return -1;
        if (access(path, F_OK) == 0)
            return error_set(err, EXIT_USAGE,
                             "record is there already: %.300s; name another folder with -o, or "
                             "continue it with --resume %.100s",
                             path, plan->folder);
    }
    return 0;
}

/* A resumed run keeps the ceilings that it measured first. */
static bool take_earlier_ceilings(struct run *run) {
    char path[1024];
    struct record record;
    struct error ignored = {0};
    for (size_t k = 0; k < run->plan->kernel_count && run->plan->resume; k++) {
        if (run_plan_record_path(run->plan, k, path, sizeof path, &ignored) || access(path, R_OK) ||
            record_read(path, &record, &ignored))
            continue;
        bool same = strcmp(record.run.device.name, run->line.device.name) == 0 &&
                    strcmp(record.run.device.uuid_hash, run->line.device.uuid_hash) == 0;
        if (same && record.run.ceiling_count > 0) {
            run->line.ceilings = record.run.ceilings;
            run->line.ceiling_count = record.run.ceiling_count;
            record.run.ceilings = NULL;
            record.run.ceiling_count = 0;
        }
        record_free(&record);
        if (run->line.ceiling_count > 0)
            return true;
    }
    return false;
}

static int hash_input_table(char hash[65], struct error *err) {
    uint16_t *table = malloc(DRAW_TABLE_SIZE * sizeof *table);
    if (!table)
        return error_set(err, EXIT_FAILED, "out of memory: the table of normal quantiles");
    draw_normal_table(DRAW_HIDDEN_SCALE, table);
    draw_table_hash(table, hash);
    free(table);
    return 0;
}

static int fill_line(struct run *run, struct error *err) {
    const struct run_plan *plan = run->plan;
    struct record_run *line = &run->line;
    record_run_init(line);
    snprintf(line->tool_version, sizeof line->tool_version, "%s", build_version);
    snprintf(line->source_revision, sizeof line->source_revision, "%s", build_revision);
    if (gethostname(line->host, sizeof line->host - 1))
        line->host[0] = '\0';
    snprintf(line->command, sizeof line->command, "%s", run->command);
    run_record_now(line->started_at, sizeof line->started_at);
    snprintf(line->suite_name, sizeof line->suite_name, "%s", plan->suite.name);
    snprintf(line->suite_hash, sizeof line->suite_hash, "%s", plan->suite.hash);
    line->suite_case_count = (double)plan->suite.case_count;
    line->seed = (double)plan->suite.seed;
    snprintf(line->clocks_policy, sizeof line->clocks_policy, "unchanged");
    snprintf(line->counters_level, sizeof line->counters_level, "%s", plan->counters_level);
    line->round_count = plan->wanted.round_count;
    line->samples_asked = plan->samples_asked;
    line->time_limit_asked_s = plan->time_limit_s;
    line->back_to_back = plan->options.back_to_back;
    line->device = plan->device.device;
    if (hash_input_table(line->table_hash, err))
        return -1;
    if (take_earlier_ceilings(run))
        return 0;
    fprintf(stderr, "measuring the roofs of %s\n", line->device.name);
    return device_ceilings(&plan->device, run->signal_fd, &line->ceilings, &line->ceiling_count,
                           err);
}

static const char *end_status(int result, const struct error *err) {
    if (!result)
        return "complete";
    return err->code == EXIT_INTERRUPTED ? "interrupted" : "failed";
}

static int fill_record(struct run *run, size_t k, struct run_record *record, struct error *err) {
    const struct run_plan *plan = run->plan;
    const struct kernel_run kernel_run = {.suite = &plan->suite,
                                          .device_kind = plan->device.kind,
                                          .device_index = plan->device.index,
                                          .kernel = run->line.kernel.name,
                                          .plugin = plan->kernels[k].plugin,
                                          .plugin_sha256 = run->line.kernel.source_hash,
                                          .attach = plan->attach,
                                          .ranked = run->line.kernel.ranked,
                                          .wanted = &plan->wanted,
                                          .counters_level = plan->counters_level,
                                          .options = plan->options,
                                          .time_limit_s = plan->time_limit_s,
                                          .fault = plan->fault,
                                          .fault_case = plan->fault_case,
                                          .signal_fd = run->signal_fd,
                                          .progress = &run->progress,
                                          .record = record,
                                          .tally = &run->tally};
    int result = run_kernel(&kernel_run, err);
    progress_clear(&run->progress);
    struct error second = {0};
    if (run_record_end(record, end_status(result, err), &second) && !result)
        result = error_set(err, second.code, "%s", second.text);
    return result;
}

static int run_one_kernel(struct run *run, size_t k, struct error *err) {
    const struct run_plan *plan = run->plan;
    struct run_record record;
    char path[1024];
    run->line.kernel = plan->kernels[k].record;
    if (run_plan_record_path(plan, k, path, sizeof path, err) ||
        run_record_open(&record, path, &run->line, &plan->wanted, plan->resume, err))
        return -1;
    int result = 0;
    if (record.complete)
        run->progress.steps -= run_kernel_steps(&plan->wanted);
    else
        result = fill_record(run, k, &record, err);
    bool discarded = result && err->code != EXIT_INTERRUPTED && run_record_discard(&record);
    if (run_record_close(&record, result ? NULL : err))
        result = -1;
    if (discarded)
        return result;
    if (printf("%s\n", path) < 0 || fflush(stdout))
        return error_set(err, EXIT_FAILED, "cannot write: standard output: %s", strerror(errno));
    return result;
}

static void print_tally(const struct run_tally *tally) {
    if (tally->wrong + tally->failed + tally->unsupported == 0)
        return;
    fprintf(stderr,
            "moesol: of the cases now run, a case in each round counted by itself: %zu measured, "
            "%zu wrong, %zu crashed or out of time, %zu unsupported\n",
            tally->measured, tally->wrong, tally->failed, tally->unsupported);
}

/* A whole run as planned; returns the exit code. */
static int run_planned(const struct run_plan *plan, const char *command, int signal_fd) {
    struct run run = {.plan = plan, .command = command, .signal_fd = signal_fd};
    struct error err = {0};
    int result = output_make_directory(plan->folder, &err);
    if (!result)
        result = check_no_record_is_there(plan, &err);
    if (!result && plan->suite_text)
        result = run_definition_write(&plan->suite, plan->suite_text, &err);
    if (!result)
        result = fill_line(&run, &err);
    progress_start(&run.progress, plan->kernel_count * run_kernel_steps(&plan->wanted));
    for (size_t k = 0; k < plan->kernel_count && !result; k++)
        result = run_one_kernel(&run, k, &err);
    free(run.line.ceilings);
    print_tally(&run.tally);
    if (result)
        return error_print(&err);
    return run.tally.wrong + run.tally.failed ? EXIT_FAILED : EXIT_OK;
}

int run_request(const struct run_request *request, const char *command, int signal_fd) {
    struct error err = {0};
    struct run_plan *plan = malloc(sizeof *plan);
    if (!plan)
        error_set(&err, EXIT_FAILED, "out of memory: a plan");
    if (!plan || run_plan_make(request, signal_fd, plan, &err)) {
        free(plan);
        return error_print(&err);
    }
    int code = run_planned(plan, command, signal_fd);
    run_plan_free(plan);
    free(plan);
    return code;
}
