/* `moesol doctor`: what works on this machine, what does not and why, and the line that mends it.
 * Nothing that is missing is an error: the exit code is 0. */
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cases/suite.h"
#include "../core/options.h"
#include "../core/output.h"
#include "backend.h"
#include "child.h"
#include "commands.h"
#include "device_choice.h"
#include "run_worker.h"

enum state { STATE_OK, STATE_ABSENT, STATE_UNKNOWN };
static const char *const state_names[] = {"ok", "absent", "unknown"};

struct check {
    const char *name;
    enum state state;
    char detail[512];
    const char *mend; /* NULL where nothing is to be mended */
};

/* What the checks find out for each other. */
struct doctor {
    struct check checks[16];
    size_t count;
    int signal_fd;
    int driver_cuda; /* newest CUDA the driver takes, 1000 * major + 10 * minor; 0: not known */
    bool has_gpu, module_loads;
    struct device_info gpu;
};

static void add(struct doctor *doctor, const char *name, enum state state, const char *detail,
                const char *mend) {
    struct check *check = &doctor->checks[doctor->count++];
    check->name = name;
    check->state = state;
    check->mend = state == STATE_OK ? NULL : mend;
    snprintf(check->detail, sizeof check->detail, "%s", detail);
}

/* --- the GPU side ---------------------------------------------------------------------------- */

/* ", takes CUDA up to 13.0", where that is known. */
static void cuda_of_driver(const struct doctor *doctor, char *text, size_t size) {
    text[0] = '\0';
    if (doctor->driver_cuda > 0)
        snprintf(text, size, ", the driver takes CUDA up to %d.%d", doctor->driver_cuda / 1000,
                 doctor->driver_cuda % 1000 / 10);
}

/* Asks NVML, which makes no CUDA context. */
static void check_driver(struct doctor *doctor) {
    int (*init)(void), (*driver)(char *, unsigned), (*cuda)(int *);
    char version[96] = "", cuda_text[64], detail[192];
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml) {
        add(doctor, "driver", STATE_ABSENT, "libnvidia-ml.so.1 is not there: no NVIDIA driver",
            "install the NVIDIA driver (nothing to do on a machine without an NVIDIA GPU)");
        return;
    }
    *(void **)&init = dlsym(nvml, "nvmlInit_v2");
    *(void **)&driver = dlsym(nvml, "nvmlSystemGetDriverVersion");
    *(void **)&cuda = dlsym(nvml, "nvmlSystemGetCudaDriverVersion_v2");
    if (!init || !driver || init() || driver(version, sizeof version)) {
        add(doctor, "driver", STATE_ABSENT, "libnvidia-ml.so.1 is there, the driver is not loaded",
            "load it: sudo modprobe nvidia; in a container, start it with the GPU passed through");
        return; /* NVML stays loaded: the process is about to end */
    }
    if (cuda)
        cuda(&doctor->driver_cuda);
    cuda_of_driver(doctor, cuda_text, sizeof cuda_text);
    snprintf(detail, sizeof detail, "%s%s", version, cuda_text);
    add(doctor, "driver", STATE_OK, detail, NULL);
}

static void check_module(struct doctor *doctor) {
    struct error err = {0};
    doctor->module_loads = backend_cuda(&err) != NULL;
    add(doctor, "GPU module", doctor->module_loads ? STATE_OK : STATE_ABSENT,
        doctor->module_loads ? "libmoesol-cuda.so loads, with its CUDA libraries" : err.text,
        "install the CUDA Toolkit 12.6 or newer and run make");
}

static void check_gpu(struct doctor *doctor) {
    struct error err = {0};
    char detail[512];
    doctor->has_gpu = device_describe("cuda", 0, doctor->signal_fd, &doctor->gpu, &err) == 0;
    const struct record_device *device = &doctor->gpu.device;
    if (doctor->has_gpu)
        snprintf(detail, sizeof detail, "%s, compute capability %s, %.1f GB", device->name,
                 device->compute_capability, device->memory_bytes / 1e9);
    add(doctor, "GPU", doctor->has_gpu ? STATE_OK : STATE_ABSENT,
        doctor->has_gpu ? detail : err.text,
        "mend the lines above; until then --device cpu runs the CPU kernels");
}

