//go:build tools

// Pins the nats-server that the scoreboard measures against.
package tools

import _ "github.com/nats-io/nats-server/v2"
