/* The record's basic counters against Nsight Compute: the same binary runs the same cold iteration
 * under `ncu`, collector off, and per phase the sum over its launches must agree. Started with
 * --iterate it is the program that ncu profiles; the phases are the session's own NVTX ranges.
 * MOESOL_NCU names another ncu, MOESOL_NCU_KERNELS (comma-separated) other kernels. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../core/stats.h"
#include "../profiler/counter_combine.h"
#include "gpu_probe.h"

enum { REPEATS = 5, SAMPLES = 10, MAX_PHASES = 16, MAX_FIELDS = 1024 };

/* The library's and our own best; others take ncu longer, or tell nothing new. */
static const char default_kernels[] = "cublas-grouped,hopper";

/* A middle case of the main suite. */
static const struct moe_shape shape = {2048, 8192, 2048, 256, 8};

/* What is compared, by place; ncu's columns have the same names. */
enum metric {
    DURATION, /* ns */
    CLOCK,    /* Hz, weighted by DURATION */
    SM_ACTIVE,
    DRAM_READ,
    DRAM_WRITE,
    L2_BYTES,
    TENSOR, /* percent, weighted by SM_ACTIVE, as the next */
    WARPS,
    METRIC_COUNT
};
static const char *const metric_names[METRIC_COUNT] = {
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.avg.per_second",
    "sm__cycles_active.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active"};
static const int metric_weights[METRIC_COUNT] = {COUNTER_ADD, DURATION,    COUNTER_ADD, COUNTER_ADD,
                                                 COUNTER_ADD, COUNTER_ADD, SM_ACTIVE,   SM_ACTIVE};

/* Phases that move less are shown, not judged. */
static const double judged_bytes = 100e6;
static const double byte_share = 0.01, time_share = 0.03, percent_points = 2;
/* Both clocks of a launch's time stop outside the kernel. */
static const double launch_edge_ns = 2000;
/* Before each phase that is timed for the comparison. */
static const useconds_t idle_us = 20000;
/* Phases at least this long are timed by their counter range; its edges add some 15 us. */
static const double long_phase_ns = 1.5e6;

struct phase_figures {
    char name[64];
    double values[METRIC_COUNT];
    double read_spread; /* bytes: of the single iterations' DRAM_READ, greatest less least */
    double launches;    /* an iteration */
    double activity_ns; /* by activity records, each phase on an idle device, as under ncu */
    double run_ns;      /* by activity records, phase after phase as in any run: shown only */
};

struct figures {
    struct phase_figures phases[MAX_PHASES];
    size_t count;
};

static struct phase_figures *phase_of(struct figures *figures, const char *name, size_t length) {
    for (size_t i = 0; i < figures->count; i++)
        if (strlen(figures->phases[i].name) == length &&
            !memcmp(figures->phases[i].name, name, length))
            return &figures->phases[i];
    if (figures->count == MAX_PHASES || length >= sizeof figures->phases[0].name)
        return NULL;
    struct phase_figures *phase = &figures->phases[figures->count++];
    memset(phase, 0, sizeof *phase);
    memcpy(phase->name, name, length);
    return phase;
}

/* --- the program under ncu -------------------------------------------------------------------- */

/* A kernel run for ncu: the profiler is on while the real one runs and the device works. */
static struct {
    struct gpu_driver driver;
    const struct moe_kernel *real;
    bool on;
} traced;

static int run_traced(void *state, const struct moe_call *call, char *reason) {
    if (!traced.on)
        return traced.real->run(state, call, reason);
    if (traced.driver.cuProfilerStart())
        return 1;
    int failed = traced.real->run(state, call, reason);
    return traced.driver.cuCtxSynchronize() || traced.driver.cuProfilerStop() || failed;
}

static const struct moe_kernel *find_kernel(const struct backend *backend, const char *name) {
    for (size_t i = 0; backend->kernels[i]; i++)
        if (!strcmp(backend->kernels[i]->name, name))
            return backend->kernels[i];
    return NULL;
}

