/* One worker a round, one for the counters, one for the timeline; what they send is checked and
 * goes to the record.
 */
#include "run_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../core/stats.h"
#include "case_status.h"
#include "parent_clock.h"
#include "run_worker.h"

/* Time limits: a constant, and the work at rates far below what any device does. A case is run once
 * a warm-up and sample and a few times for its checks, by oracles that are slow. */
static const double case_limit_s = 120;
static const double load_limit_s = 300;
static const double checks_in_runs = 10;
static const double slowest_flop_per_s[2] = {2e8, 1e12}; /* CPU, CUDA */
static const double slowest_bytes_per_s[2] = {2e7, 1e9};
/* Counters replay each run for each of their passes. */
static const double counter_runs = 200;

/* A round (or the counters) under way: what the hooks need. */
struct stage {
    const struct kernel_run *run;
    int round;      /* or STAGE_COUNTERS, STAGE_TIMELINE */
    int again_case; /* tried again in a fresh worker; 0: none */
    char again_reason[RECORD_TEXT];
    struct parent_clock clock; /* of the case at hand */
};

static bool is_cuda(const struct kernel_run *run) { return strcmp(run->device_kind, "cuda") == 0; }

static double limit_of_case(void *self, int number) {
    const struct stage *stage = self;
    const struct kernel_run *run = stage->run;
    if (!isnan(run->time_limit_s))
        return run->time_limit_s;
    const struct moe_shape *shape = &suite_find_case(run->suite, number)->shape;
    double runs =
        stage->round < 0 ? counter_runs : run->options.warmup_count + run->options.sample_count;
    double flop = 6.0 * (double)shape->batch_seq_len * (double)shape->num_experts_per_tok *
                  (double)shape->hidden_size * (double)shape->moe_intermediate_size;
    return case_limit_s + (runs + checks_in_runs) * flop / slowest_flop_per_s[is_cuda(run)];
}

static double limit_of_load(const struct kernel_run *run) {
    double most_bytes = 0;
    for (size_t i = 0; i < run->suite->case_count; i++)
        most_bytes = fmax(most_bytes, (double)moe_weight_bytes(&run->suite->cases[i].shape));
    return load_limit_s + most_bytes / slowest_bytes_per_s[is_cuda(run)];
}

/* --- hooks ----------------------------------------------------------------------------------- */

static double tokens_of(const struct kernel_run *run, int number) {
    return (double)suite_find_case(run->suite, number)->shape.batch_seq_len;
}

static void begin(void *self, int number) {
    struct stage *stage = self;
    parent_clock_reset(&stage->clock);
    progress_begin(stage->run->progress, number, tokens_of(stage->run, number), stage->round,
                   stage->run->wanted->round_count);
}

static void note_timed(void *self, bool end, double at_s) {
    struct stage *stage = self;
    parent_clock_mark(&stage->clock, end, at_s);
}

static void count_status(const struct kernel_run *run, enum record_status status) {
    struct run_tally *tally = run->tally;
    tally->measured += status == STATUS_OK || status == STATUS_NOISY || status == STATUS_THROTTLED;
    tally->wrong += status == STATUS_WRONG && run->ranked;
    tally->wrong += status == STATUS_IMPOSSIBLE;
    tally->failed += status == STATUS_CRASHED || status == STATUS_TIMEOUT;
    tally->unsupported += status == STATUS_UNSUPPORTED;
}

/* Writes a case and shows it. */
static int keep_case(const struct stage *stage, int number, const struct record_case *record_case,
                     struct error *err) {
    const struct kernel_run *run = stage->run;
    if (run_record_add_case(run->record, record_case, err))
        return -1;
    count_status(run, record_case->status);
    progress_end(run->progress, number, tokens_of(run, number), stage->round,
                 run->wanted->round_count,
                 stats_quantile(record_case->samples_ns, record_case->sample_count, 0.5),
                 record_case->status, record_case->reason);
    return 0;
}

/* The worker's process is the kernel's, too: what the suite says is not taken from it. */
static bool is_problem_of(const struct suite_case *suite_case, const struct record_case *found) {
    const struct moe_shape *shape = &suite_case->shape;
    return found->batch_seq_len == (double)shape->batch_seq_len &&
           found->hidden_size == (double)shape->hidden_size &&
           found->moe_intermediate_size == (double)shape->moe_intermediate_size &&
           found->num_experts == (double)shape->num_experts &&
           found->num_experts_per_tok == (double)shape->num_experts_per_tok &&
           found->rtol == suite_case->rtol &&
           (isnan(suite_case->atol) || found->atol == suite_case->atol);
}

static void note_needed(const struct suite *suite, struct record_case *record_case) {
    record_case->matched_ratio_needed = suite_matched_ratio(suite, record_case->number);
    record_case->token_matched_ratio_needed = suite->token_matched_ratio;
}

