// Package suite pins the client whose own tests run.sh runs.
package suite

import _ "github.com/twmb/franz-go/pkg/kgo"