static int prepare(const struct backend *backend, struct backend_session *session,
                   const struct moe_kernel *kernel, struct record_case *record_case,
                   struct error *err) {
    static struct suite suite;
    gpu_suite(&suite, "gpu-ncu", shape);
    record_case_init(record_case);
    if (backend->load(session, &suite, &shape, err))
        return -1;
    return backend->prepare(session, &suite.cases[0], kernel, record_case, err);
}

static const struct measure_options warm_options = {.warmup_count = 3, .sample_count = 1};

/* ncu lets the device go idle between launches: nothing of the phase before is still under way, and
 * power and clocks have recovered. So do these two, where a phase begins. */
static const struct moe_phase_sink *inner_sink;

static void push_on_idle(void *self, const char *name) {
    (void)self;
    traced.driver.cuCtxSynchronize();
    usleep(idle_us);
    inner_sink->push(inner_sink->self, name);
}

static void pop_inner(void *self) {
    (void)self;
    inner_sink->pop(inner_sink->self);
}

static int run_spaced(void *state, const struct moe_call *call, char *reason) {
    static const struct moe_phase_sink sink = {push_on_idle, pop_inner, NULL};
    struct moe_call spaced = *call;
    inner_sink = call->phases;
    spaced.phases = &sink;
    return traced.real->run(state, &spaced, reason);
}

/* The back end, with traced.real set; NULL after the line that says why. */
static const struct backend *open_kernel(const char *name) {
    struct error err = {0};
    const struct backend *backend = backend_cuda(&err);
    traced.real = backend ? find_kernel(backend, name) : NULL;
    if (!traced.real)
        fprintf(stderr, "no kernel %s %s\n", name, err.text);
    return traced.real ? backend : NULL;
}

/* check() runs draw 0, cold, as count() does. */
static int iterate(const char *name) {
    struct error err = {0};
    struct record_case record_case;
    struct backend_session *session = NULL;
    const struct backend *backend = open_kernel(name);
    if (!backend || gpu_driver_open(&traced.driver))
        return 1;
    struct moe_kernel kernel = *traced.real;
    kernel.run = run_traced;
    int failed = backend->open(0, &session, &err) ||
                 prepare(backend, session, &kernel, &record_case, &err) ||
                 backend->measure(session, &warm_options, &record_case, &err);
    traced.on = true;
    for (int i = 0; i < REPEATS && !failed; i++)
        failed = backend->check(session, 0, &record_case, &err);
    if (failed)
        fprintf(stderr, "%s: %s\n", name, err.text);
    backend->close(session);
    return failed != 0;
}

/* --- finding ncu ------------------------------------------------------------------------------ */

static bool executable(const char *path, char *found, size_t size) {
    if (access(path, X_OK))
        return false;
    snprintf(found, size, "%s", path);
    return true;
}

/* In $MOESOL_NCU, on the PATH, beside the CUDA Toolkit. */
static bool find_ncu(char *found, size_t size) {
    const char *named = getenv("MOESOL_NCU"), *path = getenv("PATH");
    if (named)
        return executable(named, found, size);
    char folders[4096], candidate[4200], *rest = folders;
    snprintf(folders, sizeof folders, "%s:/usr/local/cuda/bin", path ? path : "");
    for (char *folder; (folder = strsep(&rest, ":"));) {
        snprintf(candidate, sizeof candidate, "%s/ncu", folder);
        if (executable(candidate, found, size))
            return true;
    }
    glob_t matches;
    bool ok = !glob("/opt/nvidia/nsight-compute/*/ncu", 0, NULL, &matches) &&
              executable(matches.gl_pathv[matches.gl_pathc - 1], found, size);
    globfree(&matches);
    return ok;
}

/* --- reading ncu's table ---------------------------------------------------------------------- */