/* Back to back there are no moments between the runs. */
static int judge_clock(const struct stage *stage, struct record_case *record_case,
                       struct error *err) {
    char reason[RECORD_TEXT];
    if (stage->run->options.back_to_back || record_case->status == STATUS_UNSUPPORTED)
        return 0;
    switch (parent_clock_judge(&stage->clock, record_case, reason)) {
    case PARENT_CLOCK_MISSING:
        return error_set(err, EXIT_FAILED, "%s", reason);
    case PARENT_CLOCK_DIFFERS:
        record_case->status = STATUS_IMPOSSIBLE;
        memcpy(record_case->reason, reason, sizeof reason);
        return 0;
    default:
        return 0;
    }
}

static int take_case(const struct stage *stage, int number, const char *line, size_t length,
                     struct error *err) {
    struct record_case record_case;
    if (record_parse_case(line, length, &record_case, err))
        return RUN_WORKER_BAD_LINE;
    int result = RUN_WORKER_BAD_LINE;
    if (record_case.number != number) {
        error_set(err, EXIT_FAILED, "the worker sent case %g in case %d", record_case.number,
                  number);
    } else if (!is_problem_of(suite_find_case(stage->run->suite, number), &record_case)) {
        error_set(err, EXIT_FAILED, "the worker sent case %d with another shape or tolerance",
                  number);
    } else {
        /* The worker may have been tampered with: what can be decided here is decided here. */
        record_case.round = stage->round;
        note_needed(stage->run->suite, &record_case);
        case_status_decide(stage->run->suite, &record_case);
        if (judge_clock(stage, &record_case, err)) {
            record_case_free(&record_case);
            return RUN_WORKER_BAD_LINE;
        }
        if (stage->again_case == number && !record_case.reason[0])
            memcpy(record_case.reason, stage->again_reason, sizeof record_case.reason);
        result = keep_case(stage, number, &record_case, err);
    }
    record_case_free(&record_case);
    return result;
}

static int keep_counters(const struct stage *stage, int number, struct record_counters *counters,
                         struct error *err) {
    const struct kernel_run *run = stage->run;
    if (run_record_add_counters(run->record, counters, err))
        return -1;
    progress_end(run->progress, number, tokens_of(run, number), STAGE_COUNTERS, 0, NAN, STATUS_OK,
                 counters->reason);
    return 0;
}

static int take_counters(const struct stage *stage, int number, const char *line, size_t length,
                         struct error *err) {
    struct record_counters counters;
    if (record_parse_counters(line, length, &counters, err))
        return RUN_WORKER_BAD_LINE;
    int result = RUN_WORKER_BAD_LINE;
    if (counters.number != number)
        error_set(err, EXIT_FAILED, "the worker sent counters of case %g in case %d",
                  counters.number, number);
    else
        result = keep_counters(stage, number, &counters, err);
    record_counters_free(&counters);
    return result;
}

static int keep_timeline(const struct stage *stage, int number,
                         const struct record_timeline *timeline, struct error *err) {
    const struct kernel_run *run = stage->run;
    if (run_record_add_timeline(run->record, timeline, err))
        return -1;
    if (stage->round == STAGE_TIMELINE)
        progress_end(run->progress, number, tokens_of(run, number), STAGE_TIMELINE, 0, NAN,
                     STATUS_OK, timeline->reason[0] ? timeline->reason : timeline->stamp_reason);
    return 0;
}

static int take_timeline(const struct stage *stage, int number, const char *line, size_t length,
                         struct error *err) {
    struct record_timeline timeline;
    if (record_parse_timeline(line, length, &timeline, err))
        return RUN_WORKER_BAD_LINE;
    int result = RUN_WORKER_BAD_LINE;
    if (timeline.number != number) {
        error_set(err, EXIT_FAILED, "the worker sent the timeline of case %g in case %d",
                  timeline.number, number);
    } else {
        snprintf(timeline.source, sizeof timeline.source, "%s",
                 stage->round == STAGE_TIMELINE ? "sampling" : "activity");
        result = keep_timeline(stage, number, &timeline, err);
    }
    record_timeline_free(&timeline);
    return result;
}

static int take_line(void *self, enum worker_message_kind kind, int number, const char *line,
                     size_t length, struct error *err) {
    const struct stage *stage = self;
    if (kind == MESSAGE_TIMELINE && (stage->round == 0 || stage->round == STAGE_TIMELINE))
        return take_timeline(stage, number, line, length, err);
    if (kind == MESSAGE_COUNTERS && stage->round == STAGE_COUNTERS)
        return take_counters(stage, number, line, length, err);
    if (kind == MESSAGE_CASE && stage->round >= 0)
        return take_case(stage, number, line, length, err);
    error_set(err, EXIT_FAILED, "the worker sent a line of another kind");
    return RUN_WORKER_BAD_LINE;
}

static int fail_timeline(const struct stage *stage, int number, enum record_status status,
                         const char *reason, struct error *err) {
    struct record_timeline timeline;
    record_timeline_init(&timeline);
    timeline.number = number;
    snprintf(timeline.source, sizeof timeline.source, "sampling");
    snprintf(timeline.reason, sizeof timeline.reason, "%s: %.230s", record_status_names[status],
             reason);
    return keep_timeline(stage, number, &timeline, err);
}

