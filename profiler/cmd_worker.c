/* `moesol worker`, the process that touches the device: reads a job from stdin, does it, and writes
 * its messages to descriptor 3 (worker_protocol.h). Started by `moesol run`, never by hand. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../core/build_info.h"
#include "../core/file.h"
#include "commands.h"
#include "plugin.h"
#include "reference.h"
#include "worker_protocol.h"

struct worker {
    struct worker_job job;
    FILE *messages;
    const struct backend *backend;
    struct backend_session *session;
    const struct moe_kernel *kernel;
    struct plugin plugin;                     /* where the job names one */
    const struct moe_kernel *const *attached; /* where the job names a program */
    char attached_sha256[65];                 /* of its source; empty: it has no file */
    struct suite suite;
    struct moe_shape loaded; /* of the last load(); num_experts 0: none */
};

static int read_job(struct worker_job *job, struct error *err) {
    char text[32768];
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text && (got = read(0, text + length, sizeof text - length)) != 0) {
        if (got < 0 && errno != EINTR)
            return error_set(err, EXIT_FAILED, "cannot read the job: %s", strerror(errno));
        length += got > 0 ? (size_t)got : 0;
    }
    return worker_job_parse(text, length, job, err);
}

/* --- describe, ceilings ---------------------------------------------------------------------- */

static void fill_kernel(const struct worker *worker, const struct moe_kernel *kernel,
                        struct record_kernel *out) {
    snprintf(out->name, sizeof out->name, "%s", kernel->name);
    snprintf(out->author, sizeof out->author, "%s", kernel->author);
    snprintf(out->license, sizeof out->license, "%s", kernel->license);
    snprintf(out->source, sizeof out->source, "%s", kernel->source);
    snprintf(out->value_type, sizeof out->value_type, "%s", kernel->value_type);
    out->plugin = worker->job.plugin[0] || worker->attached;
    if (out->plugin)
        snprintf(out->source_hash, sizeof out->source_hash, "%s",
                 worker->attached ? worker->attached_sha256 : worker->plugin.sha256);
    for (const struct build_source *source = build_sources; !out->plugin && source->path; source++)
        if (strcmp(source->path, kernel->source) == 0)
            snprintf(out->source_hash, sizeof out->source_hash, "%s", source->sha256);
    out->ranked = kernel->ranked;
    out->library_only = kernel->library_only;
}

static void fill_run(struct worker *worker, struct record_run *run) {
    struct moe_device ignored;
    memset(&ignored, 0, sizeof ignored);
    record_run_init(run);
    snprintf(run->tool_version, sizeof run->tool_version, "%s", build_version);
    snprintf(run->suite_name, sizeof run->suite_name, "none");
    worker->backend->describe(worker->session, &run->device, &ignored);
}

/* Whether a kernel runs on the device at hand: a plug-in may have kernels of both platforms. */
static bool is_here(const struct worker *worker, const struct moe_kernel *kernel) {
    bool cuda = strcmp(worker->backend->kind, "cuda") == 0;
    return kernel->platform == (cuda ? MOE_CUDA : MOE_CPU);
}

static const struct moe_kernel *const *kernel_table(const struct worker *worker) {
    if (worker->attached)
        return worker->attached;
    return worker->job.plugin[0] ? worker->plugin.kernels : worker->backend->kernels;
}

static int describe(struct worker *worker, struct error *err) {
    const struct moe_kernel *const *kernels = kernel_table(worker);
    struct record_run run;
    fill_run(worker, &run);
    for (size_t i = 0; kernels[i]; i++) {
        if (!is_here(worker, kernels[i]))
            continue;
        memset(&run.kernel, 0, sizeof run.kernel);
        fill_kernel(worker, kernels[i], &run.kernel);
        if (record_write_run(worker->messages, &run, err))
            return -1;
    }
    return 0;
}

/* A plug-in's kernel must not pass for one of ours. */
static int open_plugin(struct worker *worker, struct error *err) {
    const struct worker_job *job = &worker->job;
    struct plugin *plugin = &worker->plugin;
    size_t here = 0;
    if (!job->plugin[0])
        return 0;
    if (plugin_load(job->plugin, job->plugin_sha256, plugin, err))
        return -1;
    for (size_t i = 0; i < plugin->kernel_count; i++) {
        here += is_here(worker, plugin->kernels[i]);
        for (size_t b = 0; worker->backend->kernels[b]; b++)
            if (strcmp(worker->backend->kernels[b]->name, plugin->kernels[i]->name) == 0)
                return error_set(err, EXIT_USAGE,
                                 "plug-in %.200s: its kernel %s has the name of a built-in one; "
                                 "give it another",
                                 job->plugin, plugin->kernels[i]->name);
    }
    if (here == 0)
        return error_set(err, EXIT_USAGE, "plug-in %.200s: has no kernel for %s; add --device %s",
                         job->plugin, job->device_kind,
                         strcmp(job->device_kind, "cpu") ? "cpu" : "cuda");
    return 0;
}

