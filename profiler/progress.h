/* What a long run shows on stderr: on a terminal one line that is updated, with the kernel, the
 * case, the latency so far and the time left; elsewhere a plain line for each case that ends. */
#ifndef MOESOL_PROFILER_PROGRESS_H
#define MOESOL_PROFILER_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "../core/record.h"

/* Rounds count from 0; these stand in a round's place. */
enum { STAGE_COUNTERS = -1, STAGE_TIMELINE = -2 };

struct progress {
    bool terminal, colours;
    double started_s;
    size_t steps, done; /* a step is a case in a round, or the counters of a case */
    char kernel[64];
    double latency_ns; /* of the last case that has one; NaN: none yet */
};

void progress_start(struct progress *progress, size_t steps);
void progress_kernel(struct progress *progress, const char *name);

/* A case begins; `round` 0-based of round_count, or STAGE_COUNTERS, or
 * STAGE_TIMELINE. */
void progress_begin(struct progress *progress, int case_number, double batch_seq_len, int round,
                    int round_count);

/* It ended. latency_ns NaN: none; status_name and reason say how. */
void progress_end(struct progress *progress, int case_number, double batch_seq_len, int round,
                  int round_count, double latency_ns, enum record_status status,
                  const char *reason);

/* Takes the updated line off the terminal, before anything else is printed. */
/* A case whose worker died of what may be an earlier case's fault. */
void progress_note(const struct progress *progress, int case_number, const char *reason);

void progress_clear(const struct progress *progress);

/* "45 s", "3 min", "2.5 h" */
void progress_duration(double seconds, char *text, size_t size);

#endif
