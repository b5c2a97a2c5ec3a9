/* What the build knows of itself; defined in build/build_info.c, which the Makefile writes. */
#ifndef MOESOL_CORE_BUILD_INFO_H
#define MOESOL_CORE_BUILD_INFO_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char *const build_version;  /* "0.1.0" */
extern const char *const build_revision; /* git commit, "-dirty" appended; "unknown" without git */
extern const char *const build_source_dir; /* the source tree, "" in an installed command */
extern const char *const build_prefix;     /* PREFIX of make install */

struct build_source {
    const char *path;   /* from the top of the source tree */
    const char *sha256; /* of the file as built */
};
/* The kernels' sources; the last row has path NULL. */
extern const struct build_source build_sources[];

#ifdef __cplusplus
}
#endif
#endif