/* Splits a line of CSV in place; a quote inside quotes is doubled. */
static size_t split_csv(char *line, char **fields) {
    size_t count = 0;
    char *in = line, *out = line;
    while (*in && *in != '\n' && count < MAX_FIELDS) {
        bool quoted = *in == '"';
        fields[count++] = out;
        in += quoted;
        while (*in && *in != '\n' && (quoted || *in != ',')) {
            if (quoted && *in == '"') {
                if (in[1] != '"')
                    break;
                in++;
            }
            *out++ = *in++;
        }
        in += quoted && *in == '"';
        if (*in == ',')
            in++;
        else if (*in)
            *in = '\0';
        *out++ = '\0';
    }
    return count;
}

/* Thousands may be grouped by commas. NaN where there is no number. */
static double read_number(const char *text) {
    char digits[64], *out = digits, *end;
    for (; *text && out < digits + sizeof digits - 1; text++)
        if (*text != ',')
            *out++ = *text;
    *out = '\0';
    double value = strtod(digits, &end);
    return end == digits ? NAN : value;
}

struct columns {
    int nvtx, metrics[METRIC_COUNT];
    bool found;
};

static void read_header(char **fields, size_t count, struct columns *columns) {
    columns->nvtx = -1;
    for (int m = 0; m < METRIC_COUNT; m++)
        columns->metrics[m] = -1;
    for (size_t i = 0; i < count; i++) {
        if (strstr(fields[i], "Push/Pop_Range"))
            columns->nvtx = (int)i;
        for (int m = 0; m < METRIC_COUNT; m++)
            if (!strcmp(fields[i], metric_names[m]))
                columns->metrics[m] = (int)i;
    }
    columns->found = columns->nvtx >= 0;
    for (int m = 0; m < METRIC_COUNT; m++)
        columns->found = columns->found && columns->metrics[m] >= 0;
}

/* Values of single launches, as counter_combine() takes them. */
struct launches {
    double *values; /* [count, METRIC_COUNT] */
    int *phases;
    size_t count, capacity;
};

static double *add_launch(struct launches *launches, int phase) {
    if (launches->count == launches->capacity) {
        launches->capacity = launches->capacity ? 2 * launches->capacity : 64;
        launches->values =
            realloc(launches->values, launches->capacity * METRIC_COUNT * sizeof *launches->values);
        launches->phases = realloc(launches->phases, launches->capacity * sizeof *launches->phases);
        if (!launches->values || !launches->phases)
            abort();
    }
    launches->phases[launches->count] = phase;
    return launches->values + METRIC_COUNT * launches->count++;
}

/* A phase's launches lie one iteration after the other, each as many. */
static double read_spread(const struct launches *launches, int phase, size_t an_iteration) {
    double least = INFINITY, most = -INFINITY, sum = 0;
    size_t seen = 0;
    for (size_t l = 0; l < launches->count; l++) {
        if (launches->phases[l] != phase)
            continue;
        sum += launches->values[METRIC_COUNT * l + DRAM_READ];
        if (++seen % an_iteration)
            continue;
        least = fmin(least, sum);
        most = fmax(most, sum);
        sum = 0;
    }
    return most - least;
}

/* The range is written `1  "<default domain>:gate_up:none:...` . */
static void read_row(char **fields, size_t count, const struct columns *columns,
                     struct figures *figures, struct launches *launches) {
    if ((size_t)columns->nvtx >= count)
        return;
    const char *range = strstr(fields[columns->nvtx], "domain>:");
    if (!range) /* the row of units, or a launch outside the phases */
        return;
    range += strlen("domain>:");
    struct phase_figures *phase = phase_of(figures, range, strcspn(range, ":\""));
    if (!phase)
        return;
    double *values = add_launch(launches, (int)(phase - figures->phases));
    for (int m = 0; m < METRIC_COUNT; m++)
        values[m] =
            (size_t)columns->metrics[m] < count ? read_number(fields[columns->metrics[m]]) : NAN;
}

