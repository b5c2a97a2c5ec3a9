/* Runs the instrumented build of a kernel, in turn with the kernel itself, so that what the stamps
 * cost is known, and takes the stamps of the run nearest the median. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/stats.h"
#include "../stamps.h"
#include "session.h"

static const int RUNS = 5; /* of each build */

struct stamped_runs {
    struct backend_session *session;
    const struct moe_stamped *build;
    size_t blocks, per_block, bytes; /* of one run's stamps */
    struct moe_stamp *device;
    struct moe_stamp *rows[RUNS]; /* host, a run each */
    double stamped_ns[RUNS], unstamped_ns[RUNS];
    uint16_t *output, *stamped_output; /* of the last run of each build; host */
    size_t output_bytes;
};

static const struct moe_stamped *find_build(const struct moe_kernel *kernel) {
    const struct moe_stamped *const *build = moe_cuda_stamped;
    while (*build && (*build)->kernel != kernel)
        build++;
    return *build;
}

static void free_runs(struct stamped_runs *runs) {
    for (int i = 0; i < RUNS; i++)
        free(runs->rows[i]);
    free(runs->output);
    free(runs->stamped_output);
    cudaFree(runs->device);
}

static int make_runs(struct stamped_runs *runs, struct error *err) {
    const struct backend_session *session = runs->session;
    const struct moe_shape *shape = &session->suite_case.shape;
    runs->build->room(shape, &session->device, &runs->blocks, &runs->per_block);
    runs->bytes = runs->blocks * runs->per_block * sizeof *runs->device;
    runs->output_bytes = (size_t)shape->batch_seq_len * (size_t)shape->hidden_size * 2;
    runs->output = (uint16_t *)malloc(runs->output_bytes);
    runs->stamped_output = (uint16_t *)malloc(runs->output_bytes);
    bool room = runs->output && runs->stamped_output;
    for (int i = 0; i < RUNS; i++) {
        runs->rows[i] = (struct moe_stamp *)malloc(runs->bytes);
        room = room && runs->rows[i];
    }
    if (!room)
        return error_set(err, EXIT_FAILED, "out of memory: %zu bytes of stamps", runs->bytes);
    cudaError_t status = cudaMalloc((void **)&runs->device, runs->bytes);
    return status ? cuda_failed(err, status, "allocating stamps") : 0;
}

/* One cold run of draw 0 of either build; its time, its output. */
static int run_once(struct stamped_runs *runs, bool stamped, double *ns, struct error *err) {
    struct backend_session *session = runs->session;
    struct iteration iteration = iteration_plain(0);
    float milliseconds = 0;
    if (session_make_cold(session, &iteration, err))
        return -1;
    cudaError_t status = cudaEventRecord(session->begin, session->stream);
    session->stamped = stamped ? runs->build : NULL;
    session->stamps = runs->device;
    session->stamps_per_block = runs->per_block;
    int result = status ? cuda_failed(err, status, "cudaEventRecord")
                        : session_run(session, SINK_QUIET, err);
    session->stamped = NULL;
    if (result)
        return -1;
    status = cudaEventRecord(session->end, session->stream);
    if (!status)
        status = cudaDeviceSynchronize();
    if (!status)
        status = cudaEventElapsedTime(&milliseconds, session->begin, session->end);
    if (!status)
        status = cudaMemcpy(stamped ? runs->stamped_output : runs->output, session->output,
                            runs->output_bytes, cudaMemcpyDeviceToHost);
    *ns = 1e6 * (double)milliseconds;
    return status ? cuda_failed(err, status, session->kernel->name) : integrity_check(session, err);
}

static int run_stamped(struct stamped_runs *runs, int i, struct error *err) {
    cudaError_t status = cudaMemset(runs->device, 0, runs->bytes);
    if (!status)
        status = cudaDeviceSynchronize();
    if (status)
        return cuda_failed(err, status, "clearing stamps");
    if (run_once(runs, true, &runs->stamped_ns[i], err))
        return -1;
    status = cudaMemcpy(runs->rows[i], runs->device, runs->bytes, cudaMemcpyDeviceToHost);
    return status ? cuda_failed(err, status, "copying stamps") : 0;
}

/* The first run of the instrumented build loads its code. */
static int run_all(struct stamped_runs *runs, struct error *err) {
    if (run_stamped(runs, 0, err))
        return -1;
    for (int i = 0; i < RUNS; i++)
        if (run_once(runs, false, &runs->unstamped_ns[i], err) || run_stamped(runs, i, err))
            return -1;
    return 0;
}

static int nearest_median(const struct stamped_runs *runs, double median_ns) {
    int nearest = 0;
    for (int i = 1; i < RUNS; i++)
        if (fabs(runs->stamped_ns[i] - median_ns) < fabs(runs->stamped_ns[nearest] - median_ns))
            nearest = i;
    return nearest;
}

/* Every run is of the same inputs, and a kernel gives the same bits for the same inputs. */
static int take_stamps(const struct stamped_runs *runs, struct record_timeline *timeline,
                       struct error *err) {
    timeline->stamp_runs = RUNS;
    timeline->unstamped_ns = stats_quantile(runs->unstamped_ns, (size_t)RUNS, 0.5);
    timeline->stamped_ns = stats_quantile(runs->stamped_ns, (size_t)RUNS, 0.5);
    if (memcmp(runs->output, runs->stamped_output, runs->output_bytes)) {
        snprintf(timeline->stamp_reason, sizeof timeline->stamp_reason,
                 "the instrumented build's output is not the kernel's, bit for bit");
        return 0;
    }
    struct stamps stamps = {runs->rows[nearest_median(runs, timeline->stamped_ns)], runs->blocks,
                            runs->per_block, runs->build->phases};
    return stamps_fill(&stamps, timeline, err);
}

int session_stamp(struct backend_session *session, struct record_timeline *timeline,
                  struct error *err) {
    struct stamped_runs runs = {};
    runs.session = session;
    runs.build = find_build(session->kernel);
    if (!runs.build)
        return 0;
    int result = make_runs(&runs, err);
    if (!result)
        result = run_all(&runs, err);
    if (!result)
        result = take_stamps(&runs, timeline, err);
    free_runs(&runs);
    return result;
}
