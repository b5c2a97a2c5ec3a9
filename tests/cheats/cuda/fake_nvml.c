/* A stand-in for NVML, found before the real one by LD_LIBRARY_PATH: a device whose power limit the
 * plug-in can change without touching any real one's. */
#include <string.h>

static unsigned power_limit_mw = 700000;

void fake_nvml_set_power_limit(unsigned milliwatt) { power_limit_mw = milliwatt; }

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device) {
    (void)address;
    *device = &power_limit_mw;
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    strncpy(text, "0.0", size);
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatt) {
    (void)device;
    *milliwatt = power_limit_mw;
    return 0;
}