/* Figures an iteration, by ncu. Returns false where the table is not what is expected. */
static bool read_table(FILE *file, struct figures *figures) {
    struct launches launches = {0};
    struct columns columns = {.found = false};
    char *line = NULL, *fields[MAX_FIELDS];
    size_t size = 0;
    while (getline(&line, &size, file) > 0) {
        if (line[0] != '"')
            continue;
        size_t count = split_csv(line, fields);
        if (!columns.found && !strcmp(fields[0], "ID"))
            read_header(fields, count, &columns);
        else if (columns.found)
            read_row(fields, count, &columns, figures, &launches);
    }
    for (size_t i = 0; i < figures->count; i++) {
        struct phase_figures *phase = &figures->phases[i];
        counter_combine(launches.values, metric_weights, METRIC_COUNT, launches.phases,
                        launches.count, (int)i, phase->values);
        for (int m = 0; m < METRIC_COUNT; m++)
            if (metric_weights[m] == COUNTER_ADD)
                phase->values[m] /= REPEATS;
        for (size_t l = 0; l < launches.count; l++)
            phase->launches += launches.phases[l] == (int)i ? 1.0 / REPEATS : 0;
        phase->read_spread = read_spread(&launches, (int)i, (size_t)fmax(1, phase->launches + 0.5));
    }
    free(line);
    free(launches.values);
    free(launches.phases);
    return columns.found && figures->count > 0;
}

/* --- the record's side ------------------------------------------------------------------------ */

static void add_counters(const struct record_counters *counters, struct figures *figures,
                         struct launches *launches) {
    for (size_t p = 0; p < counters->phase_count; p++) {
        const char *name = counters->phases[p].name;
        struct phase_figures *phase = phase_of(figures, name, strlen(name));
        if (!phase)
            continue;
        double *values = add_launch(launches, (int)(phase - figures->phases));
        for (int m = 0; m < METRIC_COUNT; m++)
            values[m] = gpu_metric(counters, name, metric_names[m]);
    }
}

static int count_phases(const struct backend *backend, struct backend_session *session,
                        struct figures *figures, struct error *err) {
    struct launches launches = {0};
    int result = 0;
    for (int i = 0; i < REPEATS && !result; i++) {
        struct record_counters counters;
        record_counters_init(&counters);
        result = backend->count(session, "basic", &counters, err);
        if (!result && counters.reason[0])
            result = error_set(err, EXIT_FAILED, "no counters: %s", counters.reason);
        if (!result)
            add_counters(&counters, figures, &launches);
        record_counters_free(&counters);
    }
    for (size_t i = 0; i < figures->count && !result; i++) {
        counter_combine(launches.values, metric_weights, METRIC_COUNT, launches.phases,
                        launches.count, (int)i, figures->phases[i].values);
        for (int m = 0; m < METRIC_COUNT; m++)
            if (metric_weights[m] == COUNTER_ADD)
                figures->phases[i].values[m] /= REPEATS;
        figures->phases[i].read_spread = read_spread(&launches, (int)i, 1);
    }
    free(launches.values);
    free(launches.phases);
    return result;
}

static void add_times(const struct record_case *record_case, bool spaced, struct figures *figures) {
    for (size_t i = 0; i < record_case->phase_count; i++) {
        const struct record_phase *phase = &record_case->phases[i];
        struct phase_figures *out = phase_of(figures, phase->name, strlen(phase->name));
        if (!out)
            continue;
        double ns = stats_quantile(phase->samples_ns, phase->sample_count, 0.5);
        *(spaced ? &out->activity_ns : &out->run_ns) = ns;
        for (size_t l = 0; l < phase->launch_count && spaced; l++)
            if (strncmp(phase->launches[l].name, "mem", 3)) /* ncu sees kernels only */
                out->launches += phase->launches[l].count;
    }
}

/* --- the comparison --------------------------------------------------------------------------- */