static void check_cupti(struct doctor *doctor) {
    const char *version = doctor->has_gpu ? doctor->gpu.device.cupti_version : "";
    char detail[256], cuda_text[64];
    int major = 0, minor = 0;
    if (!version[0] || sscanf(version, "%d.%d", &major, &minor) < 1) {
        add(doctor, "CUPTI", doctor->module_loads ? STATE_UNKNOWN : STATE_ABSENT,
            doctor->module_loads ? "the module has it; its version is seen only with a GPU"
                                 : "comes with the GPU module, which is absent",
            "mend the lines above");
        return;
    }
    bool newer = doctor->driver_cuda > 0 && major > doctor->driver_cuda / 1000;
    cuda_of_driver(doctor, cuda_text, sizeof cuda_text);
    snprintf(detail, sizeof detail, "version %s%s%s", version, cuda_text,
             newer ? ": CUPTI is newer than the driver" : "");
    add(doctor, "CUPTI", newer ? STATE_ABSENT : STATE_OK, detail,
        "install a driver for that CUDA version, or build with an older CUDA Toolkit");
}

/* --- counters: taken of a small case, since only that shows that they can be had ---------------
 */

struct counters_answer {
    bool taken;
    char reason[512];
};

static int take_counters(void *self, enum worker_message_kind kind, int number, const char *line,
                         size_t length, struct error *err) {
    struct counters_answer *answer = self;
    struct record_counters counters;
    (void)number;
    if (kind != MESSAGE_COUNTERS || record_parse_counters(line, length, &counters, err))
        return RUN_WORKER_BAD_LINE;
    answer->taken = counters.reason[0] == '\0' && counters.phase_count > 0;
    snprintf(answer->reason, sizeof answer->reason, "%s", counters.reason);
    record_counters_free(&counters);
    return 0;
}

static double counters_limit_s(void *self, int number) {
    (void)self, (void)number;
    return 120;
}

static void ignore_begin(void *self, int number) { (void)self, (void)number; }

static int keep_failure(void *self, int number, enum record_status status, const char *reason,
                        struct error *err) {
    struct counters_answer *answer = self;
    (void)number, (void)err;
    snprintf(answer->reason, sizeof answer->reason, "%s: %.400s", record_status_names[status],
             reason);
    return 0;
}

static void try_counters(struct doctor *doctor, struct counters_answer *answer) {
    struct worker_job job = {.mode = WORKER_COUNT, .case_count = 1, .counters_level = "basic"};
    struct run_worker_hooks hooks = {.self = answer,
                                     .load_limit_s = 120,
                                     .case_limit_s = counters_limit_s,
                                     .begin = ignore_begin,
                                     .line = take_counters,
                                     .failed = keep_failure};
    struct error err = {0};
    struct suite *suite = malloc(sizeof *suite);
    strcpy(job.device_kind, "cuda");
    for (size_t i = 0; i < doctor->gpu.kernel_count && !job.kernel[0]; i++)
        if (strcmp(doctor->gpu.kernels[i].name, "null"))
            snprintf(job.kernel, sizeof job.kernel, "%s", doctor->gpu.kernels[i].name);
    if (!suite || suite_read("tiny", suite, &err)) {
        snprintf(answer->reason, sizeof answer->reason, "%s", err.text);
    } else {
        snprintf(job.suite, sizeof job.suite, "%s", suite->directory);
        job.cases[0] = suite->cases[0].number;
        if (run_worker(&job, &hooks, doctor->signal_fd, &err))
            snprintf(answer->reason, sizeof answer->reason, "%s", err.text);
    }
    free(suite);
}

static void check_counters(struct doctor *doctor) {
    static const char admin[] = "run as root, or let all users profile: echo 'options nvidia "
                                "NVreg_RestrictProfilingToAdminUsers=0' | sudo tee "
                                "/etc/modprobe.d/nvidia-profiling.conf, then reboot";
    static const char stop[] = "stop it (nsys, ncu, dcgm: sudo systemctl stop nvidia-dcgm)";
    struct counters_answer answer = {0};
    if (!doctor->has_gpu) {
        add(doctor, "counter permission", STATE_ABSENT, "no GPU that can be used", "see GPU");
        add(doctor, "other profiler", STATE_UNKNOWN, "no GPU that can be used", "see GPU");
        return;
    }
    try_counters(doctor, &answer);
    bool held = strstr(answer.reason, "other profiler") != NULL;
    if (answer.taken) {
        add(doctor, "counter permission", STATE_OK, "counters of a small case were taken", NULL);
        add(doctor, "other profiler", STATE_OK, "none holds the counters", NULL);
        return;
    }
    const char *reason = answer.reason[0] ? answer.reason : "no counters came, and no reason";
    add(doctor, "counter permission", held ? STATE_UNKNOWN : STATE_ABSENT, reason, admin);
    add(doctor, "other profiler", held ? STATE_ABSENT : STATE_UNKNOWN,
        held ? reason : "not seen while counters cannot be had at all", stop);
}

/* --- the rest -------------------------------------------------------------------------------- */

