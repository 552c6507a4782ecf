/* Names of a partition's files and directories (Kafka: LogFileUtils, UnifiedLog). */
#ifndef LOG_PATH_H
#define LOG_PATH_H

#include "base/err.h"
#include "base/types.h"

#define LOG_PATH_MAX 4096
#define LOG_NAME_MAX 255 /* of a directory entry */

#define SUFFIX_LOG ".log"
#define SUFFIX_INDEX ".index"
#define SUFFIX_TIME ".timeindex"
#define SUFFIX_TXN ".txnindex"
#define SUFFIX_SNAPSHOT ".snapshot"
#define SUFFIX_DELETED ".deleted"
#define SUFFIX_CLEANED ".cleaned"
#define SUFFIX_SWAP ".swap"

/* dir/<20 digits>suffix. ERR_INVALID: too long. */
MUST_USE enum err path_file(char out[LOG_PATH_MAX], const char *dir, int64_t base_offset,
                            const char *suffix);
MUST_USE enum err path_join(char out[LOG_PATH_MAX], const char *dir, const char *name);
/* The directory that holds path; "." when it has none. */
MUST_USE enum err path_parent(char out[LOG_PATH_MAX], const char *path);
/* "00000000000000000042.index" -> 42, ".index". False for names of another form. */
bool path_parse(const char *name, int64_t *base_offset, const char **suffix);
#define SUFFIX_DIR_DELETE "-delete" /* of a deleted partition */
#define SUFFIX_DIR_STRAY "-stray"   /* of one that the metadata does not know */

/* Where a partition's directory goes when it leaves: "topic-0" -> "topic-0.<32 hex>SUFFIX" beside
 * it, the topic cut so that the name fits. ERR_INVALID: too long. */
MUST_USE enum err path_aside(char out[LOG_PATH_MAX], const char *dir, struct uuid unique,
                             const char *suffix);

#endif
