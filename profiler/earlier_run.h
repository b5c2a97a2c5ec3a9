/* The runs whose records lie in a folder, which `--resume DIR` alone goes on with. */
#ifndef MOESOL_PROFILER_EARLIER_RUN_H
#define MOESOL_PROFILER_EARLIER_RUN_H

#include "../core/error.h"
#include "../core/record.h"

/* How a record of the folder came to be. */
struct earlier_run {
    char command[sizeof((struct record_run *)0)->command];
    char device_kind[sizeof((struct record_device *)0)->kind];
};

/* Sorted, each run once; free the array. No record there is an error. */
int earlier_runs_find(const char *folder, struct earlier_run **runs, size_t *count,
                      struct error *err);

#endif
