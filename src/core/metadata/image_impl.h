/* Inside of the image: what its files share. */
#ifndef METADATA_IMAGE_IMPL_H
#define METADATA_IMAGE_IMPL_H

#include "core/metadata/image.h"

/* A zero-terminated copy; NULL when out of memory. */
char *image_text(struct str s);
/* Copies of arrays: *out is NULL when n <= 0 (no error). */
MUST_USE enum err image_ints(const int32_t *v, int32_t n, int32_t **out);
MUST_USE enum err image_uuids(const struct uuid *v, int32_t n, struct uuid **out);

void image_endpoints_free(struct image_endpoint *v, int32_t n);
void image_ranges_free(struct image_range *v, int32_t n);
void image_broker_free(struct image_broker *b);
void image_controller_free(struct image_controller *c);
void image_topic_free(struct image_topic *t);
void image_config_free(struct image_config *c);

/* image_broker.c */
MUST_USE enum err image_register(struct image *img, const struct register_broker_record *r);
MUST_USE enum err image_unregister(struct image *img, int32_t id, int64_t epoch);
MUST_USE enum err image_set_fenced(struct image *img, int32_t id, int64_t epoch, bool fenced);
MUST_USE enum err image_change_registration(struct image *img,
                                            const struct broker_registration_change_record *r);

/* image_controller.c */
MUST_USE enum err image_register_controller(struct image *img,
                                            const struct register_controller_record *r);
void image_unregister_controller(struct image *img, int32_t id);

/* image_topic.c */
MUST_USE enum err image_add_topic(struct image *img, const struct topic_record *r);
MUST_USE enum err image_remove_topic(struct image *img, const struct remove_topic_record *r,
                                     struct image_delta *d);
MUST_USE enum err image_set_partition(struct image *img, const struct partition_record *r,
                                      struct image_delta *d);
MUST_USE enum err image_change_partition(struct image *img, const struct partition_change_record *r,
                                         struct image_delta *d);
MUST_USE enum err image_clear_elr(struct image *img, struct str topic, struct image_delta *d);

/* image_config.c */
MUST_USE enum err image_set_config(struct image *img, const struct config_record *r,
                                   struct image_delta *d);
MUST_USE enum err image_remove_config(struct image *img, int8_t type, struct str name);

/* image_kept.c */
MUST_USE enum err image_keep(struct image *img, int16_t type, const void *record,
                             struct bytes framed);
void image_kept_close(struct image *img);

#endif