static void expect_time(struct tally *tally, const char *kernel, const struct phase_figures *ours,
                        const struct phase_figures *theirs) {
    bool by_range = ours->values[DURATION] >= long_phase_ns;
    double ns = by_range ? ours->values[DURATION] : ours->activity_ns;
    double ncu_ns = theirs->values[DURATION];
    /* The clocks are free: what they differ by may show in the time. */
    double clocks = by_range ? fabs(ours->values[CLOCK] / theirs->values[CLOCK] - 1) : 0;
    double allowed_ns = (time_share + clocks) * ncu_ns + launch_edge_ns * theirs->launches;
    expect(tally, fabs(ns - ncu_ns) <= allowed_ns,
           "%s %s: %.1f us by %s, ncu %.1f us (%+.2f %%; SM clocks %.0f and %.0f MHz); phase after "
           "phase %.1f us",
           kernel, ours->name, ns / 1e3, by_range ? "its range" : "activity records", ncu_ns / 1e3,
           100 * (ns / ncu_ns - 1), ours->values[CLOCK] / 1e6, theirs->values[CLOCK] / 1e6,
           ours->run_ns / 1e3);
}

static void expect_phase(struct tally *tally, const char *kernel, const struct phase_figures *ours,
                         const struct phase_figures *theirs, double l2_bytes) {
    const double *a = ours->values, *b = theirs->values;
    double bytes = b[DRAM_READ] + b[DRAM_WRITE];
    /* A kernel that reads again what fell out of the L2 reads another amount each time: no mean of
     * few iterations is surer than half of what single ones differ by. */
    double unsure = (ours->read_spread + theirs->read_spread) / 2;
    expect(tally, fabs(a[DRAM_READ] - b[DRAM_READ]) <= byte_share * bytes + unsure,
           "%s %s: %.4f GB read from DRAM, ncu %.4f GB (%+.2f %% of its traffic; single iterations "
           "differ by %.2f and %.2f %%)",
           kernel, ours->name, a[DRAM_READ] / 1e9, b[DRAM_READ] / 1e9,
           100 * (a[DRAM_READ] - b[DRAM_READ]) / bytes, 100 * ours->read_spread / bytes,
           100 * theirs->read_spread / bytes);
    /* Lines that a phase leaves dirty are written when something evicts them, perhaps after it. */
    expect(tally, fabs(a[DRAM_WRITE] - b[DRAM_WRITE]) <= byte_share * bytes + l2_bytes,
           "%s %s: %.4f GB written to DRAM, ncu %.4f GB (%+.2f %% of its traffic)", kernel,
           ours->name, a[DRAM_WRITE] / 1e9, b[DRAM_WRITE] / 1e9,
           100 * (a[DRAM_WRITE] - b[DRAM_WRITE]) / bytes);
    expect(tally, within(a[L2_BYTES], b[L2_BYTES], byte_share),
           "%s %s: %.4f GB through the L2, ncu %.4f GB (%+.2f %%)", kernel, ours->name,
           a[L2_BYTES] / 1e9, b[L2_BYTES] / 1e9, 100 * (a[L2_BYTES] / b[L2_BYTES] - 1));
    expect(tally, fabs(a[TENSOR] - b[TENSOR]) <= percent_points,
           "%s %s: tensor pipe active %.2f %%, ncu %.2f %%", kernel, ours->name, a[TENSOR],
           b[TENSOR]);
    expect(tally, fabs(a[WARPS] - b[WARPS]) <= percent_points,
           "%s %s: warps active %.2f %%, ncu %.2f %%", kernel, ours->name, a[WARPS], b[WARPS]);
    expect_time(tally, kernel, ours, theirs);
}

static void show_small(const char *kernel, const struct phase_figures *ours,
                       const struct phase_figures *theirs) {
    printf("      %s %s moves %.1f MB: not judged; ncu %.1f us, activity records %.1f us, range "
           "%.1f us\n",
           kernel, ours->name, (theirs->values[DRAM_READ] + theirs->values[DRAM_WRITE]) / 1e6,
           theirs->values[DURATION] / 1e3, ours->activity_ns / 1e3, ours->values[DURATION] / 1e3);
}

