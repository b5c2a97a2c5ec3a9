/* NVML behind dlopen(), and a thread that samples it. The prototypes below are the few that are
 * needed of NVML's stable C ABI (its API reference): not every CUDA Toolkit brings nvml.h. */
#include <atomic>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../core/stats.h"
#include "telemetry.h"

typedef void *nvml_device;

enum {
    NVML_CLOCK_SM_DOMAIN = 1,
    NVML_CLOCK_MEMORY_DOMAIN = 2,
    NVML_SENSOR_GPU = 0,
    NVML_FIELD_POWER_INSTANT = 186
};

/* nvmlFieldValue_t: the value of fields of our kind is an unsigned int. */
struct nvml_field {
    unsigned field_id, scope_id;
    long long timestamp_us, latency_us;
    unsigned value_type;
    int status;
    union {
        unsigned as_unsigned;
        double as_double;
        unsigned long long as_unsigned_long_long;
    } value;
};

/* NULL: this driver has no such function; the figure stays unmeasured. */
struct nvml_functions {
    int (*init)(void);
    int (*shutdown)(void);
    int (*handle)(const char *, nvml_device *);
    int (*driver_version)(char *, unsigned);
    int (*clock)(nvml_device, unsigned, unsigned *);
    int (*power)(nvml_device, unsigned *);
    int (*fields)(nvml_device, int, struct nvml_field *);
    int (*temperature)(nvml_device, unsigned, unsigned *);
    int (*throttle)(nvml_device, unsigned long long *);
    int (*power_limit)(nvml_device, unsigned *);
    int (*set_clock)(nvml_device, unsigned, unsigned *);
    int (*ecc)(nvml_device, unsigned *, unsigned *);
    int (*mig)(nvml_device, unsigned *, unsigned *);
};

struct sample {
    double sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
    unsigned long long throttle;
};

struct telemetry {
    void *library;
    struct nvml_functions nvml;
    nvml_device device;
    bool initialised, running;
    pthread_t thread;
    std::atomic<bool> stop;
    struct sample *samples;
    size_t count, capacity;
};

/* Bits of nvmlDeviceGetCurrentClocksThrottleReasons(). Idle (bit 0) and the display's setting are
 * no throttling. */
static const struct {
    unsigned long long bit;
    const char *name;
} throttle_names[] = {
    {0x02, "applications_clocks"}, {0x04, "sw_power_cap"}, {0x08, "hw_slowdown"},
    {0x10, "sync_boost"},          {0x20, "sw_thermal"},   {0x40, "hw_thermal"},
    {0x80, "hw_power_brake"},
};

template <typename function> static void find(void *library, const char *name, function *pointer) {
    *pointer = (function)dlsym(library, name);
}

static void find_all(void *library, struct nvml_functions *nvml) {
    find(library, "nvmlInit_v2", &nvml->init);
    find(library, "nvmlShutdown", &nvml->shutdown);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->handle);
    find(library, "nvmlSystemGetDriverVersion", &nvml->driver_version);
    find(library, "nvmlDeviceGetClockInfo", &nvml->clock);
    find(library, "nvmlDeviceGetPowerUsage", &nvml->power);
    find(library, "nvmlDeviceGetFieldValues", &nvml->fields);
    find(library, "nvmlDeviceGetTemperature", &nvml->temperature);
    find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->throttle);
    find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit);
    find(library, "nvmlDeviceGetApplicationsClock", &nvml->set_clock);
    find(library, "nvmlDeviceGetEccMode", &nvml->ecc);
    find(library, "nvmlDeviceGetMigMode", &nvml->mig);
}

struct telemetry *telemetry_open(const char *pci_bus_id) {
    struct telemetry *telemetry = (struct telemetry *)calloc(1, sizeof *telemetry);
    if (!telemetry)
        return NULL;
    telemetry->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!telemetry->library)
        goto fail;
    find_all(telemetry->library, &telemetry->nvml);
    if (!telemetry->nvml.init || !telemetry->nvml.handle || telemetry->nvml.init())
        goto fail;
    telemetry->initialised = true;
    if (telemetry->nvml.handle(pci_bus_id, &telemetry->device))
        goto fail;
    return telemetry;