/* A program in place of kernels; it, too, must not pass for one of ours, or change in a run. */
static int open_attached(struct worker *worker, struct error *err) {
    const struct worker_job *job = &worker->job;
    char source[512];
    if (!job->attach_bytes)
        return 0;
    if (!worker->backend->attach)
        return error_set(err, EXIT_USAGE, "attach: not on %s: programs run on a GPU",
                         worker->backend->kind);
    attach_source(job->attach, job->attach_bytes, source, sizeof source);
    if (source[0] && file_sha256(source, worker->attached_sha256, err))
        return -1;
    if (job->plugin_sha256[0] && strcmp(job->plugin_sha256, worker->attached_sha256))
        return error_set(err, EXIT_FAILED,
                         "attach: %.300s was changed during the run; start it again", source);
    if (worker->backend->attach(worker->session, job->attach, job->attach_bytes, &worker->attached,
                                err))
        return -1;
    for (size_t b = 0; worker->backend->kernels[b]; b++)
        if (strcmp(worker->backend->kernels[b]->name, worker->attached[0]->name) == 0)
            return error_set(err, EXIT_USAGE,
                             "attach: the program has the name of a built-in kernel: %s; give it "
                             "another",
                             worker->attached[0]->name);
    return 0;
}

static int measure_ceilings(struct worker *worker, struct error *err) {
    struct record_run run;
    fill_run(worker, &run);
    snprintf(run.kernel.name, sizeof run.kernel.name, "none");
    if (worker->backend->ceilings(worker->session, &run.ceilings, &run.ceiling_count, err))
        return -1;
    int result = record_write_run(worker->messages, &run, err);
    free(run.ceilings);
    return result;
}

/* --- cases ----------------------------------------------------------------------------------- */

/* A daemon's way out: a session of its own, so that no signal to the worker's group reaches it. */
static void leave_a_stray(void) {
    if (fork() || fork())
        return;
    setsid();
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
}

/* In a session of its own a process that lives for some microseconds only, and its successor. It
 * ends by itself after a minute. */
static void leave_a_chain(void) {
    if (fork())
        return;
    setsid();
    for (time_t end = time(NULL) + 60; time(NULL) < end;)
        if (fork() > 0)
            _exit(0);
    _exit(0);
}

static void strike(const struct worker *worker, int number) {
    if (worker->job.fault == FAULT_NONE || worker->job.fault_case != number ||
        (worker->job.fault == FAULT_CARRY && worker->job.cases[0] == number))
        return;
    fprintf(stderr, "deliberate fault: %s\n", worker_fault_names[worker->job.fault]);
    if (worker->job.fault == FAULT_STRAY)
        leave_a_stray();
    if (worker->job.fault == FAULT_CHAIN)
        leave_a_chain();
    switch (worker->job.fault) {
    case FAULT_STRAY:
    case FAULT_CHAIN:
    case FAULT_CRASH:
    case FAULT_CARRY:
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
        raise(SIGSEGV);
        break;
    case FAULT_HANG:
        for (;;)
            pause();
    case FAULT_FLOOD:
        for (;;)
            fputs("and another line\n", stderr);
    case FAULT_CHATTER:
        for (bool ran = false;; ran = !ran) {
            struct worker_message message = {.kind = ran ? MESSAGE_RAN : MESSAGE_TIMED};
            worker_message_write(worker->messages, &message, NULL);
        }
    case FAULT_EXIT:
        _exit(0);
    default:
        break;
    }
}

/* The weights are drawn once for all cases that share them. */
static int load(struct worker *worker, const struct suite_case *suite_case, struct error *err) {
    const struct moe_shape *shape = &suite_case->shape, *loaded = &worker->loaded;
    if (loaded->num_experts == shape->num_experts && loaded->hidden_size == shape->hidden_size &&
        loaded->moe_intermediate_size == shape->moe_intermediate_size)
        return 0;
    if (worker->backend->load(worker->session, &worker->suite, shape, err))
        return -1;
    worker->loaded = *shape;
    return 0;
}

