/* Activity records with the phase each belongs to. A callback at every launching API call logs its
 * correlation id with the open iteration and the calling thread's phase; the records, which carry
 * the same id, are matched against the log when the device is idle. External correlation ids would
 * miss launches of other threads; all nodes of a graph carry the id of the graph's launch. */
#include "collector.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <atomic>
#include <cxxabi.h>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "../launch_name.h"
#include "cupti_call.h"

namespace {

constexpr size_t BUFFER_BYTES = 8u << 20; /* about 37,000 kernel records */
constexpr int BUFFER_PREALLOCATED = 6;    /* CUPTI takes at least one a launching thread */
constexpr size_t LAUNCH_CAPACITY = 1u << 20;
constexpr int NO_ITERATION = -1;
constexpr int NO_PHASE = -1;

/* One launching API call. */
struct launch {
    uint32_t correlation_id;
    int16_t phase;
    bool harness;
    int32_t iteration;
};

struct filled_buffer {
    uint8_t *data;
    size_t valid_bytes;
};

/* What a record says of one activity, before it is matched. */
struct seen {
    struct activity activity;
    uint32_t correlation_id, runtime_correlation_id;
    uint64_t graph_node_id;
};

/* The collector's state; callbacks have no other way to it. */
struct collector {
    CUpti_SubscriberHandle subscriber;
    bool registered, running;
    std::atomic<int> iteration;
    std::atomic<size_t> launch_count, allocation_count;
    struct launch *launches;                       /* [LAUNCH_CAPACITY] */
    bool allocating[CUPTI_DRIVER_TRACE_CBID_SIZE]; /* driver calls that take memory */

    std::mutex mutex; /* guards all below: CUPTI calls back from its own threads */
    std::vector<uint8_t *> empty_buffers;
    std::vector<struct filled_buffer> filled_buffers;
    std::unordered_map<uint64_t, int> graph_node_phases;
};
/* Never destroyed: CUPTI may call back while the process exits. */
struct collector &collector = *new struct collector();
thread_local int thread_phase = NO_PHASE;
thread_local bool thread_is_harness = false;

int cupti_error(struct error *err, const char *call, CUptiResult result) {
    return error_set(err, EXIT_FAILED, "activity records: %s failed: %s; %s", call,
                     cupti_text(result), cupti_mend(result));
}

/* --- callbacks ------------------------------------------------------------------------------ */

void count_allocation(void) {
    if (!thread_is_harness && collector.iteration.load(std::memory_order_relaxed) != NO_ITERATION)
        collector.allocation_count.fetch_add(1, std::memory_order_relaxed);
}

void log_launch(uint32_t correlation_id) {
    size_t index = collector.launch_count.fetch_add(1, std::memory_order_relaxed);
    if (index >= LAUNCH_CAPACITY)
        return; /* activity_take() sees the count */
    struct launch *launch = &collector.launches[index];
    launch->correlation_id = correlation_id;
    launch->phase = (int16_t)thread_phase;
    launch->harness = thread_is_harness;
    launch->iteration = collector.iteration.load(std::memory_order_relaxed);
}

/* Nodes of a captured graph have the phase that was open at capture; instantiating the graph clones
 * its nodes. */
void note_graph_node(CUpti_CallbackId id, const CUpti_GraphData *data) {
    uint64_t node_id = 0, original_id = 0;
    if (cuptiGetGraphNodeId(data->node, &node_id) != CUPTI_SUCCESS)
        return;
    std::lock_guard<std::mutex> lock(collector.mutex);
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        collector.graph_node_phases[node_id] = thread_phase;
        return;
    }
    if (cuptiGetGraphNodeId(data->originalNode, &original_id) != CUPTI_SUCCESS)
        return;
    auto original = collector.graph_node_phases.find(original_id);
    if (original != collector.graph_node_phases.end())
        collector.graph_node_phases[node_id] = original->second;
}

