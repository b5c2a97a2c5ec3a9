/* What a worker and the library in an attached program (profiler/inject/) say to each other: a Unix
 * socket whose path the library finds in MOESOL_ATTACH_COLLECTOR. The library greets; from then on
 * the worker commands, one command at a time, and the library answers. Plain structs: both ends are
 * of one build on one machine. */
#ifndef MOESOL_PROFILER_ATTACH_WIRE_H
#define MOESOL_PROFILER_ATTACH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "../core/error.h"
#include "../core/record.h"
#include "activity.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ATTACH_WIRE_VERSION 1
#define ATTACH_PHASES_MOST 64
#define ATTACH_PHASE_BYTES 64
#define ATTACH_NAME_BYTES 256

/* The first bytes from the library. Another version is another build. */
struct attach_greeting {
    uint32_t version;
    uint32_t pid;
};

enum attach_command_kind {
    ATTACH_COLLECT = 1, /* activity records on */
    ATTACH_ITERATION,   /* launches belong to iteration `number` from now on; -1: to none */
    ATTACH_TAKE,        /* hand out what was collected */
    ATTACH_STOP,        /* activity records off */
    ATTACH_COUNT,       /* counters of `text`'s level: the library asks for runs, then is done */
    ATTACH_GO_ON        /* during ATTACH_COUNT: what was asked for is done; number 0: it failed */
};

struct attach_command {
    int32_t kind;
    int32_t number;
    char text[16];
};

enum attach_answer_kind {
    ATTACH_DONE = 1, /* then what belongs to the command */
    ATTACH_FAILED,   /* `text` says why */
    ATTACH_PREPARE,  /* during ATTACH_COUNT: bring the state before a run about */
    ATTACH_BODY      /* ... and: let the program run once */
};

/* After ATTACH_TAKE's follow `phases` names of ATTACH_PHASE_BYTES, `names` of ATTACH_NAME_BYTES,
 * and `count` structs activity, whose name is an index into those. After ATTACH_COUNT's `phases`
 * times a struct attach_phase_counters and its metrics. `too_many_phases`: some have no name. */
struct attach_answer {
    int32_t kind;
    uint32_t phases, names, too_many_phases;
    uint64_t count;
    double pass_count;
    char text[512]; /* why it failed, or why there are no counters */
};

struct attach_phase_counters {
    char name[ATTACH_PHASE_BYTES];
    uint64_t metric_count; /* struct record_metric */
};

/* Whole or not at all: 0, or -1 (the other end is gone; errno says more). */
int attach_send(int socket, const void *data, size_t bytes);
int attach_receive(int socket, void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
