// Package netns gives tests network namespaces.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Need skips the test if this machine lets it make no namespaces, or lacks one of the
// programs.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, program := range append(programs, "ip") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("host: %v", err)
		}
	}
}

// Add adds a namespace whose loopback interface is up, and removes it when the test ends.
func Add(t testing.TB, name string) {
	t.Helper()
	for _, args := range [][]string{{"netns", "add", name}, {"-n", name, "link", "set", "lo", "up"}} {
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
}

// Do runs f in a namespace, on a thread that ends with it: sockets and processes that f
// makes belong to the namespace. f must not call methods of a test that end its goroutine.
func Do(name string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: nothing else may run on the thread
		err := enter(name)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// enter moves the calling thread into the namespace.
func enter(name string) error {
	fd, err := unix.Open("/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Setns(fd, unix.CLONE_NEWNET)
		_ = unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("enter network namespace %s: %w", name, err)
	}
	return nil
}