void CUPTIAPI on_callback(void *, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void *data) {
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        const CUpti_ResourceData *resource = (const CUpti_ResourceData *)data;
        note_graph_node(id, (const CUpti_GraphData *)resource->resourceDescriptor);
        return;
    }
    const CUpti_CallbackData *call = (const CUpti_CallbackData *)data;
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && collector.allocating[id])
        count_allocation();
    else
        log_launch(call->correlationId);
}

void CUPTIAPI on_buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    std::lock_guard<std::mutex> lock(collector.mutex);
    *max_records = 0;
    *size = BUFFER_BYTES;
    if (collector.empty_buffers.empty()) {
        *buffer = (uint8_t *)calloc(1, BUFFER_BYTES);
        if (!*buffer)
            *size = 0; /* CUPTI counts what it drops */
        return;
    }
    *buffer = collector.empty_buffers.back();
    collector.empty_buffers.pop_back();
}

void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    std::lock_guard<std::mutex> lock(collector.mutex);
    collector.filled_buffers.push_back({buffer, valid});
}

/* --- start and stop ------------------------------------------------------------------------- */

/* Whether an API call may put something on the device that has an activity record. Loading code may
 * copy; it is rare enough to be listed always. */
bool is_launching(const char *name) {
    static const char *const words[] = {"Launch", "Memcpy",     "Memset",
                                        "Upload", "ModuleLoad", "LibraryLoad"};
    for (const char *word : words) {
        if (strstr(name, word))
            return true;
    }
    return false;
}

/* Whether it takes device memory, or host memory that a device can reach. */
bool is_allocating(const char *name) {
    static const char *const words[] = {"MemAlloc", "MemCreate", "MemHostAlloc", "ArrayCreate"};
    for (const char *word : words) {
        if (strstr(name, word))
            return true;
    }
    return false;
}

/* Both domains: a record may carry the id of the runtime call or of the driver call inside it. */
int enable_launch_callbacks(CUpti_CallbackDomain domain, uint32_t id_count, struct error *err) {
    for (uint32_t id = 1; id < id_count; id++) {
        const char *name = NULL;
        if (cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name)
            continue;
        bool allocates = domain == CUPTI_CB_DOMAIN_DRIVER_API && is_allocating(name);
        if (!allocates && !is_launching(name))
            continue;
        if (allocates)
            collector.allocating[id] = true;
        CUptiResult result = cuptiEnableCallback(1, collector.subscriber, domain, id);
        if (result != CUPTI_SUCCESS)
            return cupti_error(err, "cuptiEnableCallback", result);
    }
    return 0;
}

