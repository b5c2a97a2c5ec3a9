/* Reads devices.csv: plain commas, no quotes; the columns are found by the names in the first
 * line. */
#include "devices.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define DEVICES_MOST 256
#define LINE_BYTES 1024

enum column {
    COLUMN_NAME,
    COLUMN_EXACT_NAME,
    COLUMN_BYTES_PER_S,
    COLUMN_FLOP_PER_S,
    COLUMN_SOURCE,
    COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT] = {"device", "exact_device_name",
                                                       "memory_bandwidth_bytes_per_s",
                                                       "fp16_dense_flop_per_s", "source"};

/* The registry: filled once, on first use. */
static struct device_row devices[DEVICES_MOST];
static size_t device_count;
static bool devices_are_read;

/* Cuts a line at its commas, in place. Returns how many cells there are, at most `most` + 1. */
static size_t cut_cells(char *line, char **cells, size_t most) {
    size_t count = 0;

    line[strcspn(line, "\r\n")] = '\0';
    for (;;) {
        if (count == most)
            return most + 1;
        cells[count++] = line;
        line = strchr(line, ',');
        if (!line)
            return count;
        *line++ = '\0';
    }
}

static int take_text(const char *cell, char *text, size_t size) {
    if (strlen(cell) >= size || strchr(cell, '"'))
        return -1;
    memcpy(text, cell, strlen(cell) + 1);
    return 0;
}

static int take_roof(const char *cell, double *roof) {
    char *end;
    *roof = strtod(cell, &end);
    return end != cell && *end == '\0' && *roof > 0.0 && isfinite(*roof) ? 0 : -1;
}

static int take_row(char *const *cells, struct device_row *row) {
    if (take_text(cells[COLUMN_NAME], row->name, sizeof row->name) ||
        take_text(cells[COLUMN_EXACT_NAME], row->exact_name, sizeof row->exact_name) ||
        take_roof(cells[COLUMN_BYTES_PER_S], &row->bytes_per_s) ||
        take_roof(cells[COLUMN_FLOP_PER_S], &row->flop_per_s) ||
        take_text(cells[COLUMN_SOURCE], row->source, sizeof row->source))
        return -1;
    size_t first_word = strcspn(row->name, " ");
    if (first_word == 0 || first_word >= sizeof row->short_name)
        return -1;
    snprintf(row->short_name, sizeof row->short_name, "%.*s", (int)first_word, row->name);
    return 0;
}

static int read_header(FILE *file, const char *path, struct error *err) {
    char line[LINE_BYTES], *cells[COLUMN_COUNT];
    bool right =
        fgets(line, sizeof line, file) && cut_cells(line, cells, COLUMN_COUNT) == COLUMN_COUNT;

    for (size_t i = 0; right && i < COLUMN_COUNT; i++)
        right = strcmp(cells[i], column_names[i]) == 0;
    if (right)
        return 0;
    return error_set(err, EXIT_FAILED, "%.300s:1: not the columns of devices.csv: %s,%s,%s,%s,%s",
                     path, column_names[0], column_names[1], column_names[2], column_names[3],
                     column_names[4]);
}

/* A row without an exact name is a model of a device, kept in the file for its numbers: no device
 * reports it. */
static int read_rows(FILE *file, const char *path, struct error *err) {
    char line[LINE_BYTES], *cells[COLUMN_COUNT];

    for (int number = 2; fgets(line, sizeof line, file); number++) {
        struct device_row row;
        memset(&row, 0, sizeof row);
        if (cut_cells(line, cells, COLUMN_COUNT) != COLUMN_COUNT || take_row(cells, &row))
            return error_set(err, EXIT_FAILED, "%.300s:%d: not a device with two positive roofs",
                             path, number);
        if (!row.exact_name[0])
            continue;
        if (device_count == DEVICES_MOST)
            return error_set(err, EXIT_FAILED, "%.300s:%d: more than %d devices", path, number,
                             DEVICES_MOST);
        devices[device_count++] = row;
    }
    return 0;
}

int devices_read(struct error *err) {
    char path[512];

    if (devices_are_read)
        return 0;
    if (data_path("devices.csv", path, sizeof path, err))
        return -1;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, EXIT_FAILED, "cannot read the device table: %.300s: %s", path,
                         strerror(errno));
    device_count = 0;
    int result = read_header(file, path, err) || read_rows(file, path, err) ? -1 : 0;
    fclose(file);
    if (result)
        device_count = 0;
    devices_are_read = result == 0;
    return result;
}

const struct device_row *device_rows(size_t *count) {
    *count = devices_read(NULL) == 0 ? device_count : 0;
    return devices;
}

const struct device_row *device_find(const struct record_device *device) {
    size_t count;
    const struct device_row *rows = device_rows(&count);

    if (strcmp(device->mig, "on") == 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].exact_name, device->name) == 0)
            return &rows[i];
    return NULL;
}

const struct device_row *device_by_short_name(const char *name) {
    size_t count;
    const struct device_row *rows = device_rows(&count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].short_name, name) == 0 || strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const char *device_short_name(const struct record_device *device) {
    const struct device_row *row = device_find(device);

    if (row)
        return row->short_name;
    return strcmp(device->kind, "cpu") == 0 ? "cpu" : device->name;
}
