/* The loop over workers, and the loop over one worker's messages. */
#include "run_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"

/* What a worker may take to close the device after its last case. */
static const double close_limit_s = 60;
/* And to end by itself once its pipe is closed. */
static const double exit_grace_s = 10;

/* One worker while it runs. */
struct attempt {
    const struct worker_job *job;
    const struct run_worker_hooks *hooks;
    struct child child;
    double deadline_s, limit_s;
    size_t done;   /* cases through, of the job's */
    int current;   /* the case at hand, 0: none */
    bool finished; /* it said that it is done */
    bool timed_out, interrupted;
    enum exit_code code; /* of an error that it reported */
    char reason[512];    /* why it failed; empty: see how the process ended */
};

static void set_limit(struct attempt *attempt, double limit_s) {
    attempt->limit_s = limit_s;
    attempt->deadline_s = child_now_s() + limit_s;
}

static int fail_line(struct attempt *attempt, const char *text) {
    snprintf(attempt->reason, sizeof attempt->reason, "%s", text);
    return 1;
}

static int take_begin(struct attempt *attempt, int number) {
    if (attempt->current || attempt->done >= attempt->job->case_count ||
        attempt->job->cases[attempt->done] != number)
        return fail_line(attempt, "the worker began a case that is not the next one");
    attempt->current = number;
    set_limit(attempt, attempt->hooks->case_limit_s(attempt->hooks->self, number));
    attempt->hooks->begin(attempt->hooks->self, number);
    return 0;
}

static int take_record_line(struct attempt *attempt, enum worker_message_kind kind,
                            const char *line, size_t length, struct error *err) {
    bool of_case = kind != MESSAGE_RUN;
    struct error problem = {0};
    if (of_case != (attempt->current != 0))
        return fail_line(attempt, "the worker sent a line out of turn");
    int result =
        attempt->hooks->line(attempt->hooks->self, kind, attempt->current, line, length, &problem);
    if (result == RUN_WORKER_BAD_LINE)
        return fail_line(attempt, problem.text);
    if (result)
        return error_set(err, problem.code, "%s", problem.text);
    /* The launches of a case come before its own line. */
    if (of_case && (kind != MESSAGE_TIMELINE || attempt->job->mode == WORKER_SAMPLE)) {
        attempt->done++;
        attempt->current = 0;
        set_limit(attempt, attempt->hooks->load_limit_s);
    }
    return 0;
}

/* Returns 0 to go on, 1 where the worker has failed or is done, -1 with *err. */
static int take_line(struct attempt *attempt, const char *line, size_t length, struct error *err) {
    struct worker_message message;
    struct error problem = {0};
    if (attempt->finished)
        return fail_line(attempt, "the worker sent a line after its last");
    if (worker_message_parse(line, length, &message, &problem))
        return fail_line(attempt, problem.text);
    switch (message.kind) {
    case MESSAGE_BEGIN:
        return take_begin(attempt, message.case_number);
    case MESSAGE_TIMED:
    case MESSAGE_RAN:
        if (!attempt->current || !attempt->hooks->timed)
            return fail_line(attempt, "the worker sent a line out of turn");
        attempt->hooks->timed(attempt->hooks->self, message.kind == MESSAGE_RAN,
                              attempt->child.read_s);
        return 0;
    case MESSAGE_ERROR:
        attempt->code = message.code;
        return fail_line(attempt, message.text);
    case MESSAGE_DONE:
        if (attempt->current || attempt->done != attempt->job->case_count)
            return fail_line(attempt, "the worker said that it is done before it was");
        attempt->finished = true;
        set_limit(attempt, close_limit_s);
        return 0;
    default:
        return take_record_line(attempt, message.kind, line, length, err);
    }
}

