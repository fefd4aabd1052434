package transport

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// inUse is how long an address may be in use before Listen gives up.
const inUse = 3 * time.Second

// Listen listens on a TCP address, and waits a little for one that is in use: while a
// node opens everything again nobody listens there, and whoever connects to it from
// the same machine may be given its port for his own end.
func Listen(c net.ListenConfig, address string) (net.Listener, error) {
	for end := time.Now().Add(inUse); ; time.Sleep(20 * time.Millisecond) {
		l, err := c.Listen(context.Background(), "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}
