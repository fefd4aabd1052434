package transport

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// inUse is how long Listen waits for an address that is in use.
const inUse = 3 * time.Second

// Listen listens on a TCP address and waits a short time if the address is in use.
// While a node reopens its listeners, a program on the same machine that connects
// to the address may be assigned its port as the local one.
func Listen(c net.ListenConfig, address string) (net.Listener, error) {
	for end := time.Now().Add(inUse); ; time.Sleep(20 * time.Millisecond) {
		l, err := c.Listen(context.Background(), "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}