static void compare(struct tally *tally, const char *kernel, struct figures *ours,
                    struct figures *theirs, double l2_bytes) {
    size_t judged = 0;
    for (size_t i = 0; i < ours->count; i++) {
        struct phase_figures *phase = &ours->phases[i];
        if (phase->launches == 0) /* copies alone */
            continue;
        struct phase_figures *other = phase_of(theirs, phase->name, strlen(phase->name));
        expect(tally, other && within(other->launches, phase->launches, 1e-6),
               "%s %s: %g launches, ncu %g", kernel, phase->name, phase->launches,
               other ? other->launches : NAN);
        if (!other || !(other->launches > 0))
            continue;
        if (other->values[DRAM_READ] + other->values[DRAM_WRITE] < judged_bytes) {
            show_small(kernel, phase, other);
            continue;
        }
        expect_phase(tally, kernel, phase, other, l2_bytes);
        judged++;
    }
    expect(tally, judged > 0, "%s: %zu phases judged", kernel, judged);
}

/* --- the record's side, a process of its own: it must not hold the counters while ncu runs -----
 */

static const char figure_format[] = "figures %63s %lf %lf %lf %lf";

/* Prints a line a phase, and one of the device. */
static void print_figures(const struct figures *figures, double l2_bytes) {
    printf("device %.17g\n", l2_bytes);
    for (size_t i = 0; i < figures->count; i++) {
        const struct phase_figures *phase = &figures->phases[i];
        printf("figures %s %.17g %.17g %.17g %.17g", phase->name, phase->launches,
               phase->activity_ns, phase->run_ns, phase->read_spread);
        for (int m = 0; m < METRIC_COUNT; m++)
            printf(" %.17g", phase->values[m]);
        printf("\n");
    }
}

static void read_figures(FILE *file, struct figures *figures, double *l2_bytes) {
    char *line = NULL, name[64];
    size_t size = 0;
    double launches, activity_ns, run_ns, spread;
    while (getline(&line, &size, file) > 0) {
        if (sscanf(line, "device %lf", l2_bytes) == 1 ||
            sscanf(line, figure_format, name, &launches, &activity_ns, &run_ns, &spread) != 5)
            continue;
        struct phase_figures *phase = phase_of(figures, name, strlen(name));
        if (!phase)
            continue;
        phase->launches = launches;
        phase->activity_ns = activity_ns;
        phase->run_ns = run_ns;
        phase->read_spread = spread;
        char *at = strstr(line, name) + strlen(name);
        for (int i = 0; i < 4; i++)
            strtod(at, &at);
        for (int m = 0; m < METRIC_COUNT; m++)
            phase->values[m] = strtod(at, &at);
    }
    free(line);
}

static int time_phases(const struct backend *backend, struct backend_session *session, bool spaced,
                       struct figures *figures, struct error *err) {
    static const struct measure_options options = {
        .warmup_count = 3, .sample_count = SAMPLES, .sample_min = SAMPLES, .collect = true};
    struct moe_kernel kernel = *traced.real;
    struct record_case record_case;
    if (spaced)
        kernel.run = run_spaced;
    int result = prepare(backend, session, &kernel, &record_case, err);
    if (result == 1)
        return error_set(err, EXIT_FAILED, "not for this shape: %s", record_case.reason);
    if (!result)
        result = backend->measure(session, &options, &record_case, err);
    if (!result)
        add_times(&record_case, spaced, figures);
    struct error after = {0};
    int finished = backend->finish(session, result ? &after : err); /* kernel: of this frame */
    record_case_free(&record_case);
    return result ? result : finished;
}

static int take_figures(const struct backend *backend, struct backend_session *session,
                        struct figures *figures, struct error *err) {
    struct record_case record_case;
    if (time_phases(backend, session, true, figures, err) ||
        time_phases(backend, session, false, figures, err) ||
        prepare(backend, session, traced.real, &record_case, err))
        return -1;
    int result = count_phases(backend, session, figures, err);
    record_case_free(&record_case);
    return result;
}

static int record(const char *name) {
    struct error err = {0};
    struct record_run run;
    struct moe_device device;
    struct figures figures = {.count = 0};
    struct backend_session *session = NULL;
    const struct backend *backend = open_kernel(name);
    if (!backend || gpu_driver_open(&traced.driver))
        return 1;
    record_run_init(&run);
    int failed = backend->open(0, &session, &err) || take_figures(backend, session, &figures, &err);
    if (failed) {
        fprintf(stderr, "%s: %s\n", name, err.text);
    } else {
        backend->describe(session, &run.device, &device);
        print_figures(&figures, run.device.l2_bytes);
    }
    backend->close(session);
    return failed != 0;
}

