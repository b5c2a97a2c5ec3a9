/* Calling CUPTI: parameter structs, and results in words. For the translation units that use it. */
#ifndef MOESOL_PROFILER_CUDA_CUPTI_CALL_H
#define MOESOL_PROFILER_CUDA_CUPTI_CALL_H

#include <cupti_result.h>
#include <stddef.h>

/* An empty parameter struct of the size that CUPTI is to see, cuptiX_Params_STRUCT_SIZE. */
template <typename Params> static inline Params cupti_params(size_t struct_size) {
    Params params = {};
    params.structSize = struct_size;
    return params;
}

/* CUPTI's own name for an error. */
static inline const char *cupti_text(CUptiResult result) {
    const char *text = NULL;
    if (cuptiGetResultString(result, &text) != CUPTI_SUCCESS || !text)
        return "unknown CUPTI error";
    return text;
}

/* What would mend it. */
static inline const char *cupti_mend(CUptiResult result) {
    switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return "have the host's administrator enable profiling for this virtual GPU";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        return "run on a GPU that is not virtualised, or passed through whole";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED:
        return "stop the other profiler (nsys, ncu, DCGM, another moesol) that holds CUPTI";
    case CUPTI_ERROR_OUT_OF_MEMORY:
        return "free memory on the device and the host";
    case CUPTI_ERROR_NOT_INITIALIZED:
    case CUPTI_ERROR_NOT_COMPATIBLE:
        return "use a driver at least as new as the CUDA Toolkit, and no other profiler";
    default:
        return "see `moesol doctor`";
    }
}

#endif
