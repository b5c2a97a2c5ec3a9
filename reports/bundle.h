/* Puts the source of what was measured into an entry's folder. */
#ifndef MOESOL_REPORTS_BUNDLE_H
#define MOESOL_REPORTS_BUNDLE_H

#include "../analysis/entry.h"

/* Where the source lies under an entry's folder. */
#define BUNDLE_FOLDER "source"

/* Copies the source of entry->kernel to FOLDER/source and lists it in entry->files. A built-in
 * kernel's comes from the tree that this command was built in, with the headers of kernels/ that it
 * includes, where the hash is the record's. `source` may be a file or folder to take instead, for a
 * plug-in the only way; NULL: none is given. Where there is no source, entry->note says why.
 * Returns 0, or -1 with *err. */
int bundle_source(const char *source, const char *folder, struct entry *entry, struct error *err);

/* Copies a file; `to` is under the entry's folder and is added to entry->files. */
int bundle_file(const char *from, const char *folder, const char *to, struct entry *entry,
                struct error *err);

/* Removes a folder with all that is in it; links are not followed. */
void bundle_remove(const char *folder);

#endif
