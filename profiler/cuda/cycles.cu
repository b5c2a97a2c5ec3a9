/* The SM clock of timed iterations by the SMs' own cycle counters: right before and right after an
 * iteration every SM that a small launch reaches notes its cycles and the device's time. The clock
 * that NVML gives is a reading now and then; at the power cap an iteration runs at another. */
#include <math.h>
#include <stdlib.h>

#include "../../core/stats.h"
#include "session.h"

static const int stamp_threads = 1024; /* so that no SM takes more than two blocks */
static const int sms_most = 512;       /* %smid need not be dense */

/* x: cycles, y: nanoseconds; written in one piece. */
static __global__ void note_stamp(ulonglong2 *stamps, unsigned count) {
    unsigned sm;
    unsigned long long now;

    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (threadIdx.x == 0 && sm < count)
        stamps[sm] = make_ulonglong2((unsigned long long)clock64(), now);
}

int cycles_open(struct cycles *cycles, int iterations, struct error *err) {
    size_t bytes = (size_t)iterations * 2 * sms_most * sizeof(ulonglong2);
    cudaError_t status = cudaMalloc((void **)&cycles->stamps, bytes);

    cycles->iterations = iterations;
    if (!status)
        status = cudaMemset(cycles->stamps, 0, bytes);
    return status ? cuda_failed(err, status, "allocating room for cycle counts") : 0;
}

void cycles_close(struct cycles *cycles) {
    cudaFree(cycles->stamps);
    cycles->stamps = NULL;
}

static ulonglong2 *stamps_of(const struct cycles *cycles, ulonglong2 *all, int i, bool end) {
    return all + ((size_t)(i % cycles->iterations) * 2 + end) * sms_most;
}

cudaError_t cycles_note(const struct cycles *cycles, int iteration, bool end, int sm_count,
                        cudaStream_t stream) {
    note_stamp<<<sm_count, stamp_threads, 0, stream>>>(
        stamps_of(cycles, (ulonglong2 *)cycles->stamps, iteration, end), (unsigned)sms_most);
    return cudaGetLastError();
}

/* The median over the SMs that both launches reached; NaN: none. */
static double iteration_mhz(const ulonglong2 *begin, const ulonglong2 *end) {
    double mhz[sms_most];
    size_t count = 0;

    for (int sm = 0; sm < sms_most; sm++)
        if (begin[sm].y && end[sm].y > begin[sm].y && end[sm].x > begin[sm].x)
            mhz[count++] =
                1e3 * (double)(end[sm].x - begin[sm].x) / (double)(end[sm].y - begin[sm].y);
    return stats_quantile(mhz, count, 0.5);
}

int cycles_mhz(const struct cycles *cycles, int iterations, double *mhz, struct error *err) {
    size_t bytes = (size_t)iterations * 2 * sms_most * sizeof(ulonglong2);
    ulonglong2 *stamps = (ulonglong2 *)malloc(bytes);
    double *each = (double *)calloc((size_t)iterations, sizeof *each);
    size_t used = 0;
    int result = -1;

    if (!stamps || !each) {
        error_set(err, EXIT_FAILED, "out of memory for the cycles of %d iterations", iterations);
    } else if (cudaError_t status =
                   cudaMemcpy(stamps, cycles->stamps, bytes, cudaMemcpyDeviceToHost)) {
        cuda_failed(err, status, "reading cycle counts");
    } else {
        for (int i = 0; i < iterations; i++) {
            each[used] = iteration_mhz(stamps_of(cycles, stamps, i, false),
                                       stamps_of(cycles, stamps, i, true));
            used += !isnan(each[used]);
        }
        *mhz = stats_quantile(each, used, 0.5);
        result = 0;
    }
    free(stamps);
    free(each);
    return result;
}