fail:
    telemetry_close(telemetry);
    return NULL;
}

void telemetry_close(struct telemetry *telemetry) {
    if (!telemetry)
        return;
    if (telemetry->running)
        telemetry_stop(telemetry, NULL);
    if (telemetry->initialised && telemetry->nvml.shutdown)
        telemetry->nvml.shutdown();
    if (telemetry->library)
        dlclose(telemetry->library);
    free(telemetry->samples);
    free(telemetry);
}

void telemetry_describe(struct telemetry *telemetry, struct record_device *device) {
    if (!telemetry)
        return;
    const struct nvml_functions *nvml = &telemetry->nvml;
    unsigned value = 0, pending = 0;
    if (nvml->driver_version)
        nvml->driver_version(device->driver_version, sizeof device->driver_version);
    if (nvml->power_limit && !nvml->power_limit(telemetry->device, &value))
        device->power_limit_w = value / 1000.0;
    if (nvml->ecc && !nvml->ecc(telemetry->device, &value, &pending))
        strcpy(device->ecc, value ? "on" : "off");
    if (nvml->mig && !nvml->mig(telemetry->device, &value, &pending))
        strcpy(device->mig, value ? "on" : "off");
}

void telemetry_settings(struct telemetry *telemetry, struct telemetry_settings *out) {
    unsigned value = 0;
    out->power_limit_w = out->sm_clock_mhz = out->memory_clock_mhz = NAN;
    if (!telemetry)
        return;
    const struct nvml_functions *nvml = &telemetry->nvml;
    if (nvml->power_limit && !nvml->power_limit(telemetry->device, &value))
        out->power_limit_w = value / 1000.0;
    if (nvml->set_clock && !nvml->set_clock(telemetry->device, NVML_CLOCK_SM_DOMAIN, &value))
        out->sm_clock_mhz = value;
    if (nvml->set_clock && !nvml->set_clock(telemetry->device, NVML_CLOCK_MEMORY_DOMAIN, &value))
        out->memory_clock_mhz = value;
}

bool telemetry_settings_differ(const struct telemetry_settings *before,
                               const struct telemetry_settings *after, char *text, size_t size) {
    const struct {
        const char *name, *unit;
        double before, after;
    } settings[] = {
        {"power limit", "W", before->power_limit_w, after->power_limit_w},
        {"SM clock of applications", "MHz", before->sm_clock_mhz, after->sm_clock_mhz},
        {"memory clock of applications", "MHz", before->memory_clock_mhz, after->memory_clock_mhz},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (isnan(settings[i].before) || isnan(settings[i].after) ||
            settings[i].before == settings[i].after)
            continue;
        snprintf(text, size, "%s: %g %s, then %g %s", settings[i].name, settings[i].before,
                 settings[i].unit, settings[i].after, settings[i].unit);
        return true;
    }
    return false;
}

/* The power of this moment where the driver has it: nvmlDeviceGetPowerUsage() is a mean over a
 * second on newer devices. */
static double sample_power(const struct telemetry *telemetry) {
    struct nvml_field field = {};
    field.field_id = NVML_FIELD_POWER_INSTANT;
    unsigned milliwatt = 0;
    if (telemetry->nvml.fields && !telemetry->nvml.fields(telemetry->device, 1, &field) &&
        !field.status && field.value.as_unsigned)
        return field.value.as_unsigned / 1000.0;
    if (telemetry->nvml.power && !telemetry->nvml.power(telemetry->device, &milliwatt))
        return milliwatt / 1000.0;
    return NAN;
}

static double sample_clock(const struct telemetry *telemetry, unsigned domain) {
    unsigned mhz = 0;
    if (telemetry->nvml.clock && !telemetry->nvml.clock(telemetry->device, domain, &mhz))
        return mhz;
    return NAN;
}

