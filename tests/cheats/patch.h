/* Redirects an object's calls of a function of another object: what a kernel can do to the process
 * that measures it. Compiles as C and C++. */
#ifndef MOESOL_TESTS_CHEATS_PATCH_H
#define MOESOL_TESTS_CHEATS_PATCH_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct patch {
    const char *object; /* part of its path; "" is the command itself */
    const char *symbol;
    void *replacement;
    int patched; /* out: calls redirected */
    int seen;    /* objects looked at */
};

static inline ElfW(Addr) patch_dynamic(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag) {
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == tag)
            return dynamic->d_un.d_ptr;
    return 0;
}

static inline void patch_slots(struct patch *patch, ElfW(Addr) base, const ElfW(Dyn) * dynamic,
                               ElfW(Addr) relocations, size_t bytes) {
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)patch_dynamic(dynamic, DT_SYMTAB);
    const char *names = (const char *)patch_dynamic(dynamic, DT_STRTAB);
    const ElfW(Rela) *all = (const ElfW(Rela) *)relocations;
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < bytes / sizeof *all; i++) {
        if (strcmp(names + symbols[ELF64_R_SYM(all[i].r_info)].st_name, patch->symbol))
            continue;
        void **slot = (void **)(base + all[i].r_offset);
        mprotect((void *)((uintptr_t)slot & ~(page_bytes - 1)), page_bytes, PROT_READ | PROT_WRITE);
        *slot = patch->replacement;
        patch->patched++;
    }
}

static inline int patch_object(struct dl_phdr_info *info, size_t size, void *self) {
    struct patch *patch = (struct patch *)self;
    const ElfW(Dyn) *dynamic = NULL;
    (void)size;
    bool wanted = patch->object[0] ? strstr(info->dlpi_name, patch->object) != NULL
                                   : patch->seen == 0; /* the first is the command */
    patch->seen++;
    for (int i = 0; i < info->dlpi_phnum && wanted; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!dynamic)
        return 0;
    patch_slots(patch, info->dlpi_addr, dynamic, patch_dynamic(dynamic, DT_JMPREL),
                patch_dynamic(dynamic, DT_PLTRELSZ));
    patch_slots(patch, info->dlpi_addr, dynamic, patch_dynamic(dynamic, DT_RELA),
                patch_dynamic(dynamic, DT_RELASZ));
    return 0;
}

/* Returns how many places now call `replacement`. */
static inline int patch_calls(const char *object, const char *symbol, void *replacement) {
    struct patch patch = {object, symbol, replacement, 0, 0};
    dl_iterate_phdr(patch_object, &patch);
    return patch.patched;
}

#endif
