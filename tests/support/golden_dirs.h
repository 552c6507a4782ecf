/* Data directories that Apache Kafka 4.4.0 wrote, from tests/golden/kafka-log-dirs.tar.gz. */
#ifndef SUPPORT_GOLDEN_DIRS_H
#define SUPPORT_GOLDEN_DIRS_H

/* A directory of this process's own, unpacked once, with clean/ (after a clean shutdown), killed/
 * (after kill -9), and what Kafka's dump tool says of both: clean.dump.txt, killed.dump.txt. Tests
 * that write into it see what they wrote. The process exits if it cannot be unpacked. */
const char *golden_dirs(void);

#endif
