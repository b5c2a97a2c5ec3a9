/* Short names of device functions, as tables and records show them. */
#ifndef MOESOL_PROFILER_LAUNCH_NAME_H
#define MOESOL_PROFILER_LAUNCH_NAME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a demangled kernel without return type, template arguments and parameter list:
 * `void ns::gemm<128, (Kind)1>(float const*)` gives `ns::gemm`. A name that is not C++ stays. */
void launch_name_shorten(const char *demangled, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