static int read_messages(struct attempt *attempt, int signal_fd, struct error *err) {
    for (;;) {
        const char *line;
        size_t length;
        struct error problem = {0};
        int taken = 0;
        switch (
            child_read(&attempt->child, attempt->deadline_s, signal_fd, &line, &length, &problem)) {
        case CHILD_LINE:
            taken = take_line(attempt, line, length, err);
            break;
        case CHILD_CLOSED:
            child_wait(&attempt->child, exit_grace_s);
            return 0;
        case CHILD_TIMEOUT:
            attempt->timed_out = true;
            return 0;
        case CHILD_INTERRUPTED:
            return error_set(err, EXIT_INTERRUPTED,
                             "interrupted: the cases that were finished "
                             "are kept; `--resume` goes on");
        case CHILD_ERROR:
            taken = fail_line(attempt, problem.text);
            break;
        }
        if (taken)
            return taken < 0 ? -1 : 0;
        /* Lines may come without end, too. */
        if (!attempt->finished && child_now_s() >= attempt->deadline_s) {
            attempt->timed_out = true;
            return 0;
        }
    }
}

static void find_reason(struct attempt *attempt) {
    if (attempt->timed_out)
        snprintf(attempt->reason, sizeof attempt->reason, "not finished after %.3g s",
                 attempt->limit_s);
    else if (!attempt->reason[0])
        child_reason(&attempt->child, attempt->reason, sizeof attempt->reason);
}

/* One worker from start to end. Returns 0, with the number of cases that are through in *through,
 * or -1 with *err. */
static int run_one(const struct worker_job *job, const struct run_worker_hooks *hooks,
                   int signal_fd, size_t *through, struct error *err) {
    struct attempt attempt = {.job = job, .hooks = hooks};
    char *text = worker_job_write(job);
    if (!text)
        return error_set(err, EXIT_FAILED,
                         "out of memory: a worker's job, or a name in it is not "
                         "UTF-8");
    int result = child_start(&attempt.child, text, err);
    free(text);
    if (result)
        return -1;
    set_limit(&attempt, hooks->load_limit_s);
    result = read_messages(&attempt, signal_fd, err);
    child_end(&attempt.child);
    *through = attempt.done;
    if (!result && attempt.child.strays_left)
        return error_set(err, EXIT_FAILED,
                         "processes that a worker%s%s left behind could not be ended: nothing can "
                         "be measured beside them",
                         job->kernel[0] ? " for kernel " : "", job->kernel);
    if (result || attempt.finished)
        return result;
    find_reason(&attempt);
    if (attempt.current && attempt.done > 0 && !attempt.timed_out) {
        if (hooks->again)
            hooks->again(hooks->self, attempt.current, attempt.reason);
        return 0;
    }
    if (attempt.current) {
        *through = attempt.done + 1;
        return hooks->failed(hooks->self, attempt.current,
                             attempt.timed_out ? STATUS_TIMEOUT : STATUS_CRASHED, attempt.reason,
                             err);
    }
    if (attempt.done > 0) /* it died between two cases: the next worker shows whether that lasts */
        return 0;
    if (attempt.code)
        return error_set(err, attempt.code, "%s", attempt.reason);
    if (job->plugin[0] && !job->kernel[0])
        return error_set(err, EXIT_FAILED, "plug-in %.200s: its worker failed while loading it: %s",
                         job->plugin, attempt.reason);
    return error_set(err, EXIT_FAILED, "a worker%s%s on %s:%d failed before its first case: %s",
                     job->kernel[0] ? " for kernel " : "", job->kernel, job->device_kind,
                     job->device_index, attempt.reason);
}

int run_worker(const struct worker_job *job, const struct run_worker_hooks *hooks, int signal_fd,
               struct error *err) {
    struct worker_job rest = *job;
    do {
        size_t through = 0;
        if (run_one(&rest, hooks, signal_fd, &through, err))
            return -1;
        rest.case_count -= through;
        memmove(rest.cases, rest.cases + through, rest.case_count * sizeof *rest.cases);
    } while (rest.case_count > 0);
    return 0;
}
