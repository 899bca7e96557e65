/* keras_value.h: values of a Keras configuration as the short texts that room nn parses, and lists
 * of settings that change nothing as long as they have a given value. */
#ifndef SN_MODEL_KERAS_VALUE_H
#define SN_MODEL_KERAS_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A setting without effect here while its value, as text, is this one; "*": any. Lists end with a
 * NULL key. */
typedef struct {
    const char *key, *value;
} sn_keras_inert;

/* Null always is; a list of one value counts as the value. */
bool sn_keras_is_inert(const sn_keras_inert *list, const char *key, const json_t *value);

/* "text" under a key, or NULL. */
const char *sn_keras_text(const json_t *object, const char *key);

/* true, 0.5, same. Numbers in the fewest digits that read back as the same. False when the value is
 * no scalar or is too long. */
bool sn_keras_scalar(const json_t *value, char *out, size_t size);

/* {"class_name":"Adam","config":{"learning_rate":0.1,"clipnorm":null}} or "adam" ->
 * "adam:learning_rate=0.1"; a list is "[1,2]", an object within "name(key=value)". Left out are
 * inert settings, nulls, flags that are false as they are by default, and a name that is the
 * class's. False when that is not possible. */
bool sn_keras_object(const json_t *value, const sn_keras_inert *inert, char *out, size_t size);

/* The value as JSON for a message, cut. Returns out. */
const char *sn_keras_show(const json_t *value, char *out, size_t size);

/* "float32" from either form of a dtype policy; NULL when there is none. */
const char *sn_keras_policy(const json_t *dtype);

#endif
