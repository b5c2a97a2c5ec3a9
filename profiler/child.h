/* A worker process: this program started again as `moesol worker` in a process group of its own,
 * with a pipe for its messages and one for what it prints. Dies with its parent. */
#ifndef MOESOL_PROFILER_CHILD_H
#define MOESOL_PROFILER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../core/error.h"

struct child_buffer {
    char *text;
    size_t used, capacity;
};

struct child {
    pid_t pid;      /* 0: none */
    int message_fd; /* read end of the worker's descriptor 3; -1: closed */
    int log_fd;     /* read end of its stdout and stderr; -1: closed */
    struct child_buffer messages;
    int delay_fd;      /* /proc/thread-self/schedstat; -1: none */
    double read_s;     /* when the bytes that came last came in */
    size_t line_bytes; /* of messages, handed out by the last child_read() */
    struct child_buffer log;
    char last_line[256];        /* the last whole line it printed, for the reason of a crash */
    int pid_fd;                 /* readable when it is dead; -1: none */
    unsigned long long started; /* when, as /proc counts it; 0: not known */
    int wait_status;
    bool reaped;
    bool stuck;       /* did not die of SIGKILL: left behind */
    bool strays_left; /* what it started could not be ended */
};

/* Starts a worker and hands it the job. Returns 0, or -1 with *err. Free with child_end(). */
int child_start(struct child *child, const char *job, struct error *err);

enum child_event {
    CHILD_LINE,        /* *line, NUL-terminated, valid until the next call */
    CHILD_CLOSED,      /* no more lines will come */
    CHILD_TIMEOUT,     /* deadline_s has passed */
    CHILD_INTERRUPTED, /* signal_fd became readable */
    CHILD_ERROR        /* *err says what */
};

/* Waits for the next line. deadline_s is on the clock of child_now_s(); signal_fd a signalfd() or
 * -1. */
enum child_event child_read(struct child *child, double deadline_s, int signal_fd,
                            const char **line, size_t *length, struct error *err);

/* Kills what is left of the worker's process group and of what it started in other ones, reaps it,
 * frees everything. The reason texts below may be asked for after it. */
void child_end(struct child *child);

/* Waits up to grace_s for the worker to end by itself before child_end() is called. */
void child_wait(struct child *child, double grace_s);

/* How it ended: "killed by SIGSEGV (Segmentation fault): last line that it printed". */
void child_reason(const struct child *child, char *text, size_t size);

double child_now_s(void);

/* A signalfd() for SIGINT, SIGTERM and (unless ignored) SIGHUP, which are blocked from now on; -1
 * with *err. SIGPIPE and SIGXFSZ are ignored from now on: a closed pipe or a file at its
 * size limit is an error and not the end. */
int child_signal_fd(struct error *err);

#endif
