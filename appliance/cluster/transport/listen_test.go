package transport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// TestListenOnAnAddressInUse checks that Listen waits for an address that is in use
// for a short time, and fails for one that stays in use.
func TestListenOnAnAddressInUse(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := other.Addr().String()
	if l, err := Listen(net.ListenConfig{}, address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen on an address in use: got %v, error %v, want EADDRINUSE", l, err)
	}
	listening := make(chan error)
	go func() {
		l, err := Listen(net.ListenConfig{}, address)
		if err == nil {
			err = l.Close()
		}
		listening <- err
	}()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-listening; err != nil {
		t.Error(err)
	}
}
