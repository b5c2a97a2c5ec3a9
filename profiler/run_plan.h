/* What `moesol run` was asked for, and what that comes to on this machine: suite, device, kernels,
 * cases and the defaults that depend on them. */
#ifndef MOESOL_PROFILER_RUN_PLAN_H
#define MOESOL_PROFILER_RUN_PLAN_H

#include "../cases/suite.h"
#include "../core/options.h"
#include "device_choice.h"
#include "plugin.h"
#include "run_record.h"
#include "worker_protocol.h"

/* The command line as parsed. */
struct run_request {
    struct option_list arguments; /* SUITE */
    struct option_list kernels, cases;
    const char *device, *counters, *resume, *output, *fault;
    const char *definition, *workload; /* SOL-ExecBench's files in place of SUITE */
    long rounds, samples;              /* samples 0: the default */
    double time_limit_s;               /* 0: from the work */
    bool back_to_back, timeline;
    struct attach_words attach; /* a program in place of kernels; bytes 0: none */
};

struct planned_kernel {
    struct record_kernel record;
    char plugin[PLUGIN_PATH_BYTES]; /* the shared object that has it; empty: built in */
};

struct run_plan {
    struct suite suite;
    char *suite_text; /* its suite.json, yet to be written (run_definition.h); NULL: it stands */
    struct device_info device;
    struct planned_kernel kernels[64];
    size_t kernel_count;
    int cases[SUITE_MAX_CASES];
    struct run_wanted wanted;
    const char *counters_level;
    struct measure_options options;
    double samples_asked; /* NaN: the default */
    double time_limit_s;  /* NaN: from the work */
    enum worker_fault fault;
    int fault_case;
    const char *folder;
    const struct attach_words *attach; /* the request's, NULL: none */
    bool resume;
};

/* Fills *plan. `request` must outlive it. Free with run_plan_free(). */
int run_plan_make(const struct run_request *request, int signal_fd, struct run_plan *plan,
                  struct error *err);
void run_plan_free(struct run_plan *plan);

/* Path of a kernel's record. */
int run_plan_record_path(const struct run_plan *plan, size_t kernel, char *path, size_t size,
                         struct error *err);

#endif