static void fill_case(const struct worker *worker, const struct suite_case *suite_case,
                      struct record_case *record_case) {
    record_case_init(record_case);
    record_case->number = suite_case->number;
    record_case->round = worker->job.round;
    record_case->batch_seq_len = (double)suite_case->shape.batch_seq_len;
    record_case->hidden_size = (double)suite_case->shape.hidden_size;
    record_case->moe_intermediate_size = (double)suite_case->shape.moe_intermediate_size;
    record_case->num_experts = (double)suite_case->shape.num_experts;
    record_case->num_experts_per_tok = (double)suite_case->shape.num_experts_per_tok;
    record_case->atol = suite_case->atol;
    record_case->rtol = suite_case->rtol;
}

/* Draw 0, against both oracles, in the first round; a draw of its own, which no timed iteration
 * has, in each other one. */
static int check(struct worker *worker, const struct suite_case *suite_case,
                 struct record_case *record_case, struct error *err) {
    uint64_t draw = worker->job.round == 0 ? 0 : 1000000 + (uint64_t)worker->job.round;
    if (worker->backend->check(worker->session, draw, record_case, err))
        return -1;
    if (!worker->job.check_reference)
        return 0;
    return reference_check(worker->backend, worker->session, &worker->suite, suite_case,
                           record_case, err);
}

/* For the parent's clock. A pipe that is closed shows at the next line that matters. */
static void mark_timed(void *self, bool end) {
    struct worker *worker = self;
    struct worker_message message = {.kind = end ? MESSAGE_RAN : MESSAGE_TIMED};
    worker_message_write(worker->messages, &message, NULL);
}

/* The launches of a typical iteration stand before the case's own line, once a case. */
static int write_measured(struct worker *worker, const struct record_case *record_case,
                          const struct record_timeline *timeline, struct error *err) {
    if (worker->job.round == 0 && timeline->launch_count > 0 &&
        record_write_timeline(worker->messages, timeline, err))
        return -1;
    return record_write_case(worker->messages, record_case, err);
}

/* Returns `result`, or what went wrong in tearing the case down. */
static int finish(struct worker *worker, int result, struct error *err) {
    struct error after = {0};
    if (!result)
        return worker->backend->finish(worker->session, err);
    worker->backend->finish(worker->session, &after);
    return result;
}

static int measure_case(struct worker *worker, const struct suite_case *suite_case,
                        struct error *err) {
    struct measure_options options = worker->job.options;
    struct record_case record_case;
    struct record_timeline timeline;
    record_timeline_init(&timeline);
    options.timeline = &timeline;
    options.mark = mark_timed;
    options.mark_self = worker;
    fill_case(worker, suite_case, &record_case);
    int prepared =
        worker->backend->prepare(worker->session, suite_case, worker->kernel, &record_case, err);
    int result = prepared < 0 ? -1 : 0;
    if (prepared == 1)
        record_case.status = STATUS_UNSUPPORTED;
    if (prepared == 0)
        result = worker->backend->measure(worker->session, &options, &record_case, err);
    if (prepared == 0 && !result)
        result = check(worker, suite_case, &record_case, err);
    /* Before the line is written: a kernel that fails when it is torn down has not passed. */
    result = finish(worker, result, err);
    timeline.number = suite_case->number;
    snprintf(timeline.source, sizeof timeline.source, "activity");
    if (!result)
        result = write_measured(worker, &record_case, &timeline, err);
    record_timeline_free(&timeline);
    record_case_free(&record_case);
    return result;
}

static int count_case(struct worker *worker, const struct suite_case *suite_case,
                      struct error *err) {
    struct record_case record_case;
    struct record_counters counters;
    fill_case(worker, suite_case, &record_case);
    record_counters_init(&counters);
    counters.number = suite_case->number;
    snprintf(counters.level, sizeof counters.level, "%s", worker->job.counters_level);
    int prepared =
        worker->backend->prepare(worker->session, suite_case, worker->kernel, &record_case, err);
    int result = prepared < 0 ? -1 : 0;
    if (prepared == 1)
        snprintf(counters.reason, sizeof counters.reason, "unsupported: %.200s",
                 record_case.reason);
    if (prepared == 0)
        result =
            worker->backend->count(worker->session, worker->job.counters_level, &counters, err);
    result = finish(worker, result, err);
    if (!result)
        result = record_write_counters(worker->messages, &counters, err);
    record_counters_free(&counters);
    record_case_free(&record_case);
    return result;
}

