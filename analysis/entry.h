/* A leaderboard entry: a folder that a pull request can carry, with a record, the source of what
 * was measured, reproductions if there are any, and entry.json, which says whose it is and sums the
 * record up, so that a leaderboard need not read the record itself. README.md lists its keys. */
#ifndef MOESOL_ANALYSIS_ENTRY_H
#define MOESOL_ANALYSIS_ENTRY_H

#include "../cases/suite.h"
#include "../core/record.h"

#define ENTRY_SCHEMA 1
#define ENTRY_FILE "entry.json"
#define ENTRY_RECORD "record.jsonl"
#define ENTRY_FILES_MOST 128
#define ENTRY_REPRODUCTIONS_MOST 64

/* Status is earned: a whole record of this tool, then a second run that agrees with it. The last
 * two keep an entry on file and out of the ranking, with the reason. */
enum entry_status {
    ENTRY_MEASURED = 0,
    ENTRY_REPRODUCED,
    ENTRY_WITHDRAWN,
    ENTRY_INVALID,
    ENTRY_STATUS_COUNT
};
extern const char *const entry_status_names[ENTRY_STATUS_COUNT];

struct entry_file {
    char path[192]; /* under the entry's folder */
    char sha256[65];
};

struct entry_case {
    int number;
    double batch_seq_len;
    double latency_ms, low_ms, high_ms; /* median with its interval */
    double t_sol_ms;                    /* by the datasheet bound; NaN where there is none */
    enum record_status status;
};

struct entry_reproduction {
    struct entry_file record;
    char date[16];
    char source_hash[65];   /* of the kernel that ran: a plug-in built again has its own */
    double mean_deviation;  /* of the suite's mean latency, as a share: 0.01 is 1 % slower */
    double worst_deviation; /* of the case that deviates most */
    int worst_case;
    bool same_device; /* by the hash of its UUID */
};

struct entry {
    char name[64], author[64];
    char license[64], source[RECORD_TEXT]; /* empty: not known */
    char date[16];
    enum entry_status status;
    char reason[RECORD_TEXT]; /* why it is withdrawn or invalid; empty otherwise */
    char note[RECORD_TEXT];   /* what a reader must know, such as why no source is here */
    char suite_name[64], suite_hash[65];
    double suite_case_count;
    struct record_device device; /* kind, name and UUID hash only */
    char device_short[64];
    struct record_kernel kernel;
    char baseline[160]; /* in force when it was published; empty: none */
    char tool_version[32], source_revision[64];
    char command[1024];
    double round_count;
    double mean_latency_ms, geomean_latency_ms;
    struct entry_case *cases;
    size_t case_count;
    struct entry_file record;
    struct entry_file *files; /* the source */
    size_t file_count;
    struct entry_reproduction *reproductions;
    size_t reproduction_count;
};

/* Reads FOLDER/entry.json, which is untrusted. Returns 0, or -1 with *err, which names file and
 * key; then nothing is to be freed. */
int entry_read(const char *folder, struct entry *entry, struct error *err);
/* Writes it, in one step. */
int entry_write(const char *folder, const struct entry *entry, struct error *err);
void entry_free(struct entry *entry);

/* The case of a number; NULL: none. */
const struct entry_case *entry_find_case(const struct entry *entry, int number);

/* Whether a path stays under the folder that it is relative to. */
bool entry_path_is_inside(const char *relative);

/* What the record says: everything but who published it, its files and its reproductions. The
 * baseline is the one that is in force now. `name`, `status`, `note` are left empty. */
int entry_from_record(const struct suite *suite, const struct record *record, struct entry *entry,
                      struct error *err);

/* "h200-my-kernel": the folder of an entry. */
void entry_folder_name(const char *device_short, const char *name, char *folder, size_t size);

#endif
