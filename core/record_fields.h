/* The rows that tie the members of core/record.h to the keys of the file: reader and writer walk
 * the same tables, so neither knows a key the other does not. Private to record*.c. */
#ifndef MOESOL_CORE_RECORD_FIELDS_H
#define MOESOL_CORE_RECORD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"

/* How a member is stored, and what it is in the file. */
enum field_type {
    FIELD_NUMBER,  /* double; NaN: no key */
    FIELD_INTEGER, /* double that holds a whole number; NaN: no key */
    FIELD_TEXT,    /* char[size]; "": no key */
    FIELD_BOOL,    /* bool */
    FIELD_STATUS,  /* enum record_status by its name */
    FIELD_TRIPLE,  /* double[3], [x, y, z] of whole numbers; NaN: no key */
    FIELD_NUMBERS, /* double *, with a size_t count: array of numbers */
    FIELD_OBJECT,  /* struct, by value */
    FIELD_ARRAY,   /* struct *, with a size_t count: array of objects */
    FIELD_METRICS  /* struct record_metric *, with a size_t count: object of name and number */
};

struct field_table;

struct field {
    const char *key;
    enum field_type type;
    bool required;
    size_t offset;
    size_t size;         /* FIELD_TEXT: of the buffer */
    size_t count_offset; /* of the size_t that goes with a pointer */
    size_t count_most;   /* untrusted input: no more elements than this */
    double least, most;  /* range of a number, or of each one, ends included */
    const struct field_table *inner;
};

struct field_table {
    const char *type; /* the line's "type"; NULL for what stands inside a line */
    const struct field *fields;
    size_t field_count;
    size_t struct_size;
};

extern const struct field_table record_run_fields;
extern const struct field_table record_case_fields;
extern const struct field_table record_counters_fields;
extern const struct field_table record_timeline_fields;
extern const struct field_table record_end_fields;

/* Every number NaN, every text "", everything else zero. */
void record_fields_init(const struct field_table *table, void *object);
/* Frees what the pointers of the table own, and initialises the object again. */
void record_fields_free(const struct field_table *table, void *object);

/* What the rows cannot say: every phase of a case has one sample for each of the case's, or none.
 * Sets *phase to the first that has not; true where all is well. */
bool record_case_consistent(const struct record_case *record_case, size_t *phase);
/* Likewise for a timeline: its arrays are of one length, and what indexes a table lies in it. NULL
 * where all is well, else what is wrong. */
const char *record_timeline_wrong(const struct record_timeline *timeline);

#endif