static int sample_case(struct worker *worker, const struct suite_case *suite_case,
                       struct error *err) {
    struct record_case record_case;
    struct record_timeline timeline;
    fill_case(worker, suite_case, &record_case);
    record_timeline_init(&timeline);
    int prepared =
        worker->backend->prepare(worker->session, suite_case, worker->kernel, &record_case, err);
    int result = prepared < 0 ? -1 : 0;
    if (prepared == 1)
        snprintf(timeline.reason, sizeof timeline.reason, "unsupported: %.200s",
                 record_case.reason);
    if (prepared == 0)
        result = worker->backend->sample(worker->session, &timeline, err);
    result = finish(worker, result, err);
    timeline.number = suite_case->number;
    snprintf(timeline.source, sizeof timeline.source, "sampling");
    if (!result)
        result = record_write_timeline(worker->messages, &timeline, err);
    record_timeline_free(&timeline);
    record_case_free(&record_case);
    return result;
}

/* What a job of this mode does with a case. */
static int do_case(struct worker *worker, const struct suite_case *suite_case, struct error *err) {
    if (worker->job.mode == WORKER_COUNT)
        return count_case(worker, suite_case, err);
    if (worker->job.mode == WORKER_SAMPLE)
        return sample_case(worker, suite_case, err);
    return measure_case(worker, suite_case, err);
}

static int do_cases(struct worker *worker, struct error *err) {
    if (suite_read(worker->job.suite, &worker->suite, err))
        return -1;
    const struct moe_kernel *const *kernels = kernel_table(worker);
    for (size_t i = 0; kernels[i]; i++)
        if (is_here(worker, kernels[i]) && strcmp(kernels[i]->name, worker->job.kernel) == 0)
            worker->kernel = kernels[i];
    if (!worker->kernel)
        return error_set(err, EXIT_USAGE, "unknown kernel: %s", worker->job.kernel);
    if (worker->job.mode == WORKER_COUNT && !worker->backend->count)
        return error_set(err, EXIT_USAGE, "no counters on %s", worker->backend->kind);
    if (worker->job.mode == WORKER_SAMPLE && !worker->backend->sample)
        return error_set(err, EXIT_USAGE, "no counters over time on %s", worker->backend->kind);
    for (size_t i = 0; i < worker->job.case_count; i++) {
        const struct suite_case *suite_case = suite_find_case(&worker->suite, worker->job.cases[i]);
        if (!suite_case)
            return error_set(err, EXIT_USAGE, "suite %s has no case %d", worker->suite.name,
                             worker->job.cases[i]);
        struct worker_message begin = {.kind = MESSAGE_BEGIN, .case_number = suite_case->number};
        if (load(worker, suite_case, err) || worker_message_write(worker->messages, &begin, err))
            return -1;
        strike(worker, suite_case->number);
        if (do_case(worker, suite_case, err))
            return -1;
    }
    return 0;
}

static int do_job(struct worker *worker, struct error *err) {
    bool cuda = strcmp(worker->job.device_kind, "cuda") == 0;
    worker->backend = cuda ? backend_cuda(err) : &backend_cpu;
    if (!worker->backend ||
        worker->backend->open(worker->job.device_index, &worker->session, err) ||
        open_plugin(worker, err) || open_attached(worker, err))
        return -1;
    switch (worker->job.mode) {
    case WORKER_DESCRIBE:
        return describe(worker, err);
    case WORKER_CEILINGS:
        return measure_ceilings(worker, err);
    default:
        return do_cases(worker, err);
    }
}

int cmd_worker(int argc, char **argv) {
    struct error err = {0};
    (void)argv;
    struct worker *worker = argc == 1 && fcntl(WORKER_MESSAGE_FD, F_SETFD, FD_CLOEXEC) == 0
                                ? calloc(1, sizeof *worker)
                                : NULL;
    if (worker)
        worker->messages = fdopen(WORKER_MESSAGE_FD, "w");
    if (!worker || !worker->messages) {
        error_set(&err, EXIT_USAGE,
                  "worker: is started by `moesol run`, not by hand: no pipe on "
                  "descriptor 3");
        free(worker);
        return error_print(&err);
    }
    int result = read_job(&worker->job, &err);
    if (!result)
        result = do_job(worker, &err);
    struct worker_message last = {.kind = result ? MESSAGE_ERROR : MESSAGE_DONE, .code = err.code};
    snprintf(last.text, sizeof last.text, "%s", err.text);
    worker_message_write(worker->messages, &last, NULL);
    /* After an error the session is spoiled, and closing it might hang: the process just ends. */
    if (result)
        _exit(err.code);
    worker->backend->close(worker->session);
    fclose(worker->messages);
    free(worker);
    return EXIT_OK;
}