int subscribe(struct error *err) {
    CUptiResult result =
        cuptiSubscribe(&collector.subscriber, (CUpti_CallbackFunc)on_callback, NULL);
    if (result != CUPTI_SUCCESS) {
        collector.subscriber = NULL;
        return cupti_error(err, "cuptiSubscribe", result);
    }
    if (enable_launch_callbacks(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, err) ||
        enable_launch_callbacks(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, err))
        return -1;
    const CUpti_CallbackId graph_ids[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                          CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};
    for (CUpti_CallbackId id : graph_ids) {
        result = cuptiEnableCallback(1, collector.subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
        if (result != CUPTI_SUCCESS)
            return cupti_error(err, "cuptiEnableCallback", result);
    }
    return 0;
}

/* Memory is touched here, not while a kernel is timed. */
int allocate(struct error *err) {
    if (!collector.launches)
        collector.launches = (struct launch *)malloc(LAUNCH_CAPACITY * sizeof(struct launch));
    if (!collector.launches)
        return error_set(err, EXIT_FAILED, "activity records: out of host memory");
    memset(collector.launches, 0, LAUNCH_CAPACITY * sizeof(struct launch));
    std::lock_guard<std::mutex> lock(collector.mutex);
    while (collector.empty_buffers.size() < BUFFER_PREALLOCATED) {
        uint8_t *buffer = (uint8_t *)malloc(BUFFER_BYTES);
        if (!buffer)
            return error_set(err, EXIT_FAILED, "activity records: out of host memory");
        memset(buffer, 0, BUFFER_BYTES);
        collector.empty_buffers.push_back(buffer);
    }
    return 0;
}

int register_buffers(struct error *err) {
    if (collector.registered)
        return 0;
    /* CUPTI would zero each buffer in the thread that launches. */
    uint8_t zeroed = 1;
    size_t size = sizeof(zeroed);
    CUptiResult result =
        cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
    if (result != CUPTI_SUCCESS)
        return cupti_error(err, "cuptiActivitySetAttribute", result);
    result = cuptiActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
    if (result != CUPTI_SUCCESS)
        return cupti_error(err, "cuptiActivityRegisterCallbacks", result);
    collector.registered = true;
    return 0;
}

/* Not CUPTI_ACTIVITY_KIND_GRAPH_TRACE: it would replace the records of a graph's kernels. */
const CUpti_ActivityKind KINDS[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

/* --- records -------------------------------------------------------------------------------- */

const char *intern_name(const char *raw) {
    static std::unordered_map<std::string, const char *> *names =
        new std::unordered_map<std::string, const char *>; /* lives as long as the process */
    auto known = names->find(raw);
    if (known != names->end())
        return known->second;
    char shortened[RECORD_TEXT];
    int status = 0;
    char *demangled = abi::__cxa_demangle(raw, NULL, NULL, &status);
    launch_name_shorten(demangled ? demangled : raw, shortened, sizeof(shortened));
    free(demangled);
    const char *copy = strdup(shortened);
    return names->emplace(raw, copy ? copy : "?").first->second;
}

const char *copy_name(uint8_t kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "memcpy DtoD";
    default:
        return "memcpy";
    }
}

/* The record types are the oldest that have the members read here, so that older and newer toolkits
 * have them too; newer ones only append. */
void read_kernel(const CUpti_ActivityKernel9 *record, struct seen *seen) {
    struct activity *activity = &seen->activity;
    activity->start_ns = record->start;
    activity->end_ns = record->end;
    activity->name = intern_name(record->name ? record->name : "?");
    activity->grid[0] = (uint32_t)record->gridX;
    activity->grid[1] = (uint32_t)record->gridY;
    activity->grid[2] = (uint32_t)record->gridZ;
    activity->block[0] = (uint32_t)record->blockX;
    activity->block[1] = (uint32_t)record->blockY;
    activity->block[2] = (uint32_t)record->blockZ;
    activity->registers_per_thread = record->registersPerThread;
    activity->shared_memory_bytes =
        (uint64_t)record->staticSharedMemory + (uint64_t)record->dynamicSharedMemory;
    seen->correlation_id = seen->runtime_correlation_id = record->correlationId;
    seen->graph_node_id = record->graphNodeId;
}

void read_memcpy(const CUpti_ActivityMemcpy5 *record, struct seen *seen) {
    seen->activity.start_ns = record->start;
    seen->activity.end_ns = record->end;
    seen->activity.name = copy_name(record->copyKind);
    seen->correlation_id = record->correlationId;
    seen->runtime_correlation_id = record->runtimeCorrelationId;
    seen->graph_node_id = record->graphNodeId;
}

void read_memset(const CUpti_ActivityMemset4 *record, struct seen *seen) {
    seen->activity.start_ns = record->start;
    seen->activity.end_ns = record->end;
    seen->activity.name = "memset";
    seen->correlation_id = seen->runtime_correlation_id = record->correlationId;
    seen->graph_node_id = record->graphNodeId;
}

void read_buffer(const struct filled_buffer *buffer, std::vector<struct seen> *all) {
    CUpti_Activity *record = NULL;
    if (!buffer->valid_bytes)
        return;
    while (cuptiActivityGetNextRecord(buffer->data, buffer->valid_bytes, &record) ==
           CUPTI_SUCCESS) {
        struct seen seen = {};
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            read_kernel((const CUpti_ActivityKernel9 *)record, &seen);
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
            read_memcpy((const CUpti_ActivityMemcpy5 *)record, &seen);
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
            read_memset((const CUpti_ActivityMemset4 *)record, &seen);
        else
            continue;
        all->push_back(seen);
    }
}

void read_buffers(std::vector<struct seen> *all) {
    std::vector<struct filled_buffer> filled;
    {
        std::lock_guard<std::mutex> lock(collector.mutex);
        filled.swap(collector.filled_buffers);
    }
    for (const struct filled_buffer &buffer : filled) {
        read_buffer(&buffer, all);
        memset(buffer.data, 0, buffer.valid_bytes);
        std::lock_guard<std::mutex> lock(collector.mutex);
        collector.empty_buffers.push_back(buffer.data);
    }
}

/* The device is idle; hands everything out of CUPTI. */
int flush(struct error *err) {
    cudaError_t synchronised = cudaDeviceSynchronize();
    if (synchronised != cudaSuccess)
        return error_set(err, EXIT_FAILED, "activity records: the device failed: %s",
                         cudaGetErrorString(synchronised));
    /* Complete buffers first; then what is left, whose records are complete as well by now. */
    CUptiResult result = cuptiActivityFlushAll(0);
    if (result == CUPTI_SUCCESS)
        result = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (result != CUPTI_SUCCESS)
        return cupti_error(err, "cuptiActivityFlushAll", result);
    return 0;
}

int check_dropped(struct error *err) {
    size_t dropped = 0;
    CUptiResult result = cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
    if (result != CUPTI_SUCCESS && result != CUPTI_ERROR_QUEUE_EMPTY)
        return cupti_error(err, "cuptiActivityGetNumDroppedRecords", result);
    if (dropped)
        return error_set(err, EXIT_FAILED,
                         "activity records: CUPTI dropped %zu for want of host memory; free some, "
                         "or take fewer samples",
                         dropped);
    if (collector.launch_count.load() > LAUNCH_CAPACITY)
        return error_set(err, EXIT_FAILED,
                         "activity records: %zu launches between two reads, at most %zu are kept; "
                         "take fewer samples at a time",
                         collector.launch_count.load(), LAUNCH_CAPACITY);
    return 0;
}

/* --- matching ------------------------------------------------------------------------------- */

int compare_launches(const void *left, const void *right) {
    uint32_t a = ((const struct launch *)left)->correlation_id;
    uint32_t b = ((const struct launch *)right)->correlation_id;
    return a < b ? -1 : a > b;
}

int compare_activities(const void *left, const void *right) {
    const struct activity *a = (const struct activity *)left;
    const struct activity *b = (const struct activity *)right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

const struct launch *find_launch(uint32_t correlation_id, size_t count) {
    struct launch key = {};
    key.correlation_id = correlation_id;
    return (const struct launch *)bsearch(&key, collector.launches, count, sizeof(key),
                                          compare_launches);
}

int phase_of(const struct seen *seen, const struct launch *launch) {
    if (!seen->graph_node_id)
        return launch->phase;
    std::lock_guard<std::mutex> lock(collector.mutex);
    auto node = collector.graph_node_phases.find(seen->graph_node_id);
    if (node == collector.graph_node_phases.end() || node->second == NO_PHASE)
        return launch->phase;
    return node->second;
}

int check_times(const struct activity *activity, struct error *err) {
    if (activity->start_ns && activity->end_ns >= activity->start_ns)
        return 0;
    return error_set(err, EXIT_FAILED,
                     "activity records: no valid time for %s: start %llu ns, end %llu ns; free "
                     "device memory for CUPTI's buffers, or take fewer samples",
                     activity->name, (unsigned long long)activity->start_ns,
                     (unsigned long long)activity->end_ns);
}

/* Fills iteration and phase; 1: kept, 0: the harness's own, -1 with *err. */
int match(struct seen *seen, size_t launch_count, struct error *err) {
    const struct launch *launch = find_launch(seen->correlation_id, launch_count);
    if (!launch)
        launch = find_launch(seen->runtime_correlation_id, launch_count);
    if (!launch)
        return error_set(err, EXIT_FAILED,
                         "activity records: %s (correlation id %u) matches no launch that was "
                         "seen; report this as a bug with the kernel's name",
                         seen->activity.name, seen->correlation_id);
    if (launch->harness || launch->iteration == NO_ITERATION)
        return 0;
    if (check_times(&seen->activity, err))
        return -1;
    seen->activity.iteration = launch->iteration;
    seen->activity.phase = phase_of(seen, launch);
    return 1;
}

int match_all(std::vector<struct seen> *all, size_t launch_count, struct activity *kept,
              size_t *kept_count, struct error *err) {
    qsort(collector.launches, launch_count, sizeof(struct launch), compare_launches);
    *kept_count = 0;
    for (struct seen &seen : *all) {
        int keep = match(&seen, launch_count, err);
        if (keep < 0)
            return -1;
        if (keep)
            kept[(*kept_count)++] = seen.activity;
    }
    qsort(kept, *kept_count, sizeof(*kept), compare_activities);
    return 0;
}

} // namespace

int activity_start(struct error *err) {
    if (collector.running)
        return error_set(err, EXIT_FAILED, "activity records: collection is on already");
    cudaError_t synchronised = cudaDeviceSynchronize();
    if (synchronised != cudaSuccess)
        return error_set(err, EXIT_FAILED, "activity records: the device failed: %s",
                         cudaGetErrorString(synchronised));
    collector.iteration = NO_ITERATION;
    collector.launch_count = collector.allocation_count = 0;
    thread_phase = NO_PHASE;
    thread_is_harness = false;
    if (allocate(err))
        return -1;
    collector.running = true;
    if (register_buffers(err) || subscribe(err))
        goto fail;
    for (CUpti_ActivityKind kind : KINDS) {
        CUptiResult result = cuptiActivityEnable(kind);
        if (result != CUPTI_SUCCESS) {
            cupti_error(err, "cuptiActivityEnable", result);
            goto fail;
        }
    }
    return 0;
fail:
    activity_stop();
    return -1;
}

void activity_iteration(int iteration) {
    collector.iteration.store(iteration, std::memory_order_relaxed);
}

void activity_phase(int phase) { thread_phase = phase; }

void activity_harness(bool on) { thread_is_harness = on; }

int activity_take(struct activity **activities, size_t *count, struct error *err) {
    std::vector<struct seen> all;
    struct activity *kept = NULL;
    int failed = -1;
    *activities = NULL;
    *count = 0;
    if (!collector.running)
        return error_set(err, EXIT_FAILED, "activity records: collection is not on");
    if (flush(err))
        return -1;
    read_buffers(&all);
    if (check_dropped(err))
        goto done;
    kept = (struct activity *)malloc((all.size() + 1) * sizeof(*kept));
    if (!kept) {
        error_set(err, EXIT_FAILED, "activity records: out of host memory");
        goto done;
    }
    failed = match_all(&all, collector.launch_count.load(), kept, count, err);
done:
    collector.launch_count = collector.allocation_count = 0;
    if (failed) {
        free(kept);
        *count = 0;
        return -1;
    }
    *activities = kept;
    return 0;
}

size_t activity_allocations(void) { return collector.allocation_count.load(); }

void activity_stop(void) {
    if (!collector.running)
        return;
    for (CUpti_ActivityKind kind : KINDS)
        cuptiActivityDisable(kind);
    if (collector.registered) {
        std::vector<struct seen> left_over;
        cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        read_buffers(&left_over);
    }
    if (collector.subscriber)
        cuptiUnsubscribe(collector.subscriber);
    collector.subscriber = NULL;
    collector.running = false;
}

void collector_version(char *text, size_t size) {
    uint32_t version = 0;
    if (!size)
        return;
    text[0] = '\0';
    if (cuptiGetVersion(&version) != CUPTI_SUCCESS)
        return;
    if (version >= 100000) /* 130001: CUPTI 13.0; before, a count of its own */
        snprintf(text, size, "%u.%u", version / 10000, version / 100 % 100);
    else
        snprintf(text, size, "API %u", version);
}