/* --- one kernel ------------------------------------------------------------------------------- */

static void show_log(const char *path) {
    FILE *file = fopen(path, "r");
    char line[400];
    for (int i = 0; file && i < 12 && fgets(line, sizeof line, file); i++)
        printf("      %s%s", line, strchr(line, '\n') ? "" : "\n");
    if (file)
        fclose(file);
}

/* Runs `arguments`, whose output is in a file that is read when it has ended: `log` where the
 * program writes it itself, else its stdout. */
static int run(char *const *arguments, const char *log, bool to_stdout) {
    pid_t child = fork();
    if (child == 0) {
        int fd = to_stdout ? open(log, O_WRONLY | O_TRUNC) : dup(STDERR_FILENO);
        dup2(fd, STDOUT_FILENO);
        execv(arguments[0], arguments);
        _exit(127);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_record(char *self, char *kernel, const char *log) {
    char *arguments[] = {self, "--record", kernel, NULL};
    return run(arguments, log, true);
}

static int run_ncu(char *ncu, char *self, char *kernel, char *log) {
    char metrics[1024] = "";
    for (int i = 0; i < METRIC_COUNT; i++)
        snprintf(metrics + strlen(metrics), sizeof metrics - strlen(metrics), "%s%s", i ? "," : "",
                 metric_names[i]);
    char *arguments[] = {ncu,         "--nvtx",
                         "--csv",     "--page",
                         "raw",       "--print-units",
                         "base",      "--clock-control",
                         "none",      "--cache-control",
                         "none",      "--profile-from-start",
                         "off",       "--metrics",
                         metrics,     "--log-file",
                         log,         self,
                         "--iterate", kernel,
                         NULL};
    return run(arguments, log, false);
}

static void test_kernel(struct tally *tally, char *ncu, char *self, char *kernel) {
    struct figures ours = {.count = 0}, theirs = {.count = 0};
    double l2_bytes = NAN;
    char log[] = "/tmp/moesol-ncu-XXXXXX";
    int fd = mkstemp(log);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file)
        abort();
    int code = run_record(self, kernel, log);
    read_figures(file, &ours, &l2_bytes);
    fclose(file);
    expect(tally, !code && ours.count > 0, "%s: measured and counted, %zu phases", kernel,
           ours.count);
    if (!code) {
        unlink(log); /* ncu makes it */
        code = run_ncu(ncu, self, kernel, log);
        file = fopen(log, "r");
        bool ok = file && read_table(file, &theirs) && !code;
        expect(tally, ok, "%s under ncu: exit status %d, %zu phases", kernel, code, theirs.count);
        if (ok)
            compare(tally, kernel, &ours, &theirs, l2_bytes);
        else
            show_log(log);
        if (file)
            fclose(file);
    }
    unlink(log);
}

int main(int argc, char **argv) {
    struct tally tally = {0};
    char ncu[4200], self[1024] = "", kernels[1024], *rest = kernels;
    const char *listed = getenv("MOESOL_NCU_KERNELS");
    if (argc == 3 && !strcmp(argv[1], "--iterate"))
        return iterate(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "--record"))
        return record(argv[2]);
    if (!gpu_backend_or_skip())
        return 0;
    if (!find_ncu(ncu, sizeof ncu)) {
        printf("skip: no Nsight Compute here (ncu); install it or name it in MOESOL_NCU\n"
               "0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        abort();
    snprintf(kernels, sizeof kernels, "%s", listed ? listed : default_kernels);
    for (char *kernel; (kernel = strsep(&rest, ","));)
        if (*kernel)
            test_kernel(&tally, ncu, self, kernel);
    printf("%d passed, %d failed\n", tally.passed, tally.failed);
    return tally.failed != 0;
}
