/* Clocks, power and temperature of a device while it works, from NVML, which is opened at run time.
 * A machine without NVML leaves numbers NaN and texts empty. */
#ifndef MOESOL_PROFILER_CUDA_TELEMETRY_H
#define MOESOL_PROFILER_CUDA_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>

#include "../../core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct telemetry;

/* The device at a PCI address ("00000000:1b:00.0"). NULL where NVML or the device is not there. */
struct telemetry *telemetry_open(const char *pci_bus_id);
void telemetry_close(struct telemetry *telemetry); /* takes NULL */

/* Driver version, power limit, ECC and MIG state. Takes NULL: leaves *device alone. */
void telemetry_describe(struct telemetry *telemetry, struct record_device *device);

/* What a program with the rights may set; NaN where it is not known. Locked clocks can't be read:
 * they show as the throttle reason applications_clocks and in the sampled clocks. */
struct telemetry_settings {
    double power_limit_w, sm_clock_mhz, memory_clock_mhz; /* the clocks: of applications */
};

/* Takes NULL. */
void telemetry_settings(struct telemetry *telemetry, struct telemetry_settings *out);

/* Whether one that is known in both differs; then says which, as "power limit: 700 W, then 500 W".
 */
bool telemetry_settings_differ(const struct telemetry_settings *before,
                               const struct telemetry_settings *after, char *text, size_t size);

/* Samples about every 5 ms on a thread of its own between start and stop. Both take NULL. */
void telemetry_start(struct telemetry *telemetry);
void telemetry_stop(struct telemetry *telemetry, struct record_telemetry *out);

#ifdef __cplusplus
}
#endif
#endif
