/* Topics that are made because somebody asked about them (Kafka's AutoTopicCreationManager): by the
 * controller here, or by another node's. */
#ifndef API_AUTO_CREATE_H
#define API_AUTO_CREATE_H

#include "api/forward.h"

/* Embedded in the state of a request. */
struct api_creation {
    struct create_topics_request create;
    struct create_topics_response created; /* in the order of create; of none after an error */
    bool for_client; /* in the name of r's principal; else this broker asks for itself */
    /* Once, never inside the call that began it. What was created may not be in our image yet. */
    void (*done)(struct api_creation *c, int16_t error);
    /* own */
    struct api_forward forward;
};

/* c has create.topics (create and created are else set here), for_client and done. False: out of
 * memory, nothing was begun. api_forward_cancel hastens it. */
bool api_create(struct api *api, struct request *r, struct api_creation *c, struct now now);

#endif
