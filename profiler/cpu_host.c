/* Reads /proc and /sys; a file that is not there or says nothing leaves its figure out. */
#include "cpu_host.h"

#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const int64_t unknown_cache_bytes = 32ll << 20;

/* The text after `key` and an optional colon in the first line that starts with key. */
static int find_line(const char *path, const char *key, char *value, size_t size) {
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    char line[512];
    int found = -1;
    while (found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)))
            continue;
        char *text = line + strlen(key) + strspn(line + strlen(key), " \t:");
        text[strcspn(text, "\n")] = '\0';
        snprintf(value, size, "%s", text);
        found = 0;
    }
    fclose(file);
    return found;
}

/* A file that holds one number, perhaps with the unit K or M; -1 if it does not ("max"). */
static int64_t read_number(const char *path) {
    char text[64], *end;
    if (find_line(path, "", text, sizeof text))
        return -1;
    long long number = strtoll(text, &end, 10);
    if (end == text || number < 0)
        return -1;
    return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

void cpu_host_name(char *name, size_t size) {
    struct utsname system;
    if (!find_line("/proc/cpuinfo", "model name", name, size) && *name)
        return;
    snprintf(name, size, "%s CPU", uname(&system) ? "unknown" : system.machine);
}

static int quota_cores(void) {
    char text[64];
    double quota, period;
    if (find_line("/sys/fs/cgroup/cpu.max", "", text, sizeof text) ||
        sscanf(text, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return INT_MAX;
    double cores = quota / period;
    return cores < 1 ? 1 : cores > INT_MAX ? INT_MAX : (int)cores;
}

int cpu_host_cores(void) {
    int cores = omp_get_max_threads(), quota = quota_cores();
    int available = omp_get_num_procs();
    cores = cores < available ? cores : available;
    return cores < quota ? cores : quota;
}

/* How many CPUs a list such as "0-3,8" names. */
static int count_list(const char *text) {
    int count = 0;
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        count += (int)(last - first + 1);
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

int64_t cpu_host_cache_bytes(void) {
    int64_t bytes = 0;
    int sharing = 0;
    for (int index = 0; index < 8; index++) {
        char path[128], list[256];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        int64_t size = read_number(path);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/shared_cpu_list",
                 index);
        if (size <= bytes || find_line(path, "", list, sizeof list))
            continue;
        bytes = size;
        sharing = count_list(list);
    }
    if (!bytes) {
        long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
        return size > 0 ? size : unknown_cache_bytes;
    }
    int64_t online = sysconf(_SC_NPROCESSORS_ONLN);
    return sharing > 0 && online > sharing ? (online + sharing - 1) / sharing * bytes : bytes;
}

static int64_t meminfo_bytes(const char *key) {
    char text[64];
    if (find_line("/proc/meminfo", key, text, sizeof text))
        return -1;
    return strtoll(text, NULL, 10) << 10;
}

int64_t cpu_host_memory_bytes(void) {
    int64_t total = meminfo_bytes("MemTotal");
    int64_t limit = read_number("/sys/fs/cgroup/memory.max");
    return limit > 0 && (total < 0 || limit < total) ? limit : total;
}

/* Bytes of files that the kernel keeps in memory for this group, and drops when it is needed. */
static int64_t file_cache_bytes(void) {
    static const char *const keys[] = {"inactive_file ", "active_file "};
    int64_t sum = 0;
    for (size_t i = 0; i < 2; i++) {
        char text[64];
        if (!find_line("/sys/fs/cgroup/memory.stat", keys[i], text, sizeof text))
            sum += strtoll(text, NULL, 10);
    }
    return sum;
}

int64_t cpu_host_memory_free_bytes(void) {
    int64_t available = meminfo_bytes("MemAvailable");
    int64_t limit = read_number("/sys/fs/cgroup/memory.max");
    int64_t used = read_number("/sys/fs/cgroup/memory.current");
    if (limit <= 0 || used < 0)
        return available;
    used -= file_cache_bytes();
    int64_t left = limit > used ? limit - used : 0;
    return available < 0 || left < available ? left : available;
}
