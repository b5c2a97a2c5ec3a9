/* Levels of metrics, their schedule and their values, by CUPTI's host API. The only translation
 * unit that includes cupti_profiler_host.h. */
#include "counters_host.h"

#include <cupti_profiler_host.h>
#include <cupti_result.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "cupti_call.h"

namespace {

constexpr const char *DURATION = "gpu__time_duration.sum";
constexpr const char *SM_ACTIVE = "sm__cycles_active.sum";
constexpr const char *ISSUES = "smsp__issue_active.sum";
constexpr const char *L2_SECTORS = "lts__t_sectors.sum";

/* A metric and the one that it is an average over; NULL: its values add. */
struct metric {
    const char *name;
    const char *weight;
};

/* `basic` is the head of the table: it fits one pass on GH100. Its order is that of the record. */
const struct metric METRICS[] = {
    {DURATION, NULL},
    {"sm__cycles_elapsed.avg.per_second", DURATION},
    {SM_ACTIVE, NULL},
    {"dram__bytes_read.sum", NULL},
    {"dram__bytes_write.sum", NULL},
    {"lts__t_bytes.sum", NULL},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", SM_ACTIVE},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", DURATION},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", SM_ACTIVE},

    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", DURATION},
    {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", DURATION},
    {"l1tex__throughput.avg.pct_of_peak_sustained_elapsed", DURATION},
    {"lts__throughput.avg.pct_of_peak_sustained_elapsed", DURATION},
    {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", DURATION},
    {L2_SECTORS, NULL},
    {"lts__t_sector_hit_rate.pct", L2_SECTORS},
    {"lts__t_sectors_srcunit_tex.sum", NULL}, /* what the SMs ask for; lts__t_bytes has more */
    {"sm__ops_path_tensor_src_fp16.sum", NULL},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", NULL},
    {"l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum", NULL},
    {"l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum", NULL},
    {ISSUES, NULL},
    {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_drain_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_misc_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio", ISSUES},
    {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", ISSUES},
};
constexpr size_t FULL_COUNT = sizeof(METRICS) / sizeof(METRICS[0]);
constexpr size_t BASIC_COUNT = 9;
static_assert(FULL_COUNT <= COUNTERS_METRIC_MAX, "a plan holds every metric");

/* `timeline`: what is sampled over the time of an iteration. Sampling has one pass. */
const struct metric SAMPLED[] = {
    {SAMPLED_SM_ACTIVE, NULL},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", NULL},
    {"dram__bytes_read.sum", NULL},
    {"dram__bytes_write.sum", NULL},
    {"sm__cycles_elapsed.avg.per_second", NULL},
};
constexpr size_t SAMPLED_COUNT = sizeof(SAMPLED) / sizeof(SAMPLED[0]);

struct level {
    const char *name;
    const struct metric *metrics;
    size_t count;
    CUpti_ProfilerType type;
};

const struct level LEVELS[] = {
    {"basic", METRICS, BASIC_COUNT, CUPTI_PROFILER_TYPE_RANGE_PROFILER},
    {"full", METRICS, FULL_COUNT, CUPTI_PROFILER_TYPE_RANGE_PROFILER},
    {"timeline", SAMPLED, SAMPLED_COUNT, CUPTI_PROFILER_TYPE_PM_SAMPLING},
};
constexpr size_t LEVEL_COUNT = sizeof(LEVELS) / sizeof(LEVELS[0]);

const struct level *find_level(const char *name) {
    for (const struct level &level : LEVELS) {
        if (!strcmp(level.name, name))
            return &level;
    }
    return NULL;
}

int host_error(struct error *err, const char *call, CUptiResult result) {
    return error_set(err, EXIT_FAILED, "counters: %s failed: %s; %s", call, cupti_text(result),
                     cupti_mend(result));
}

int open_host(CUpti_ProfilerType type, const char *chip, const uint8_t *availability,
              struct counters_plan *plan, struct error *err) {
    auto params = cupti_params<CUpti_Profiler_Host_Initialize_Params>(
        CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
    params.profilerType = type;
    params.pChipName = chip;
    params.pCounterAvailabilityImage = availability;
    CUptiResult result = cuptiProfilerHostInitialize(&params);
    if (result != CUPTI_SUCCESS)
        return error_set(err, EXIT_FAILED,
                         "counters: CUPTI cannot schedule metrics for chip %s: %s; use a CUDA "
                         "Toolkit that knows the chip",
                         chip, cupti_text(result));
    plan->host = params.pHostObject;
    return 0;
}

bool is_known(const struct counters_plan *plan, const char *name) {
    auto params = cupti_params<CUpti_Profiler_Host_GetMetricProperties_Params>(
        CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE);
    params.pHostObject = (CUpti_Profiler_Host_Object *)plan->host;
    params.pMetricName = name;
    return cuptiProfilerHostGetMetricProperties(&params) == CUPTI_SUCCESS;
}

int index_of(const struct counters_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->metric_count; i++) {
        if (!strcmp(plan->names[i], name))
            return (int)i;
    }
    return -1;
}

/* Metrics come after those that weight them, and the duration, which every chip has, is first. */
int choose_metrics(const struct level *level, const char *chip, bool skip_unknown,
                   struct counters_plan *plan, struct error *err) {
    for (size_t i = 0; i < level->count; i++) {
        const struct metric *metric = &level->metrics[i];
        if (!is_known(plan, metric->name)) {
            if (skip_unknown && i > 0)
                continue;
            return error_set(err, EXIT_FAILED, "counters: chip %s has no metric %s", chip,
                             metric->name);
        }
        int weight = metric->weight ? index_of(plan, metric->weight) : COUNTER_ADD;
        if (metric->weight && weight < 0)
            weight = 0;
        plan->names[plan->metric_count] = metric->name;
        plan->weights[plan->metric_count++] = weight;
    }
    return 0;
}

int make_config(struct counters_plan *plan, struct error *err) {
    CUpti_Profiler_Host_Object *host = (CUpti_Profiler_Host_Object *)plan->host;
    auto add = cupti_params<CUpti_Profiler_Host_ConfigAddMetrics_Params>(
        CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
    add.pHostObject = host;
    add.ppMetricNames = plan->names;
    add.numMetrics = plan->metric_count;
    CUptiResult result = cuptiProfilerHostConfigAddMetrics(&add);
    if (result != CUPTI_SUCCESS)
        return host_error(err, "cuptiProfilerHostConfigAddMetrics", result);

    auto size = cupti_params<CUpti_Profiler_Host_GetConfigImageSize_Params>(
        CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
    size.pHostObject = host;
    result = cuptiProfilerHostGetConfigImageSize(&size);
    if (result != CUPTI_SUCCESS)
        return host_error(err, "cuptiProfilerHostGetConfigImageSize", result);
    plan->config_bytes = size.configImageSize;
    plan->config = (uint8_t *)calloc(1, plan->config_bytes);
    if (!plan->config)
        return error_set(err, EXIT_FAILED, "counters: out of host memory");

    auto image = cupti_params<CUpti_Profiler_Host_GetConfigImage_Params>(
        CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
    image.pHostObject = host;
    image.configImageSize = plan->config_bytes;
    image.pConfigImage = plan->config;
    result = cuptiProfilerHostGetConfigImage(&image);
    if (result != CUPTI_SUCCESS)
        return host_error(err, "cuptiProfilerHostGetConfigImage", result);

    auto passes = cupti_params<CUpti_Profiler_Host_GetNumOfPasses_Params>(
        CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
    passes.configImageSize = plan->config_bytes;
    passes.pConfigImage = plan->config;
    result = cuptiProfilerHostGetNumOfPasses(&passes);
    if (result != CUPTI_SUCCESS)
        return host_error(err, "cuptiProfilerHostGetNumOfPasses", result);
    plan->pass_count = passes.numOfPasses;
    return 0;
}

} // namespace

const char *const *counters_metrics(const char *level) {
    static const char *names[LEVEL_COUNT][COUNTERS_METRIC_MAX + 1];
    const struct level *found = find_level(level);
    if (!found)
        return NULL;
    const char **row = names[found - LEVELS];
    for (size_t i = 0; i < found->count; i++)
        row[i] = found->metrics[i].name;
    return row;
}

int counters_pass_count(const char *level, const char *chip, struct error *err) {
    struct counters_plan plan;
    if (counters_plan_open(level, chip, NULL, false, &plan, err))
        return -1;
    int pass_count = (int)plan.pass_count;
    counters_plan_close(&plan);
    return pass_count;
}

int counters_plan_open(const char *level, const char *chip, const uint8_t *availability,
                       bool skip_unknown, struct counters_plan *plan, struct error *err) {
    *plan = {};
    const struct level *found = find_level(level);
    if (!found)
        return error_set(err, EXIT_USAGE, "unknown counter level: %s; use basic or full", level);
    if (open_host(found->type, chip, availability, plan, err))
        return -1;
    if (choose_metrics(found, chip, skip_unknown, plan, err) || make_config(plan, err)) {
        counters_plan_close(plan);
        return -1;
    }
    return 0;
}

void counters_plan_close(struct counters_plan *plan) {
    if (plan->host) {
        auto params = cupti_params<CUpti_Profiler_Host_Deinitialize_Params>(
            CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
        params.pHostObject = (CUpti_Profiler_Host_Object *)plan->host;
        cuptiProfilerHostDeinitialize(&params);
    }
    free(plan->config);
    *plan = {};
}

int counters_plan_evaluate(const struct counters_plan *plan, const uint8_t *image,
                           size_t image_bytes, size_t range, double *values, struct error *err) {
    auto params = cupti_params<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(
        CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
    params.pHostObject = (CUpti_Profiler_Host_Object *)plan->host;
    params.pCounterDataImage = image;
    params.counterDataImageSize = image_bytes;
    params.rangeIndex = range;
    params.ppMetricNames = (const char **)plan->names;
    params.numMetrics = plan->metric_count;
    params.pMetricValues = values;
    CUptiResult result = cuptiProfilerHostEvaluateToGpuValues(&params);
    if (result != CUPTI_SUCCESS)
        return host_error(err, "cuptiProfilerHostEvaluateToGpuValues", result);
    return 0;
}
