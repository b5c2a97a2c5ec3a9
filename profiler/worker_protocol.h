/* What `moesol run` and its worker processes say to each other. The parent writes one job (a JSON
 * object) to the worker's stdin; the worker answers on file descriptor 3 with JSON Lines: events of
 * this file, and record lines as core/record.h writes them. */
#ifndef MOESOL_PROFILER_WORKER_PROTOCOL_H
#define MOESOL_PROFILER_WORKER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "../cases/suite.h"
#include "attach.h"
#include "backend.h"

#define WORKER_MESSAGE_FD 3

enum worker_mode {
    WORKER_DESCRIBE = 0, /* a `run` line a kernel, of the back end or of the plug-in: the device
                            and the kernel */
    WORKER_CEILINGS,     /* one `run` line with the ceilings */
    WORKER_MEASURE,      /* begin, in round 0 a `timeline` line where there are launches, then a
                            `case` line, for each case */
    WORKER_COUNT,        /* begin, then a `counters` line, for each case */
    WORKER_SAMPLE,       /* begin, then a `timeline` line, for each case */
    WORKER_MODE_COUNT
};

/* Deliberate failures, so that the handling of real ones can be tested. */
enum worker_fault {
    FAULT_NONE = 0,
    FAULT_CRASH,
    FAULT_HANG,
    FAULT_EXIT,
    FAULT_STRAY,   /* crashes after starting a process that leaves its group and ignores SIGTERM */
    FAULT_CHAIN,   /* crashes after starting one that forks and exits without end, and left, too */
    FAULT_FLOOD,   /* prints without end */
    FAULT_CHATTER, /* sends messages without end */
    FAULT_CARRY, /* crashes if other cases went before in its process, as leftovers would make it */
    FAULT_COUNT
};
extern const char *const worker_fault_names[FAULT_COUNT];

struct worker_job {
    enum worker_mode mode;
    char device_kind[8]; /* "cpu" or "cuda" */
    int device_index;
    char suite[512]; /* folder; empty in modes without cases */
    char kernel[64];
    char plugin[512];       /* path of the shared object that has the kernel; empty: built in */
    char plugin_sha256[65]; /* the file must have this hash; empty: any */
    char attach[ATTACH_COMMAND_BYTES]; /* the program that runs in place of a kernel (attach.h) */
    size_t attach_bytes;               /* 0: none */
    int cases[SUITE_MAX_CASES];        /* numbers in the suite */
    size_t case_count;
    int round;
    bool check_reference; /* compare sampled tokens with the CPU reference */
    struct measure_options options;
    char counters_level[8];
    enum worker_fault fault;
    int fault_case; /* the case number at which it strikes */
};

/* The job as one JSON text, malloc()ed; NULL if memory is short. */
char *worker_job_write(const struct worker_job *job);
int worker_job_parse(const char *text, size_t length, struct worker_job *job, struct error *err);

enum worker_message_kind {
    MESSAGE_BEGIN,    /* case_number: what is done from now on belongs to this case */
    MESSAGE_ERROR,    /* code, text: the worker cannot go on and exits */
    MESSAGE_DONE,     /* all cases are through */
    MESSAGE_TIMED,    /* a timed run comes now, parent_clock.h */
    MESSAGE_RAN,      /* ... it has just ended */
    MESSAGE_RUN,      /* the line is a record's `run` line */
    MESSAGE_CASE,     /* ... `case` line */
    MESSAGE_COUNTERS, /* ... `counters` line */
    MESSAGE_TIMELINE, /* ... `timeline` line */
    MESSAGE_KIND_COUNT
};

struct worker_message {
    enum worker_message_kind kind;
    int case_number;
    enum exit_code code;
    char text[512];
};

/* Writes one of the kinds before MESSAGE_RUN as a line and flushes it. */
int worker_message_write(FILE *file, const struct worker_message *message, struct error *err);
/* Says what a line is; the record lines are left to core/record.h. */
int worker_message_parse(const char *line, size_t length, struct worker_message *message,
                         struct error *err);

#endif