static void take_sample(struct telemetry *telemetry) {
    if (telemetry->count == telemetry->capacity) {
        size_t capacity = telemetry->capacity ? 2 * telemetry->capacity : 1024;
        void *grown = realloc(telemetry->samples, capacity * sizeof *telemetry->samples);
        if (!grown)
            return;
        telemetry->samples = (struct sample *)grown;
        telemetry->capacity = capacity;
    }
    unsigned celsius = 0;
    struct sample *sample = &telemetry->samples[telemetry->count];
    sample->sm_clock_mhz = sample_clock(telemetry, NVML_CLOCK_SM_DOMAIN);
    sample->memory_clock_mhz = sample_clock(telemetry, NVML_CLOCK_MEMORY_DOMAIN);
    sample->power_w = sample_power(telemetry);
    sample->temperature_c = NAN;
    if (telemetry->nvml.temperature &&
        !telemetry->nvml.temperature(telemetry->device, NVML_SENSOR_GPU, &celsius))
        sample->temperature_c = celsius;
    sample->throttle = 0;
    if (telemetry->nvml.throttle)
        telemetry->nvml.throttle(telemetry->device, &sample->throttle);
    telemetry->count++;
}

static void *sample_loop(void *self) {
    struct telemetry *telemetry = (struct telemetry *)self;
    const struct timespec pause = {0, 5 * 1000 * 1000};
    while (!telemetry->stop.load()) {
        take_sample(telemetry);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

void telemetry_start(struct telemetry *telemetry) {
    if (!telemetry || telemetry->running)
        return;
    telemetry->count = 0;
    telemetry->stop.store(false);
    telemetry->running = !pthread_create(&telemetry->thread, NULL, sample_loop, telemetry);
}

/* Quantile of one member over the samples that have it. */
static double sample_quantile(const struct telemetry *telemetry, double sample::*member, double q) {
    double *values = (double *)malloc((telemetry->count + 1) * sizeof *values);
    if (!values)
        return NAN;
    size_t count = 0;
    for (size_t i = 0; i < telemetry->count; i++)
        if (!isnan(telemetry->samples[i].*member))
            values[count++] = telemetry->samples[i].*member;
    double quantile = stats_quantile(values, count, q);
    free(values);
    return quantile;
}

static void name_throttle_reasons(unsigned long long reasons, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0; i < sizeof throttle_names / sizeof *throttle_names; i++) {
        if (!(reasons & throttle_names[i].bit))
            continue;
        if (text[0])
            strncat(text, ",", size - strlen(text) - 1);
        strncat(text, throttle_names[i].name, size - strlen(text) - 1);
    }
}

void telemetry_stop(struct telemetry *telemetry, struct record_telemetry *out) {
    if (!telemetry || !telemetry->running)
        return;
    telemetry->stop.store(true);
    pthread_join(telemetry->thread, NULL);
    telemetry->running = false;
    if (!out)
        return;
    out->sm_clock_mhz_min = sample_quantile(telemetry, &sample::sm_clock_mhz, 0.0);
    out->sm_clock_mhz_median = sample_quantile(telemetry, &sample::sm_clock_mhz, 0.5);
    out->sm_clock_mhz_max = sample_quantile(telemetry, &sample::sm_clock_mhz, 1.0);
    out->memory_clock_mhz_median = sample_quantile(telemetry, &sample::memory_clock_mhz, 0.5);
    out->power_w_median = sample_quantile(telemetry, &sample::power_w, 0.5);
    out->power_w_max = sample_quantile(telemetry, &sample::power_w, 1.0);
    out->temperature_c_max = sample_quantile(telemetry, &sample::temperature_c, 1.0);
    unsigned long long reasons = 0;
    for (size_t i = 0; i < telemetry->count; i++)
        reasons |= telemetry->samples[i].throttle;
    name_throttle_reasons(reasons, out->throttle_reasons, sizeof out->throttle_reasons);
}