static int fail_counters(const struct stage *stage, int number, enum record_status status,
                         const char *reason, struct error *err) {
    struct record_counters counters;
    record_counters_init(&counters);
    counters.number = number;
    snprintf(counters.level, sizeof counters.level, "%s", stage->run->counters_level);
    snprintf(counters.reason, sizeof counters.reason, "%s: %.230s", record_status_names[status],
             reason);
    return keep_counters(stage, number, &counters, err);
}

static int fail_case(void *self, int number, enum record_status status, const char *reason,
                     struct error *err) {
    const struct stage *stage = self;
    if (stage->round == STAGE_TIMELINE)
        return fail_timeline(stage, number, status, reason, err);
    if (stage->round == STAGE_COUNTERS)
        return fail_counters(stage, number, status, reason, err);
    const struct suite_case *suite_case = suite_find_case(stage->run->suite, number);
    const struct moe_shape *shape = &suite_case->shape;
    struct record_case record_case;
    record_case_init(&record_case);
    record_case.number = number;
    record_case.round = stage->round;
    record_case.batch_seq_len = (double)shape->batch_seq_len;
    record_case.hidden_size = (double)shape->hidden_size;
    record_case.moe_intermediate_size = (double)shape->moe_intermediate_size;
    record_case.num_experts = (double)shape->num_experts;
    record_case.num_experts_per_tok = (double)shape->num_experts_per_tok;
    record_case.atol = suite_case->atol;
    record_case.rtol = suite_case->rtol;
    note_needed(stage->run->suite, &record_case);
    record_case.status = status;
    snprintf(record_case.reason, sizeof record_case.reason, "%.255s", reason);
    return keep_case(stage, number, &record_case, err);
}

/* Said at once, and in the case's line where it has nothing worse to say. */
static void note_again(void *self, int number, const char *reason) {
    struct stage *stage = self;
    stage->again_case = number;
    snprintf(stage->again_reason, sizeof stage->again_reason,
             "measured in a fresh process; one that had done other cases ended here: %.170s",
             reason);
    progress_note(stage->run->progress, number, reason);
}

/* --- stages ---------------------------------------------------------------------------------- */

static bool is_missing(const struct stage *stage, int number) {
    if (stage->round == STAGE_TIMELINE)
        return !run_record_has_timeline(stage->run->record, number);
    if (stage->round == STAGE_COUNTERS)
        return !run_record_has_counters(stage->run->record, number);
    return !run_record_has_case(stage->run->record, number, stage->round);
}

static enum worker_mode mode_of(int round) {
    if (round >= 0)
        return WORKER_MEASURE;
    return round == STAGE_TIMELINE ? WORKER_SAMPLE : WORKER_COUNT;
}

static int run_stage(const struct kernel_run *run, int round, struct error *err) {
    struct stage stage = {.run = run, .round = round};
    struct run_worker_hooks hooks = {.self = &stage,
                                     .load_limit_s = limit_of_load(run),
                                     .case_limit_s = limit_of_case,
                                     .begin = begin,
                                     .timed = note_timed,
                                     .line = take_line,
                                     .failed = fail_case,
                                     .again = note_again};
    struct worker_job job = {.mode = mode_of(round),
                             .device_index = run->device_index,
                             .round = round,
                             .check_reference = round == 0,
                             .options = run->options,
                             .fault = run->fault,
                             .fault_case = run->fault_case};
    snprintf(job.device_kind, sizeof job.device_kind, "%s", run->device_kind);
    snprintf(job.suite, sizeof job.suite, "%s", run->suite->directory);
    snprintf(job.kernel, sizeof job.kernel, "%s", run->kernel);
    snprintf(job.plugin, sizeof job.plugin, "%s", run->plugin);
    if (run->attach) {
        memcpy(job.attach, run->attach->text, run->attach->bytes);
        job.attach_bytes = run->attach->bytes;
    }
    if (job.plugin[0] || run->attach)
        snprintf(job.plugin_sha256, sizeof job.plugin_sha256, "%s", run->plugin_sha256);
    snprintf(job.counters_level, sizeof job.counters_level, "%s", run->counters_level);
    for (size_t i = 0; i < run->wanted->case_count; i++) {
        if (is_missing(&stage, run->wanted->cases[i]))
            job.cases[job.case_count++] = run->wanted->cases[i];
        else
            run->progress->steps--;
    }
    int result = job.case_count ? run_worker(&job, &hooks, run->signal_fd, err) : 0;
    parent_clock_free(&stage.clock);
    return result;
}

size_t run_kernel_steps(const struct run_wanted *wanted) {
    return wanted->case_count * (size_t)(wanted->round_count + wanted->counters + wanted->timeline);
}

int run_kernel(const struct kernel_run *run, struct error *err) {
    progress_kernel(run->progress, run->kernel);
    for (int round = 0; round < run->wanted->round_count; round++)
        if (run_stage(run, round, err))
            return -1;
    if (run->wanted->counters && run_stage(run, STAGE_COUNTERS, err))
        return -1;
    return run->wanted->timeline ? run_stage(run, STAGE_TIMELINE, err) : 0;
}
