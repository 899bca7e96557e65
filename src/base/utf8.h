/* utf8.h: texts in UTF-8. */
#ifndef SN_BASE_UTF8_H
#define SN_BASE_UTF8_H

/* Of the character that begins at text, which ends with a zero: its bytes; 0 where it is none. */
int sn_utf8_bytes(const char *text);

#endif
