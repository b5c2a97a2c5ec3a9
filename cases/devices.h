/* Datasheet roofs of known devices: cases/devices.csv, read once. A device is known by the exact
 * name that its driver reports; any other has no roofs. */
#ifndef MOESOL_CASES_DEVICES_H
#define MOESOL_CASES_DEVICES_H

#include <stddef.h>

#include "../core/error.h"
#include "../core/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device_row {
    char name[64];       /* "H200 SXM" */
    char short_name[32]; /* "H200": the first word of the name */
    char exact_name[64]; /* as the driver reports it */
    double bytes_per_s;  /* memory */
    double flop_per_s;   /* fp16, dense */
    char source[128];
};

/* Reads the table unless that is done. Returns 0, or -1 with *err: no data folder, no file, a line
 * that is wrong. The functions below call it, and know no device where it fails; a command that
 * needs the table calls it first, so that the reason is told. */
int devices_read(struct error *err);

/* The rows that have an exact name, in file order. The texts live as long as the process. */
const struct device_row *device_rows(size_t *count);

/* The row of a device of a record, by its exact name; NULL if there is none. A MIG slice has none:
 * the roofs are those of the whole device. */
const struct device_row *device_find(const struct record_device *device);

/* The row of a short name ("H200") or of a name ("H200 SXM"); NULL if there is none. */
const struct device_row *device_by_short_name(const char *name);

/* "H200" for a known device, "cpu" for a CPU, else the exact name. Never empty. */
const char *device_short_name(const struct record_device *device);

#ifdef __cplusplus
}
#endif
#endif
