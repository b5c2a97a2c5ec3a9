/* Compares a kernel's output with the oracle's, element by element on the device: one block a token
 * makes one row of figures, and the host adds the rows up in order, so that the same output always
 * gives the same figures. */
#include <cuda_fp16.h>
#include <math.h>
#include <stdlib.h>

#include "session.h"

#define COMPARE_THREADS 256

/* Figures of one token, or of one thread's share of it. */
struct token_figures {
    double square_sum; /* of the finite elements of the reference */
    float max_abs_error, max_rel_error;
    int32_t finite, matched, first_failing; /* first_failing: INT32_MAX if none */
    int32_t nan_count, inf_count;           /* where the reference is finite */
};

static __device__ void merge(struct token_figures *into, const struct token_figures *from) {
    into->square_sum += from->square_sum;
    into->max_abs_error = fmaxf(into->max_abs_error, from->max_abs_error);
    into->max_rel_error = fmaxf(into->max_rel_error, from->max_rel_error);
    into->finite += from->finite;
    into->matched += from->matched;
    into->first_failing = min(into->first_failing, from->first_failing);
    into->nan_count += from->nan_count;
    into->inf_count += from->inf_count;
}

/* NaN with NaN, +Inf with +Inf, -Inf with -Inf. */
static __device__ bool same_class(float value, float reference) {
    return isnan(reference) ? isnan(value) : value == reference;
}

static __device__ void compare_element(float value, float reference, int column, double atol,
                                       double rtol, struct token_figures *figures) {
    bool matched = false;
    if (!isfinite(reference)) {
        matched = same_class(value, reference);
    } else {
        figures->finite++;
        figures->square_sum += (double)reference * (double)reference;
        figures->nan_count += isnan(value);
        figures->inf_count += isinf(value);
        if (isfinite(value)) {
            float error = fabsf(value - reference), size = fabsf(reference);
            matched = (double)error <= atol + rtol * (double)size;
            figures->max_abs_error = fmaxf(figures->max_abs_error, error);
            if (size > 0.0f)
                figures->max_rel_error = fmaxf(figures->max_rel_error, error / size);
        }
    }
    figures->matched += matched;
    if (!matched)
        figures->first_failing = min(figures->first_failing, column);
}

static __global__ void __launch_bounds__(COMPARE_THREADS)
    compare_tokens(const __half *output, const __half *reference, int64_t width, double atol,
                   double rtol, struct token_figures *figures) {
    __shared__ struct token_figures shared[COMPARE_THREADS];
    struct token_figures mine = {};
    mine.first_failing = INT32_MAX;
    const __half *x = output + blockIdx.x * width, *ref = reference + blockIdx.x * width;
    for (int c = threadIdx.x; c < width; c += COMPARE_THREADS)
        compare_element(__half2float(x[c]), __half2float(ref[c]), c, atol, rtol, &mine);
    shared[threadIdx.x] = mine;
    for (int half = COMPARE_THREADS / 2; half; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            merge(&shared[threadIdx.x], &shared[threadIdx.x + half]);
    }
    if (threadIdx.x == 0)
        figures[blockIdx.x] = shared[0];
}

/* Figures of every token, into host memory. */
static cudaError_t compare_all(const struct backend_session *session, const uint16_t *output,
                               const uint16_t *reference, double atol, struct token_figures *device,
                               struct token_figures *host) {
    const struct moe_shape *shape = &session->suite_case.shape;
    compare_tokens<<<(unsigned)shape->batch_seq_len, COMPARE_THREADS, 0, session->stream>>>(
        (const __half *)output, (const __half *)reference, shape->hidden_size, atol,
        session->suite_case.rtol, device);
    cudaError_t status = cudaGetLastError();
    if (!status)
        status = cudaStreamSynchronize(session->stream);
    if (!status)
        status = cudaMemcpy(host, device, (size_t)shape->batch_seq_len * sizeof *host,
                            cudaMemcpyDeviceToHost);
    return status;
}

static double reference_rms(const struct token_figures *figures, int64_t tokens) {
    double sum = 0.0, count = 0.0;
    for (int64_t t = 0; t < tokens; t++) {
        sum += figures[t].square_sum;
        count += figures[t].finite;
    }
    return count > 0.0 ? sqrt(sum / count) : NAN;
}

static void fill_correctness(const struct moe_shape *shape, const struct token_figures *figures,
                             struct record_correctness *correctness) {
    double width = (double)shape->hidden_size, matched = 0.0, worst = width;
    correctness->checked = true;
    correctness->tokens_checked = (double)shape->batch_seq_len;
    correctness->max_abs_error = correctness->max_rel_error = 0.0;
    correctness->nan_count = correctness->inf_count = 0.0;
    correctness->first_failing_token = correctness->first_failing_element = NAN;
    for (int64_t t = 0; t < shape->batch_seq_len; t++) {
        const struct token_figures *token = &figures[t];
        matched += token->matched;
        worst = fmin(worst, token->matched);
        correctness->nan_count += token->nan_count;
        correctness->inf_count += token->inf_count;
        correctness->max_abs_error = fmax(correctness->max_abs_error, token->max_abs_error);
        correctness->max_rel_error = fmax(correctness->max_rel_error, token->max_rel_error);
        if (isnan(correctness->first_failing_token) && token->first_failing != INT32_MAX) {
            correctness->first_failing_token = (double)t;
            correctness->first_failing_element = token->first_failing;
        }
    }
    correctness->matched_ratio = matched / (width * (double)shape->batch_seq_len);
    correctness->token_matched_ratio_min = worst / width;
}

int oracle_compare(struct backend_session *session, const uint16_t *output, double *used_atol,
                   struct record_correctness *correctness, struct error *err) {
    const struct moe_shape *shape = &session->suite_case.shape;
    size_t tokens = (size_t)shape->batch_seq_len;
    size_t reference_bytes = tokens * (size_t)shape->hidden_size * sizeof(uint16_t);
    uint16_t *reference = NULL;
    struct token_figures *device = NULL;
    struct token_figures *host = (struct token_figures *)malloc(tokens * sizeof *host);
    double atol = session->suite_case.atol;
    int result = -1;
    cudaError_t status = cudaMalloc((void **)&reference, reference_bytes);
    if (!status)
        status = cudaMalloc((void **)&device, tokens * sizeof *device);
    if (!host || status) {
        cuda_failed(err, status ? status : cudaErrorMemoryAllocation, "allocating a reference");
        goto done;
    }
    if (oracle_forward(session, reference, err))
        goto done;
    if (isnan(atol)) { /* a share of the reference's RMS: a first pass finds that */
        status = compare_all(session, output, reference, 0.0, device, host);
        if (!status)
            atol = session->atol_over_rms * reference_rms(host, shape->batch_seq_len);
    }
    if (!status)
        status = compare_all(session, output, reference, atol, device, host);
    if (status) {
        cuda_failed(err, status, "comparing with the reference");
        goto done;
    }
    *used_atol = atol;
    fill_correctness(shape, host, correctness);
    result = 0;
done:
    free(host);
    cudaFree(device);
    cudaFree(reference);
    return result;
}
