/* For handlers of requests that may come in an Envelope. */
#ifndef API_ENVELOPE_H
#define API_ENVELOPE_H

#include "api/api.h"

/* Completes a request that came in an Envelope: its sender is answered with the error, and gets no
 * answer for its client. NOT_CONTROLLER: it is to look for the controller again. */
void api_envelope_refuse(struct request *inner, int16_t error);

#endif
