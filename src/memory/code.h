/* code.h: this library's own code and the C library's, brought into memory before the process is
 * measured. Else its pages come while steps run, as many at once as the system likes: from run to
 * run other ones.
 *
 *     sn_code_settle(&sn_code_range{first, end}, 1);    // all of it but [first, end) */
#ifndef SN_MEMORY_CODE_H
#define SN_MEMORY_CODE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uintptr_t first, end;
} sn_code_range;

/* Makes code and constants of these and of the file that this function is in resident, but
 * for the ranges, which are given back: nobody runs what lies there. Files are mapped in
 * small pages from here on. */
void sn_code_settle(const sn_code_range *unused, size_t n_unused);
/* The same of one range, of whichever file; and small pages, for files that came later. */
void sn_code_bring(sn_code_range range);
void sn_code_in_small_pages(void);

#endif