/* First line that a program prints; false if it cannot be run. */
static bool first_line(const char *program, const char *argument, char *line, size_t size) {
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got;
    if (pipe(ends))
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execlp(program, program, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (used + 1 < size && (got = read(ends[0], line + used, size - 1 - used)) > 0)
        used += (size_t)got;
    line[used] = '\0';
    line[strcspn(line, "\n")] = '\0';
    close(ends[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void check_gnuplot(struct doctor *doctor) {
    char line[128];
    bool there = first_line("gnuplot", "--version", line, sizeof line);
    add(doctor, "gnuplot", there ? STATE_OK : STATE_ABSENT,
        there ? line : "not found or not working: no pictures", "sudo apt-get install gnuplot-nox");
}

static void check_libraries(struct doctor *doctor) {
    char detail[256];
    char *(*config)(void);
    *(void **)&config = dlsym(RTLD_DEFAULT, "openblas_get_config");
    snprintf(detail, sizeof detail, "jansson %s; %.160s", JANSSON_VERSION,
             config ? config() : "a BLAS that is not OpenBLAS");
    add(doctor, "libraries", STATE_OK, detail, NULL);
}

static void check_suites(struct doctor *doctor) {
    size_t count = 0;
    char detail[512] = "", **names = suite_names(&count);
    for (size_t i = 0; i < count; i++) {
        strncat(detail, i ? ", " : "", sizeof detail - strlen(detail) - 1);
        strncat(detail, names[i], sizeof detail - strlen(detail) - 1);
    }
    if (names)
        suite_names_free(names);
    add(doctor, "suites", count ? STATE_OK : STATE_ABSENT, count ? detail : "none found",
        "set MOESOL_DATA to the source tree's cases folder, or run make install");
}

static void check_cpu(struct doctor *doctor) {
    struct device_info info;
    struct error err = {0};
    char detail[400];
    if (device_describe("cpu", 0, doctor->signal_fd, &info, &err)) {
        add(doctor, "CPU", STATE_ABSENT, err.text, "run moesol run --device cpu to see more");
        return;
    }
    snprintf(detail, sizeof detail, "%s, %.0f cores, %.1f GB", info.device.name,
             info.device.sm_count, info.device.memory_bytes / 1e9);
    add(doctor, "CPU", STATE_OK, detail, NULL);
    device_info_free(&info);
}

/* --- printing -------------------------------------------------------------------------------- */

static void print_text(const struct doctor *doctor) {
    bool colours = output_colours(stdout);
    for (size_t i = 0; i < doctor->count; i++) {
        const struct check *check = &doctor->checks[i];
        const char *colour = check->state == STATE_OK ? "\033[32m" : "\033[33m";
        printf("%-18s  %s%-7s%s  %s\n", check->name, colours ? colour : "",
               state_names[check->state], colours ? "\033[0m" : "", check->detail);
        if (check->mend)
            printf("%-18s  %-7s  -> %s\n", "", "", check->mend);
    }
}

static void print_json(const struct doctor *doctor) {
    json_t *list = json_array();
    for (size_t i = 0; i < doctor->count; i++) {
        const struct check *check = &doctor->checks[i];
        json_t *detail = json_string(check->detail);
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s?}", "name", check->name, "state",
                                              state_names[check->state], "detail",
                                              detail ? detail : json_null(), "mend", check->mend));
    }
    json_t *root = json_pack("{s:o}", "checks", list);
    json_dumpf(root, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(root);
}

static int examine(bool json) {
    struct error err = {0};
    struct doctor doctor = {0};
    doctor.signal_fd = child_signal_fd(&err);
    if (doctor.signal_fd < 0)
        return error_print(&err);
    check_cpu(&doctor);
    check_driver(&doctor);
    check_module(&doctor);
    check_gpu(&doctor);
    check_cupti(&doctor);
    check_counters(&doctor);
    check_gnuplot(&doctor);
    check_libraries(&doctor);
    check_suites(&doctor);
    if (json)
        print_json(&doctor);
    else
        print_text(&doctor);
    if (doctor.has_gpu)
        device_info_free(&doctor.gpu);
    return output_finish(EXIT_OK);
}

int cmd_doctor(int argc, char **argv) {
    static const char *const formats[] = {"text", "json", NULL};
    const char *format = "text";
    const struct option_row rows[] = {
        option_text("format", 'f', "FORMAT", "text or json (default: text)", &format, formats),
    };
    const struct options options = {
        "doctor",
        "[OPTION]...",
        "Says what works on this machine, what does not, and the line that mends it.",
        "A machine without a GPU is a state, not an error: the exit code is 0.",
        rows,
        1,
        0,
        0};
    int code = EXIT_OK;
    if (!options_take(&options, argc, argv, NULL, &code))
        return code;
    return examine(strcmp(format, "json") == 0);
}
